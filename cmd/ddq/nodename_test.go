//go:build unix

package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/store/redisstore/redistest"
)

// TestTheNameOfALivingServerIsNotTaken: a second server of one name does not start and takes nothing from the first one,
// and is the first one's next life once that is dead.
func TestTheNameOfALivingServerIsNotTaken(t *testing.T) {
	severalServers(t)
	url := redistest.Start(t).URL()
	first := startProcess(t, "--store", url, "--node-name", "a", "--grpc-addr", "127.0.0.1:0")
	enqueue := func(p *process) {
		c, err := client.Dial(p.addr, client.Config{MaxElapsed: -1})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Enqueue(t.Context(), client.Task{Topic: "mail"}); err != nil {
			t.Errorf("enqueue: %v", err)
		}
	}
	enqueue(first)
	ddq, err := buildOnce()
	if err != nil {
		t.Fatal(err)
	}
	for _, addr := range []string{"127.0.0.1:0", "0.0.0.0:0"} {
		out, err := exec.CommandContext(t.Context(), ddq, "server", "--store", url, "--node-name", "a", "--grpc-addr", addr, "--insecure", "--http-addr", "off").CombinedOutput()
		if err == nil || !strings.Contains(string(out), "--node-name") || !strings.Contains(string(out), first.addr) {
			t.Errorf("a second server ended with %v, want that the name is taken by the one at %s:\n%s", err, first.addr, out)
		}
	}
	enqueue(first)
	if said := first.said(); strings.Contains(said, "lease lost") {
		t.Errorf("the first server says %s", said)
	}
	first.kill()
	enqueue(startProcess(t, "--store", url, "--node-name", "a", "--grpc-addr", "127.0.0.1:0"))
}

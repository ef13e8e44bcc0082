//go:build unix

package main

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/ddq-io/ddq/cluster"
	"github.com/ddq-io/ddq/store/redisstore/redistest"
)

// A member of a program that would tell nobody of the ends of tasks keeps schedules from being put,
// until it is gone.
func TestSchedulesAreRefusedWhileAnOldNodeIsThere(t *testing.T) {
	s := startServers(t, redistest.Start(t).URL(), 1)
	old, err := cluster.Start(t.Context(), cluster.Config{
		Node: cluster.Node{Name: "old", Addr: claimAddr(t)}, Addr: claimAddr(t), Join: s.gossip,
	}, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { old.Close() })
	name, err := buildOnce()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	put := func() string {
		n++
		cmd := exec.CommandContext(t.Context(), name, "schedule", "put", fmt.Sprint("hourly-", n), "--topic", "report", "--every", "1h")
		cmd.Env = append(os.Environ(), "DDQ_ADDR="+s.grpc[0])
		said, _ := cmd.CombinedOutput() // which tells how it ended
		return string(said)
	}
	var said string
	await(t, "a refusal", func() bool { said = put(); return strings.Contains(said, "(OLD_NODES)") })
	if want := "node \"old\" is of a version without schedules and workflows: update it first (OLD_NODES)\n"; !strings.HasSuffix(said, want) || strings.Count(said, "\n") != 1 {
		t.Errorf("ddq schedule put says %q, want one line that ends in %q", said, want)
	}
	if err := old.Leave(t.Context()); err != nil {
		t.Error(err)
	}
	await(t, "a schedule", func() bool { said = put(); return strings.Contains(said, "created: version 1") })
}

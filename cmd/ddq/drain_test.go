//go:build unix

package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/store/redisstore/redistest"
)

// runCommand runs a command of the built binary and returns what it says.
func runCommand(t *testing.T, args ...string) string {
	t.Helper()
	name, err := buildOnce()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("ddq %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// A node that drains hands its shards over and goes on to take calls and to feed
// its workers, and takes shards again when it may. All traffic is with that node.
func TestDrainedNodeServesOnWithoutShards(t *testing.T) {
	severalServers(t)
	s := startServers(t, redistest.Start(t).URL(), 3)
	x := startTraffic(t, s.grpc[2])
	awaitActive(t, x.admin, 3)
	if !slices.Contains(x.awaitPlaced(), "n2") {
		t.Fatal("the node owns nothing to begin with")
	}

	x.watch()
	began := time.Now()
	if out := runCommand(t, "cluster", "drain", "n2", "--wait", "--addr", s.grpc[0]); !strings.Contains(out, "n2 is draining") {
		t.Errorf("the command says %q", out)
	}
	t.Logf("drained in %v", time.Since(began).Round(time.Millisecond))
	if slices.Contains(x.awaitPlaced(), "n2") {
		t.Error("the drained node owns shards")
	}
	if out := runCommand(t, "cluster", "nodes", "--addr", s.grpc[0]); !strings.Contains(out, string(client.NodeDraining)) {
		t.Errorf("the nodes are %s", out)
	}
	x.awaitService(time.Now())
	x.awaitMore(200)

	runCommand(t, "cluster", "undrain", "n2", "--addr", s.grpc[1])
	awaitActive(t, x.admin, 3)
	if !slices.Contains(x.awaitPlaced(), "n2") {
		t.Error("the node owns no shards again")
	}
	x.awaitService(time.Now())
	gaps, late := x.watched()
	t.Logf("longest gaps by shard: %v; latest deliveries: %v", gaps, late)
	x.finish()
	if x.wasted+x.unsure+x.reborn > 0 {
		t.Errorf("%d attempts were wasted, %d enqueues were not answered", x.wasted, x.unsure)
	}
}

// Two servers on one Redis that do not know each other: the second one owns
// nothing, and says whom it does not see and what to do.
func TestServersThatDoNotKnowEachOtherAreWarned(t *testing.T) {
	severalServers(t)
	url := redistest.Start(t).URL()
	first := startProcess(t, "--store", url, "--node-name", "first", "--grpc-addr", claimAddr(t))
	second := startProcess(t, "--store", url, "--node-name", "second", "--grpc-addr", claimAddr(t))
	for _, p := range []*process{first, second} {
		c, err := client.Dial(p.addr, client.Config{Timeout: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Enqueue(t.Context(), client.Task{Topic: "mail"}); err != nil {
			t.Fatal(err)
		}
	}
	await(t, "the warning", func() bool { return strings.Contains(second.said(), "(--gossip-addr, --join)") })
	if said := first.said(); strings.Contains(said, "--gossip-addr") {
		t.Errorf("the first server, which owns everything, says %s", said)
	}
}

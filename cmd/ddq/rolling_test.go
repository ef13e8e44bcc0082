//go:build unix

package main

import (
	"syscall"
	"testing"
	"time"

	"github.com/ddq-io/ddq/store/redisstore/redistest"
)

// Three nodes are stopped and started, one after the other. Leases and holds last longer
// than the machine stands still: what runs out is no attempt that a restart wasted.
func TestRollingRestartWastesNoAttempt(t *testing.T) {
	severalServers(t)
	s := startServers(t, redistest.Start(t).URL(), 3, "--lease-ttl", "20s")
	x := newTraffic(t)
	x.hold = 20 * time.Second
	x.start(s.addrs())
	awaitActive(t, x.admin, 3)
	x.awaitPlaced()
	x.watch()
	for i, p := range s.nodes {
		x.awaitMore(200)
		began := time.Now()
		if code, rest := p.terminate(t); code != 0 {
			t.Errorf("node %d: exit code %d, stderr %s", i, code, rest)
		}
		s.start(i)
		awaitActive(t, x.admin, 3)
		x.awaitPlaced()
		x.awaitService(time.Now())
		t.Logf("node %d was away, and all was in place again, within %v", i, time.Since(began).Round(time.Millisecond))
	}
	gaps, late := x.watched()
	t.Logf("longest gaps by shard: %v; latest deliveries: %v", gaps, late)
	x.finish()
	if x.wasted+x.unsure+x.reborn > 0 {
		t.Errorf("%d attempts were wasted, %d enqueues were not answered", x.wasted, x.unsure)
	}
}

// An owner stands still for longer than its lease, and goes on as if nothing had
// happened.
func TestFrozenNodeChangesNothingWhenItWakes(t *testing.T) {
	severalServers(t)
	s := startServers(t, redistest.Start(t).URL(), 3)
	x := startTraffic(t, s.grpc[0]+","+s.grpc[1])
	x.work(s.grpc[2])
	awaitActive(t, x.admin, 3)
	before := x.awaitPlaced()
	x.awaitMore(200)

	x.watch()
	frozen := time.Now()
	if err := s.nodes[2].cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	x.awaitService(frozen)
	t.Logf("served elsewhere %v after the owner of its shards froze", time.Since(frozen).Round(time.Millisecond))
	await(t, "the others to own all", func() bool {
		for _, owner := range x.awaitPlaced() {
			if owner == "n2" {
				return false
			}
		}
		return true
	})
	gaps, _ := x.watched()
	t.Logf("owners were %v; longest gaps by shard: %v", before, gaps)
	x.awaitMore(800) // it sleeps on, until the holds that it had just made have run out

	if err := s.nodes[2].cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	woken := time.Now()
	awaitActive(t, x.admin, 3)
	x.awaitPlaced()
	x.awaitService(woken)
	t.Logf("a member with its shards again %v after it woke", time.Since(woken).Round(time.Millisecond))
	x.finish()
}

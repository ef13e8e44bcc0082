//go:build linux

package main

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/store/redisstore/redistest"
)

// Hosts of the lab; the nodes are 1 to 3.
const (
	redisHost  = 4
	clientHost = 5
)

// splitFor is DDQ_TEST_SPLIT, such as 32s: longer than members remember the dead, which must
// look for each other after it.
func splitFor(t *testing.T) time.Duration {
	t.Helper()
	asked := os.Getenv("DDQ_TEST_SPLIT")
	if asked == "" {
		return 2 * outage
	}
	d, err := time.ParseDuration(asked)
	if err != nil {
		t.Fatalf("DDQ_TEST_SPLIT: %v", err)
	}
	return d
}

// outage is longer than a lease, and than a hold.
const outage = 4 * time.Second

// network is three nodes, a Redis and the traffic, on a host each.
type network struct {
	*testing.T
	lab     *lab
	traffic *traffic
	nodes   []*client.Client
}

// startNetwork has workers at one node only, or, with 0, at each.
func startNetwork(t *testing.T, workers int) *network {
	t.Helper()
	l := startLab(t, clientHost)
	redistest.StartBehind(t, l.enter(redisHost), "--port", "6379", "--bind", "10.78.0.4", "--protected-mode", "no")
	s := &servers{T: t, settings: []string{"--store", "redis://" + l.addr(redisHost, 6379), "--insecure"}, nodes: make([]*process, 3)}
	for host := 1; host <= 3; host++ {
		s.grpc, s.gossip = append(s.grpc, l.addr(host, 9090)), append(s.gossip, l.addr(host, 7946))
		s.behind = append(s.behind, l.enter(host))
	}
	for i := range s.nodes {
		s.start(i)
	}
	n := &network{T: t, lab: l, traffic: newTraffic(t)}
	if workers > 0 {
		n.traffic.at = s.grpc[workers-1]
	}
	n.traffic.start(s.addrs(), l.from(clientHost))
	for _, addr := range s.grpc {
		n.nodes = append(n.nodes, n.traffic.dial(addr, []grpc.DialOption{l.from(clientHost)}))
		if workers == 0 {
			n.traffic.work(addr, l.from(clientHost)) // so that every node has one
		}
	}
	n.awaitTogether()
	n.traffic.delay(true) // frames may wait in a host for as long as it is cut off
	return n
}

// sees reports whether a node sees as many active nodes.
func (n *network) sees(node, want int) bool {
	ctx, cancel := context.WithTimeout(n.Context(), 5*time.Second)
	defer cancel()
	members, _ := n.nodes[node].Nodes(ctx)
	active := 0
	for _, m := range members {
		if m.State == client.NodeActive {
			active++
		}
	}
	return active == want
}

// awaitTogether waits until every node sees all, and each shard is where it belongs.
func (n *network) awaitTogether() {
	n.Helper()
	await(n.T, "one member list", func() bool { return n.sees(0, 3) && n.sees(1, 3) && n.sees(2, 3) })
	n.traffic.awaitPlaced()
}

// suffer makes a fault, waits for what is to happen meanwhile, heals it and says
// how long it took until all is as before.
func (n *network) suffer(what string, fault func(on bool), meanwhile func()) {
	n.Helper()
	n.traffic.watch()
	began := time.Now()
	fault(true)
	meanwhile()
	gaps, late := n.traffic.watched()
	healed := time.Now()
	fault(false)
	await(n.T, "one member list", func() bool { return n.sees(0, 3) && n.sees(1, 3) && n.sees(2, 3) })
	listed := time.Since(healed)
	n.traffic.awaitPlaced()
	n.traffic.awaitService(healed)
	n.Logf("%s for %v: longest gaps by shard %v, latest deliveries %v; one member list %v after, all in place and at work %v after", what,
		healed.Sub(began).Round(time.Millisecond), gaps, late, listed.Round(time.Millisecond), time.Since(healed).Round(time.Millisecond))
}

// goOnFor lets traffic go on for a while.
func (n *network) goOnFor(d time.Duration) {
	until := time.Now().Add(d)
	n.traffic.awaitService(until.Add(-d / 2))
	await(n.T, "a while", func() bool { return time.Now().After(until) })
}

func TestNetworkFaultsLoseNothing(t *testing.T) {
	severalServers(t)
	n := startNetwork(t, 0)
	n.suffer("no way between node 3 and the others", func(on bool) {
		n.lab.sever(1, 3, on)
		n.lab.sever(2, 3, on)
	}, func() {
		healing := time.Now().Add(splitFor(t))
		await(t, "the split to be seen", func() bool { return n.sees(0, 2) && n.sees(1, 2) && n.sees(2, 1) })
		n.goOnFor(time.Until(healing))
	})
	n.suffer("no way from node 1 to node 2", func(on bool) {
		n.lab.severOneWay(1, 2, on)
	}, func() { n.goOnFor(outage) })
	n.suffer("no way between node 2 and Redis", func(on bool) {
		n.lab.sever(2, redisHost, on)
	}, func() { n.goOnFor(outage) })
	n.suffer("no way between the workers and node 1", func(on bool) {
		n.lab.sever(1, clientHost, on)
	}, func() { n.goOnFor(outage) })
	n.suffer("1 of 50 frames lost, all delayed by up to 20 ms", func(on bool) {
		if on {
			n.lab.disturb(0.02, 20*time.Millisecond)
		} else {
			n.lab.disturb(0, 0)
		}
	}, func() { n.goOnFor(outage) })
	n.traffic.finish()
}

// A node that the others do not see, and that reaches the store like them, has no worker: what
// it owns goes to where one is, and both sides say what is wrong.
func TestShardsOfANodeThatNobodySeesGoToWorkers(t *testing.T) {
	severalServers(t)
	n := startNetwork(t, 1)
	n.suffer("no way between node 3, which has no worker, and the others", func(on bool) {
		n.lab.sever(1, 3, on)
		n.lab.sever(2, 3, on)
	}, func() {
		await(t, "the split to be seen", func() bool { return n.sees(0, 2) && n.sees(1, 2) && n.sees(2, 1) })
		n.traffic.awaitService(time.Now())
		for _, node := range []int{0, 2} {
			await(t, "a warning", func() bool { return n.warns(node, "--gossip-addr") })
		}
		n.goOnFor(outage)
	})
	n.traffic.finish()
}

// warns reports whether a node has a warning with some words.
func (n *network) warns(node int, words string) bool {
	ctx, cancel := context.WithTimeout(n.Context(), 5*time.Second)
	defer cancel()
	info, err := n.nodes[node].Server(ctx)
	return err == nil && strings.Contains(strings.Join(info.Warnings, "\n"), words)
}

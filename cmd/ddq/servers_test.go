//go:build unix

package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/bench/port"
)

// servers are the processes of one fleet, each at addresses of its own that it
// keeps when it is started again.
type servers struct {
	*testing.T
	settings []string
	grpc     []string
	gossip   []string
	http     []string   // where metrics are; nowhere by default
	behind   [][]string // commands that run the processes; none by default
	nodes    []*process
}

// startServers starts a fleet and waits until each node serves.
func startServers(t *testing.T, store string, n int, settings ...string) *servers {
	t.Helper()
	s := newServers(t, store, n, settings...)
	s.startAll()
	return s
}

// newServers is a fleet none of which runs.
func newServers(t *testing.T, store string, n int, settings ...string) *servers {
	t.Helper()
	s := &servers{T: t, settings: append([]string{"--store", store}, settings...), behind: make([][]string, n), nodes: make([]*process, n)}
	for range n {
		s.grpc, s.gossip = append(s.grpc, claimAddr(t)), append(s.gossip, claimAddr(t))
	}
	return s
}

func (s *servers) startAll() {
	s.Helper()
	for i := range s.nodes {
		s.start(i)
	}
}

// start runs a node that does not run.
func (s *servers) start(i int) {
	s.Helper()
	args := append([]string{
		"--node-name", fmt.Sprint("n", i), "--grpc-addr", s.grpc[i], "--gossip-addr", s.gossip[i], "--join", strings.Join(s.gossip, ","),
	}, s.settings...)
	if s.http != nil {
		args = append(args, "--http-addr", s.http[i])
	}
	p := startProcessIn(s.T, s.behind[i], args...)
	s.nodes[i] = p
	s.Cleanup(func() {
		p.kill()
		if s.Failed() {
			said := p.said()
			s.Logf("node %d: %s", i, said[max(0, len(said)-4000):])
		}
	})
}

// addrs is what a client of all nodes dials.
func (s *servers) addrs() string { return strings.Join(s.grpc, ",") }

// claimAddr is a loopback address for one server until the test ends, also when it is
// started again.
func claimAddr(t *testing.T) string {
	t.Helper()
	claim, err := port.New(port.Loopback)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { claim.Release() })
	return claim.Addr()
}

// awaitActive waits until a node sees as many active nodes.
func awaitActive(t *testing.T, c *client.Client, want int) {
	t.Helper()
	await(t, fmt.Sprint(want, " active nodes"), func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		nodes, err := c.Nodes(ctx)
		if err != nil {
			t.Fatalf("nodes: %v", err)
		}
		active := 0
		for _, n := range nodes {
			if n.State == client.NodeActive {
				active++
			}
		}
		return active == want
	})
}

// await waits for up to a minute until something is so.
func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited a minute for %s", what)
		}
	}
}

package cluster_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/cluster"
	"github.com/ddq-io/ddq/cluster/clustertest"
)

// restart begins the next life of a node at the same address.
func (f *fleet) restart(n *node) *node {
	f.Helper()
	m, err := cluster.Start(f.Context(), cluster.Config{
		Node:      cluster.Node{Name: n.Self().Name, Addr: n.Self().Addr},
		Transport: f.net.Restart(n.addr),
		Profile:   cluster.Local,
		Join:      []string{f.nodes[0].addr},
	}, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		f.Fatal(err)
	}
	if err := m.SetState(cluster.Active); err != nil {
		f.Fatal(err)
	}
	next := &node{m, n.addr}
	f.nodes = append(f.nodes, next)
	return next
}

// sameLife waits until n sees the current life of other.
func (f *fleet) sameLife(n, other *node, within time.Duration) {
	f.Helper()
	end := time.Now().Add(within)
	for {
		for _, m := range n.Nodes() {
			if m.Start == other.Self().Start {
				return
			}
		}
		if time.Now().After(end) {
			f.Fatalf("%s does not see the new life of %s after %v", n.Self().Name, other.Self().Name, within)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestRestartBeforeTheCrashIsNoticed(t *testing.T) {
	bubble(t, func(f *fleet) {
		a, b, c := f.three()
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		next := f.restart(b)
		f.sameLife(a, next, time.Second)
		f.sameLife(c, next, time.Second)
	})
}

func TestRestartElsewhereBeforeTheCrashIsNoticed(t *testing.T) {
	bubble(t, func(f *fleet) {
		a, b, c := f.three()
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		next := f.start("b")
		f.sameLife(a, next, 30*time.Second)
		f.sameLife(c, next, 30*time.Second)
	})
}

func TestTakenNameIsRefused(t *testing.T) {
	bubble(t, func(f *fleet) {
		a, b, _ := f.three()
		_, transport := f.net.Join()
		m, err := cluster.Start(f.Context(), cluster.Config{
			Node:      cluster.Node{Name: "b", Addr: "elsewhere:1"},
			Transport: transport,
			Join:      []string{a.addr},
		}, slog.New(slog.DiscardHandler), nil)
		if m != nil || !errors.Is(err, cluster.ErrNameTaken) || !strings.Contains(err.Error(), b.addr) {
			t.Fatalf("got %v, want ErrNameTaken and %s", err, b.addr)
		}
		time.Sleep(10 * time.Second)
		f.see(a, 0, "a:a", "b:a", "c:a")
		if got := a.Nodes()[1].Start; got != b.Self().Start {
			t.Error("the node that had the name first is gone")
		}
	})
}

func TestNodesWithoutACommonProtocolDoNotMeet(t *testing.T) {
	bubble(t, func(f *fleet) {
		a := f.start("a")
		speaks := func(low, high int) func(*cluster.Config) {
			return func(c *cluster.Config) { c.Node.ProtocolMin, c.Node.ProtocolMax = low, high }
		}
		later := f.start("z", speaks(cluster.ProtocolMax+1, cluster.ProtocolMax+2))
		f.start("b", speaks(cluster.ProtocolMin, cluster.ProtocolMax+1))
		time.Sleep(time.Minute)
		f.see(a, 0, "a:a", "b:a")
		f.see(later, 0, "b:a", "z:a")
	})
}

func TestShortOneWayPartitionHeals(t *testing.T) {
	for _, inward := range []bool{true, false} {
		bubble(t, func(f *fleet) {
			a, b, c := f.three()
			cut := func(on bool) {
				for _, n := range []*node{b, c} {
					if inward {
						f.net.Cut(n.addr, a.addr, on)
					} else {
						f.net.Cut(a.addr, n.addr, on)
					}
				}
			}
			cut(true)
			time.Sleep(20 * time.Second)
			cut(false)
			for _, n := range f.nodes {
				f.see(n, 15*time.Second, "a:a", "b:a", "c:a")
			}
		})
	}
}

func TestCrashIsNoticedInTheTimeOfTheProfile(t *testing.T) {
	for profile, bound := range map[cluster.Profile]time.Duration{
		cluster.Local: 2 * time.Second, cluster.LAN: 3 * time.Second, cluster.WAN: time.Minute,
	} {
		bubble(t, func(f *fleet) {
			watching := func(c *cluster.Config) { c.Profile = profile }
			a, b, c := f.start("a", watching), f.start("b", watching), f.start("c", watching)
			for _, n := range f.nodes {
				f.see(n, time.Minute, "a:a", "b:a", "c:a")
			}
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			at := time.Now()
			f.see(a, bound, "a:a", "c:a")
			f.see(c, bound, "a:a", "c:a")
			t.Logf("%s: noticed after %v", profile, time.Since(at))
		})
	}
}

func TestSlowNetworkKeepsMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{T: t, net: &clustertest.Network{Delay: 20 * time.Millisecond}}
		a, _, _ := f.three()
		for range 120 {
			time.Sleep(time.Second)
			f.see(a, 0, "a:a", "b:a", "c:a")
		}
		for _, n := range f.nodes {
			_ = n.Leave(t.Context())
		}
		time.Sleep(time.Minute)
	})
}

func TestStopsMayRepeatAndDoNotHang(t *testing.T) {
	bubble(t, func(f *fleet) {
		a, b, c := f.three()
		over, cancel := context.WithCancel(f.Context())
		cancel()
		f.net.Split([]string{c.addr}, []string{a.addr, b.addr}, true)
		began := time.Now()
		_ = c.Leave(over) // nobody hears it
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("leaving alone took %v", took)
		}
		if err := errors.Join(c.Leave(over), c.Close()); err != nil {
			t.Error(err)
		}
		if err := c.SetState(cluster.Draining); err == nil {
			t.Error("a node that left announced a state")
		}
	})
}

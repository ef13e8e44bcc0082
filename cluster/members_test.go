package cluster_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/bench/port"
	"github.com/ddq-io/ddq/cluster"
	"github.com/ddq-io/ddq/cluster/clustertest"
)

// fleet is nodes on a network in memory, in a bubble.
type fleet struct {
	*testing.T
	net   *clustertest.Network
	nodes []*node
}

type node struct {
	*cluster.Members
	addr string
}

func bubble(t *testing.T, test func(f *fleet)) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{T: t, net: &clustertest.Network{}}
		defer func() {
			for _, n := range f.nodes {
				_ = n.Leave(t.Context()) // those that were cut off cannot
			}
			time.Sleep(time.Minute) // timers of the library end by themselves
		}()
		test(f)
	})
}

// start starts a node that joins the first one, and makes it active.
func (f *fleet) start(name string, edit ...func(*cluster.Config)) *node {
	f.Helper()
	addr, transport := f.net.Join()
	c := cluster.Config{
		Node:      cluster.Node{Name: name, Addr: name + ":9090"},
		Transport: transport,
		Profile:   cluster.Local,
	}
	if len(f.nodes) > 0 {
		c.Join = []string{f.nodes[0].addr}
	}
	for _, e := range edit {
		e(&c)
	}
	m, err := cluster.Start(f.Context(), c, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		f.Fatal(err)
	}
	if err := m.SetState(cluster.Active); err != nil {
		f.Fatal(err)
	}
	n := &node{m, addr}
	f.nodes = append(f.nodes, n)
	return n
}

// see waits until a node's view is as it should be: names with the first letter
// of their state, in order.
func (f *fleet) see(n *node, within time.Duration, want ...string) {
	f.Helper()
	end := time.Now().Add(within)
	for {
		var got []string
		for _, m := range n.Nodes() {
			got = append(got, m.Name+":"+m.State.String()[:1])
		}
		if slices.Equal(got, want) {
			return
		}
		left := time.Until(end)
		if left <= 0 {
			f.Fatalf("%s sees %v, want %v", n.Self().Name, got, want)
		}
		select {
		case <-n.Changed():
		case <-time.After(left):
		}
	}
}

func (f *fleet) three(edit ...func(*cluster.Config)) (a, b, c *node) {
	f.Helper()
	a, b, c = f.start("a", edit...), f.start("b", edit...), f.start("c", edit...)
	within := 2 * time.Second
	if f.net.Loss > 0 {
		within = 30 * time.Second // what packets lose, the exchange of all state brings
	}
	for _, n := range f.nodes {
		f.see(n, within, "a:a", "b:a", "c:a")
	}
	return a, b, c
}

func TestNodesFindEachOther(t *testing.T) {
	bubble(t, func(f *fleet) {
		a, _, c := f.three()
		d := f.start("d", func(c *cluster.Config) { c.Node.Addr = ":9090" })
		f.see(a, 2*time.Second, "a:a", "b:a", "c:a", "d:a")
		if host, _, _ := strings.Cut(d.addr, ":"); a.Nodes()[3].Addr != host+":9090" || d.Nodes()[3].Addr != host+":9090" {
			t.Errorf("d is seen at %s and %s", a.Nodes()[3].Addr, d.Nodes()[3].Addr)
		}
		if got := a.Nodes()[2]; got.Addr != "c:9090" || got.Start != c.Self().Start || got.Start == "" {
			t.Errorf("c as a sees it: %+v", got)
		}
	})
}

func TestLeaveIsSeenAtOnce(t *testing.T) {
	bubble(t, func(f *fleet) {
		a, b, c := f.three()
		if err := b.Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.see(a, 500*time.Millisecond, "a:a", "c:a")
		f.see(c, 500*time.Millisecond, "a:a", "c:a")
	})
}

func TestDrainingIsSeenByAll(t *testing.T) {
	bubble(t, func(f *fleet) {
		a, b, c := f.three()
		if err := b.SetState(cluster.Draining); err != nil {
			t.Fatal(err)
		}
		for _, n := range []*node{a, b, c} {
			f.see(n, time.Second, "a:a", "b:d", "c:a")
		}
		if err := b.SetState(cluster.Active); err != nil {
			t.Fatal(err)
		}
		f.see(c, time.Second, "a:a", "b:a", "c:a")
	})
}

func TestRulesOfZonesAreSeenByAll(t *testing.T) {
	bubble(t, func(f *fleet) {
		a, b, _ := f.three()
		const rules = 1<<63 + 1 // no float64 holds it
		if err := b.SetRules(rules); err != nil {
			t.Fatal(err)
		}
		for a.Nodes()[1].Rules != rules {
			<-a.Changed()
		}
		if got := a.Nodes(); got[0].Rules != 0 || got[1].State != cluster.Active || got[2].Rules != 0 {
			t.Errorf("a sees %+v", got)
		}
		if err := b.SetState(cluster.Draining); err != nil {
			t.Fatal(err)
		}
		f.see(a, time.Second, "a:a", "b:d", "c:a")
		if got := a.Nodes()[1].Rules; got != rules {
			t.Errorf("rules of b after it drained: %d", got)
		}
	})
}

func TestRulesWithoutRoomLeaveTheNodeAMember(t *testing.T) {
	bubble(t, func(f *fleet) {
		a := f.start("a")
		b := f.start("b", func(c *cluster.Config) { c.Node.Zone = strings.Repeat("z", 430) })
		f.see(a, 2*time.Second, "a:a", "b:a")
		if err := b.SetRules(1<<64 - 1); err == nil {
			t.Error("there is room for the rules")
		}
		if err := b.SetState(cluster.Draining); err != nil {
			t.Fatal(err)
		}
		f.see(a, time.Second, "a:a", "b:d")
	})
}

func TestCrashIsNoticed(t *testing.T) {
	bubble(t, func(f *fleet) {
		a, b, c := f.three()
		f.net.Split([]string{b.addr}, []string{a.addr, c.addr}, true)
		f.see(a, 3*time.Second, "a:a", "c:a")
		f.see(c, 3*time.Second, "a:a", "c:a")
	})
}

func TestHealedPartitionHasOneMemberList(t *testing.T) {
	for _, lasts := range []time.Duration{5 * time.Second, 90 * time.Second, 10 * time.Minute} {
		t.Run(lasts.String(), func(t *testing.T) {
			bubble(t, func(f *fleet) {
				a, b, c := f.three()
				f.net.Split([]string{a.addr}, []string{b.addr, c.addr}, true)
				time.Sleep(lasts)
				f.see(a, 0, "a:a")
				f.see(b, 0, "b:a", "c:a")
				f.net.Split([]string{a.addr}, []string{b.addr, c.addr}, false)
				for _, n := range f.nodes {
					f.see(n, 15*time.Second, "a:a", "b:a", "c:a")
				}
			})
		})
	}
}

func TestOneWayPartitionHeals(t *testing.T) {
	bubble(t, func(f *fleet) {
		a, b, c := f.three()
		f.net.Cut(a.addr, b.addr, true)
		f.net.Cut(a.addr, c.addr, true)
		time.Sleep(90 * time.Second)
		f.net.Cut(a.addr, b.addr, false)
		f.net.Cut(a.addr, c.addr, false)
		for _, n := range f.nodes {
			f.see(n, 15*time.Second, "a:a", "b:a", "c:a")
		}
	})
}

func TestLossyNetworkKeepsMembers(t *testing.T) {
	for _, profile := range []cluster.Profile{cluster.Local, cluster.LAN} {
		t.Run(string(profile), func(t *testing.T) { keepsMembers(t, profile) })
	}
}

func keepsMembers(t *testing.T, profile cluster.Profile) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{T: t, net: &clustertest.Network{Loss: 0.1}}
		a, b, c := f.three(func(c *cluster.Config) { c.Profile = profile })
		flaps := 0
		for range 60 {
			time.Sleep(time.Second)
			for _, n := range []*node{a, b, c} {
				if len(n.Nodes()) != 3 {
					flaps++
				}
			}
		}
		if flaps > 2 {
			t.Errorf("members were missing %d times of 180", flaps)
		}
		for _, n := range f.nodes {
			_ = n.Leave(t.Context())
		}
		time.Sleep(time.Minute)
	})
}

func TestFirstNodesMayComeInAnyOrder(t *testing.T) {
	bubble(t, func(f *fleet) {
		a := f.start("a", func(c *cluster.Config) { c.Join = []string{"10.0.0.2:7946"} })
		f.see(a, 0, "a:a")
		b := f.start("b", func(c *cluster.Config) { c.Join = nil })
		f.see(a, 15*time.Second, "a:a", "b:a")
		f.see(b, 15*time.Second, "a:a", "b:a")
	})
}

func TestRestartUnderTheSameNameIsSeen(t *testing.T) {
	bubble(t, func(f *fleet) {
		a, b, _ := f.three()
		old := b.Self().Start
		f.net.Split([]string{b.addr}, []string{a.addr, f.nodes[2].addr}, true)
		f.see(a, 3*time.Second, "a:a", "c:a")
		time.Sleep(2 * time.Second)
		f.start("b")
		f.see(a, 5*time.Second, "a:a", "b:a", "c:a")
		if got := a.Nodes()[1].Start; got == old {
			t.Error("the old life of the node is still seen")
		}
	})
}

func TestKeysRotateWithoutASplit(t *testing.T) {
	const first, second = "MDEyMzQ1Njc4OWFiY2RlZg==", "ZmVkY2JhOTg3NjU0MzIxMA=="
	bubble(t, func(f *fleet) {
		encrypted := func(c *cluster.Config) { c.Keys = []string{first} }
		f.start("a", encrypted)
		f.start("b", encrypted)
		stranger := f.start("c")
		steps := [][]string{{first, second}, {second, first}, {second}}
		for _, keys := range steps {
			for _, n := range f.nodes[:2] {
				if err := n.UseKeys(keys); err != nil {
					t.Fatal(err)
				}
				time.Sleep(10 * time.Second)
				f.see(f.nodes[0], 0, "a:a", "b:a")
				f.see(f.nodes[1], 0, "a:a", "b:a")
			}
		}
		f.see(stranger, 0, "c:a")
		if err := stranger.UseKeys([]string{first}); err == nil {
			t.Error("a node without encryption took a key")
		}
	})
}

func TestBadConfigIsRefused(t *testing.T) {
	ok := cluster.Node{Name: "a", Addr: "a:9090"}
	for want, c := range map[string]cluster.Config{
		"a node needs a name":     {Node: cluster.Node{Addr: "a:1"}},
		"needs a name and an":     {Node: cluster.Node{Name: "a"}},
		"there is no key":         {Node: ok, Addr: "0.0.0.0:0"},
		"is not base64":           {Node: ok, Keys: []string{"?"}},
		"has 3 bytes":             {Node: ok, Keys: []string{"YWJj"}},
		"is not one of local":     {Node: ok, Profile: "moon"},
		"missing port in address": {Node: ok, Addr: "127.0.0.1"},
		"more than 512":           {Node: cluster.Node{Name: "a", Addr: "a:1", Zone: strings.Repeat("z", 500)}},
	} {
		m, err := cluster.Start(t.Context(), c, slog.New(slog.DiscardHandler), nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		if m != nil {
			_ = m.Leave(t.Context())
		}
	}
}

func TestNodesMeetOverRealSockets(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var members []*cluster.Members
	join := []string(nil)
	for i := range 3 {
		m, err := cluster.Start(ctx, cluster.Config{
			Node: cluster.Node{Name: fmt.Sprint("n", i), Addr: "127.0.0.1:1"},
			Addr: "127.0.0.1:0",
			Join: join,
		}, slog.New(slog.DiscardHandler), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Leave(ctx) //nolint:errcheck // the second time it does nothing
		members, join = append(members, m), []string{m.Addr()}
	}
	for _, m := range members {
		for len(m.Nodes()) != 3 {
			select {
			case <-m.Changed():
			case <-ctx.Done():
				t.Fatalf("%d nodes seen", len(m.Nodes()))
			}
		}
	}
	if err := members[1].Leave(ctx); err != nil {
		t.Fatal(err)
	}
	for len(members[0].Nodes()) != 2 {
		select {
		case <-members[0].Changed():
		case <-ctx.Done():
			t.Fatal("the node that left is still seen")
		}
	}
}

// The first node of a fleet is usually told to join itself; that is no news.
func TestFirstNodeDoesNotWarnOfItself(t *testing.T) {
	claim, err := port.New(port.Loopback)
	if err != nil {
		t.Fatal(err)
	}
	defer claim.Release()
	self := claim.Addr()
	for join, warns := range map[string]bool{self: false, "127.0.0.1:1": true} {
		var log bytes.Buffer
		m, err := cluster.Start(t.Context(), cluster.Config{
			Node: cluster.Node{Name: "n1", Addr: "127.0.0.1:1"}, Addr: self, Join: []string{join},
		}, slog.New(slog.NewTextHandler(&log, nil)), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Leave(t.Context()); err != nil {
			t.Error(err)
		}
		if got := strings.Contains(log.String(), "no other node reached yet"); got != warns {
			t.Errorf("join %s: warned %v: %s", join, got, log.String())
		}
	}
}

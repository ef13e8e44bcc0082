package cluster

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

func nodesOf(n int) (nodes []Node) {
	for i := range n {
		nodes = append(nodes, Node{Name: fmt.Sprint("node-", i), Addr: "x:1", State: Active})
	}
	return nodes
}

const testShards = 4096

func ownersOf(nodes []Node) []string {
	p := NewPlacement(nodes)
	owners := make([]string, testShards)
	for i := range owners {
		n, _ := p.Owner(fmt.Sprint("topic-", i/16), i%16)
		owners[i] = n.Name
	}
	return owners
}

func TestOnlyWhatMustMoveMoves(t *testing.T) {
	for n := 1; n < 12; n++ {
		before, after := ownersOf(nodesOf(n)), ownersOf(nodesOf(n+1))
		newcomer, moved := fmt.Sprint("node-", n), 0
		for i := range before {
			if before[i] == after[i] {
				continue
			}
			moved++
			if after[i] != newcomer {
				t.Fatalf("a shard moved from %s to %s as %s joined", before[i], after[i], newcomer)
			}
		}
		if share := float64(moved) / testShards; math.Abs(share-1/float64(n+1)) > 0.05 {
			t.Errorf("%.3f of the shards moved to the newcomer of %d", share, n+1)
		}
	}
}

func TestOrderOfNodesDoesNotMatter(t *testing.T) {
	nodes := nodesOf(7)
	want := ownersOf(nodes)
	slices.Reverse(nodes)
	if !slices.Equal(want, ownersOf(nodes)) {
		t.Error("owners depend on the order of the nodes")
	}
}

func TestWeightsAreShares(t *testing.T) {
	nodes := nodesOf(3)
	nodes[2].Weight = 200 // against 100
	count := map[string]int{}
	for _, owner := range ownersOf(nodes) {
		count[owner]++
	}
	for name, want := range map[string]float64{"node-0": .25, "node-1": .25, "node-2": .5} {
		if got := float64(count[name]) / testShards; math.Abs(got-want) > 0.03 {
			t.Errorf("%s has %.3f of the shards, want %.2f", name, got, want)
		}
	}
}

func TestOnlyActiveNodesOwn(t *testing.T) {
	nodes := nodesOf(3)
	nodes[0].State, nodes[1].State = Joining, Draining
	for _, owner := range ownersOf(nodes) {
		if owner != "node-2" {
			t.Fatalf("a shard is placed on %q", owner)
		}
	}
	nodes[2].State = Draining
	if n, ok := NewPlacement(nodes).Owner("t", 0); ok {
		t.Errorf("a shard is placed on %q though nobody is active", n.Name)
	}
}

// The answer is part of the protocol: nodes of different builds must agree.
func TestOwnersAreTheSameInEveryBuild(t *testing.T) {
	p, got := NewPlacement(nodesOf(3)), ""
	for shard := range 16 {
		n, _ := p.Owner("mail", shard)
		got += n.Name[len(n.Name)-1:]
	}
	if want := "2010102202021201"; got != want {
		t.Errorf("owners %s, want %s", got, want)
	}
}

func FuzzDescription(f *testing.F) {
	n := Node{Name: "a", Addr: "x:1", State: Active, ProtocolMin: 1, ProtocolMax: 1}
	b, _ := n.encode()
	f.Add(b)
	f.Add([]byte(`{"t":9}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		n, err := decodeNode("a", b)
		if err != nil {
			return
		}
		again, err := n.encode()
		if err != nil {
			return // longer than what fits, but understood
		}
		if m, err := decodeNode("a", again); err != nil || m != n {
			t.Errorf("%+v became %+v, %v", n, m, err)
		}
	})
}

func TestNodesOfAnotherProtocolAreRefused(t *testing.T) {
	n := Node{Name: "a", Addr: "x:1", State: Active, ProtocolMin: ProtocolMax + 1, ProtocolMax: ProtocolMax + 2}
	b, err := n.encode()
	if err != nil {
		t.Fatal(err)
	}
	other, err := decodeNode("a", b)
	self := Node{ProtocolMin: ProtocolMin, ProtocolMax: ProtocolMax}
	if err != nil || self.understands(&other) == nil {
		t.Error("accepted")
	}
}

func BenchmarkOwner(b *testing.B) {
	p := NewPlacement(nodesOf(8))
	for i := 0; b.Loop(); i++ {
		p.Owner("mail", i&255)
	}
}

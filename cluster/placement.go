package cluster

import (
	"encoding/binary"
	"math"

	"github.com/cespare/xxhash/v2"
)

// Placement says which node should own which shard. It depends on the nodes alone,
// not on their order, and does not change.
type Placement struct {
	nodes []candidate
}

// candidate is a node that may own shards.
type candidate struct {
	node   Node
	hash   uint64
	weight float64
}

// NewPlacement places shards on the active ones of nodes.
func NewPlacement(nodes []Node) *Placement {
	p := &Placement{}
	for _, n := range nodes {
		if n.State != Active {
			continue
		}
		weight := n.Weight
		if weight == 0 {
			weight = defaultWeight
		}
		p.nodes = append(p.nodes, candidate{n, xxhash.Sum64String(n.Name), float64(weight)})
	}
	return p
}

// Owner returns the node that should own a shard of a topic; none when no node is
// active.
func (p *Placement) Owner(topic string, shard int) (Node, bool) {
	hash := shardHash(topic, shard)
	best, owner := math.Inf(-1), -1
	for i := range p.nodes {
		c := &p.nodes[i]
		score := c.score(hash)
		// Equal scores are next to impossible; the name keeps nodes in agreement.
		if score > best || score == best && c.node.Name < p.nodes[owner].node.Name {
			best, owner = score, i
		}
	}
	if owner < 0 {
		return Node{}, false
	}
	return p.nodes[owner].node, true
}

func shardHash(topic string, shard int) uint64 {
	b := make([]byte, 0, 160)
	b = append(b, topic...)
	b = append(b, '/')
	return xxhash.Sum64(binary.BigEndian.AppendUint32(b, uint32(shard)))
}

// score is weight / -ln(u), with u uniform in (0, 1) and the same wherever it is
// computed: the greatest of several is as likely as its weight is great.
func (c *candidate) score(shard uint64) float64 {
	u := (float64(mix(c.hash^shard)>>11) + 0.5) / (1 << 53)
	return -c.weight / math.Log(u)
}

// mix is the finalizer of SplitMix64 (Steele, Lea and Flood, 2014): every bit of
// its input changes each of the result with even odds.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

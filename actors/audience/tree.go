package audience

import (
	"errors"
	"slices"
	"sort"
	"strings"

	"github.com/ddq-io/ddq/store"
)

// LeafKind is the kind of the cells that leaves are.
const LeafKind = 'L'

// deepest is how many bits of a position may name a leaf. Recipients whose positions
// begin with the same bits beyond that share a leaf of any size.
const deepest = 48

// prefix names the positions that begin with some bits.
type prefix struct {
	bits  uint8
	first Position
}

// last is the last position that begins with the bits.
func (p prefix) last() Position { return p.first | ^Position(0)>>p.bits }

func (p prefix) has(at Position) bool { return p.first <= at && at <= p.last() }

// children are the two halves of the positions.
func (p prefix) children() (left, right prefix) {
	left = prefix{p.bits + 1, p.first}
	return left, prefix{p.bits + 1, p.first | 1<<(63-p.bits)}
}

// id is the cell of a leaf: the bits are in its key as text.
func (p prefix) id(zone string) store.CellID {
	var b strings.Builder
	b.WriteByte(LeafKind)
	b.WriteString(zone)
	b.WriteByte('/')
	for i := range p.bits {
		b.WriteByte('0' + byte(p.first>>(63-i)&1))
	}
	return store.CellID(b.String())
}

// tree are the leaves of a zone, in order. Each position is in one of them.
type tree []prefix

// newTree is one leaf for all.
func newTree() tree { return tree{{}} }

// at returns where among the leaves that of a position is.
func (t tree) at(p Position) int {
	return sort.Search(len(t), func(i int) bool { return t[i].first > p }) - 1
}

// within returns the leaves that have positions from one up to and including another.
func (t tree) within(first, last Position) []prefix {
	return t[t.at(first) : t.at(last)+1]
}

// split puts the two children of a leaf in its place.
func (t *tree) split(i int) (left, right prefix) {
	left, right = (*t)[i].children()
	*t = slices.Replace(*t, i, i+1, left, right)
	return left, right
}

// encode writes the tree in preorder, a bit a node: 1 has two children.
func (t tree) encode() []byte {
	var out []byte
	var nodes int
	put := func(bit byte) {
		if nodes%8 == 0 {
			out = append(out, 0)
		}
		out[nodes/8] |= bit << (nodes % 8)
		nodes++
	}
	var depth uint8 // of the node that is next
	for _, leaf := range t {
		for ; depth < leaf.bits; depth++ {
			put(1)
		}
		put(0)
		// Behind a leaf comes the right child of the nearest node of which it is on the left.
		for depth > 0 && leaf.first>>(64-depth)&1 == 1 {
			depth--
		}
	}
	return out
}

var errBadTree = errors.New("the tree of a zone is not whole")

func decodeTree(b []byte) (tree, error) {
	var t tree
	for nodes, open := 0, []prefix{{}}; len(open) > 0; nodes++ {
		p := open[len(open)-1]
		if nodes/8 >= len(b) || p.bits > deepest {
			return nil, errBadTree
		}
		open = open[:len(open)-1]
		if b[nodes/8]>>(nodes%8)&1 == 0 {
			t = append(t, p)
			continue
		}
		left, right := p.children()
		open = append(open, right, left)
	}
	return t, nil
}

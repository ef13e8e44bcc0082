package store

import (
	"encoding/binary"
	"errors"
	"slices"
)

// Receipt is what a shard knows of a queue of another one: which of its messages are settled. A number up
// to the floor is, and so is one of Above. A settled one was made unless it is among Refused.
//
// It has the invariant of the relay: a number is settled once, whoever receives it in whatever order.
type Receipt struct {
	Floor   int64
	Above   []int64 // rising, above Floor, MaxReceive at most, and what came with the head since it was full
	Refused []int64 // rising: all of Above that were refused, and of those before the last ones, KeptRefused in all
}

// Settled returns which of some numbers are settled: made, and refused.
func (r *Receipt) Settled(numbers []int64) (made, refused []int64) {
	for _, n := range numbers {
		switch {
		case has(r.Refused, n):
			refused = append(refused, n)
		case n <= r.Floor || has(r.Above, n):
			made = append(made, n)
		}
	}
	return made, refused
}

func has(rising []int64, n int64) bool {
	_, found := slices.BinarySearch(rising, n)
	return found
}

// Check returns what is in the way of a Receive: Received, with what is settled of it, WindowFull, or OK. The head of the
// queue always has room, with what comes with it: the floor rises behind it only.
func (r *Receipt) Check(rc *Receive) CommitResult {
	made, refused := r.Settled(rc.Numbers)
	made2, refused2 := r.Settled(rc.Refused)
	if made, refused = append(made, made2...), append(refused, refused2...); len(made)+len(refused) > 0 {
		return CommitResult{Status: Received, Made: made, Refused: refused}
	}
	head := slices.Contains(rc.Numbers, rc.Head) || slices.Contains(rc.Refused, rc.Head)
	if next := r.Take(rc, nil); len(next.Above) > MaxReceive && !head {
		return CommitResult{Status: WindowFull}
	}
	return CommitResult{Status: OK}
}

// Take returns the receipt once a Receive has been made that was checked, or a part of it. What the Receive refuses, and of
// its numbers those in notMade, are refused.
func (r *Receipt) Take(rc *Receive, notMade []int64) (next Receipt) {
	next.Floor = max(r.Floor, rc.Head-1)
	next.Above = slices.Concat(r.Above, rc.Numbers, rc.Refused)
	slices.Sort(next.Above)
	covered, found := slices.BinarySearch(next.Above, next.Floor)
	if found {
		covered++
	}
	next.Above = next.Above[covered:]
	next.Refused = slices.Concat(r.Refused, rc.Refused, notMade)
	slices.Sort(next.Refused)
	below := 0
	for below < len(next.Refused) && next.Refused[below] <= next.Floor {
		below++
	}
	next.Refused = next.Refused[min(below, max(0, len(next.Refused)-KeptRefused)):]
	return next
}

// ReceiptFormat is the first byte of the body of a receipt.
const ReceiptFormat = 1

// Append appends the body of the entity that a receipt is:
//
//	1  format
//	8  floor
//	2  how many numbers are above it
//	   these, 8 each, and the refused ones, 8 each
//
// Integers are big-endian. The scripts of Redis read and write it, too.
func (r *Receipt) Append(b []byte) []byte {
	b = append(b, ReceiptFormat)
	b = binary.BigEndian.AppendUint64(b, uint64(r.Floor))
	b = binary.BigEndian.AppendUint16(b, uint16(len(r.Above)))
	for _, numbers := range [...][]int64{r.Above, r.Refused} {
		for _, n := range numbers {
			b = binary.BigEndian.AppendUint64(b, uint64(n))
		}
	}
	return b
}

// ErrReceipt is returned for the receipt of a queue that cannot be read. Nothing is received then: it could
// have been before.
var ErrReceipt = errors.New("the receipt of a queue cannot be read")

// DecodeReceipt reads the body of a receipt. An empty one is that of a queue of which nothing was received yet.
func DecodeReceipt(b []byte) (r Receipt, err error) {
	if len(b) == 0 {
		return r, nil
	}
	const head = 11
	if len(b) < head || b[0] != ReceiptFormat || (len(b)-head)%8 != 0 {
		return r, ErrReceipt
	}
	r.Floor = int64(binary.BigEndian.Uint64(b[1:]))
	above := int(binary.BigEndian.Uint16(b[9:]))
	var numbers []int64
	for rest := b[head:]; len(rest) > 0; rest = rest[8:] {
		numbers = append(numbers, int64(binary.BigEndian.Uint64(rest)))
	}
	if above > len(numbers) {
		return r, ErrReceipt
	}
	r.Above, r.Refused = slices.Clone(numbers[:above]), slices.Clone(numbers[above:])
	return r, nil
}

// Outcome is what becomes of the numbers of a Receive once the tasks of its commit came to what they did: those
// that are settled, and which of these are refused. adds is CommitResult.Adds, nil if every task was added.
func (r *Receive) Outcome(adds []AddResult) (settled, refused []int64) {
	for i, n := range r.Numbers {
		if i < len(adds) {
			switch adds[i].Status {
			case LeftOut, Closed:
				continue
			case Taken, Conflict:
				refused = append(refused, n)
			}
		}
		settled = append(settled, n)
	}
	return settled, refused
}

// Keying decides which tasks of a commit can be added under their keys: one whose id, key, or task that has the
// key is not what the commit has changed before. So a store need not see what it is about to write.
type Keying struct{ ids, keys map[string]bool }

// NewKeying begins with what a commit changes besides.
func NewKeying(c *Commit) *Keying {
	k := &Keying{make(map[string]bool), make(map[string]bool)}
	for i := range c.Acks {
		k.ids[c.Acks[i].ID] = true
	}
	for _, r := range c.Removes {
		k.ids[r.ID] = true
	}
	for _, id := range c.Cancels {
		k.ids[id] = true
	}
	for _, t := range c.Adds {
		if t.Key == nil {
			k.ids[t.ID] = true
		}
	}
	return k
}

// Takes reports whether a task whose key has a holder, empty: none, can be added. If so, it notes what that changes.
func (k *Keying) Takes(t *Task, holder string) bool {
	if k.ids[t.ID] || k.keys[t.Mark()] || holder != "" && k.ids[holder] {
		return false
	}
	k.ids[t.ID], k.keys[t.Mark()] = true, true
	if holder != "" {
		k.ids[holder] = true
	}
	return true
}

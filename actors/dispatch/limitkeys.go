package dispatch

import (
	"container/heap"
	"iter"
	"math"
	"time"

	"github.com/ddq-io/ddq/store"
)

// keyName names a rate or cap of a topic.
type keyName struct {
	rate bool
	key  string // empty: the topic's
}

// limitKey is a rate or cap as this node believes it to be. The store has the last word: it was asked, and
// refused, or it told that something is there.
type limitKey struct {
	keyName
	most int // of a cap; of a rate: how many groups can go at a time
	has  int // how many may go
	more int // of a cap: how many more than that are asked for, see asks

	closed bool      // nothing goes until again, or a notice
	again  time.Time // when it is looked at
	news   bool      // what a call says that is on its way is older than a notice
	inLine bool      // this node has a place in line
	turn   time.Time // since when it has been this node's turn; zero: it is not
	asked  bool      // and it asked

	parked groupHeap // groups that lack it
	open   int       // groups that have it and are open
	refs   int       // groups that have it
	picked int       // wants, while they are picked
	said   uint64    // the call by which it lacked something last
	dirty  bool      // it is in limitKeys.dirty
}

// wanted is how many groups are to be open, as far as there are any.
func (k *limitKey) wanted() int {
	switch {
	case k.closed:
		return 0
	case k.rate:
		return max(1, k.has)
	}
	return max(1, k.asks()-1)
}

// asks is for how many permits of a cap this node asks: for more than it believes to be there, so that it is in line when they
// are fewer. It hears of one that another node freed, where there may be many: so it asks for twice as many more each time that
// it gets them all, and for one more once it was refused.
func (k *limitKey) asks() int { return min(k.has+k.more, max(k.most+1, k.more)) }

// took records that a permit was granted.
func (k *limitKey) took() {
	if k.has > 0 {
		k.has--
		return
	}
	k.more = min(k.more+1, max(k.more, k.most)) // for each of so many that were there: twice as many
}

// passed records that a task could have had a permit, and took none, as it is a dead letter. Any number may do so.
func (k *limitKey) passed() { k.more = min(k.more+1, store.MaxWants) }

// limitKeys are the rates and caps that groups have, those of the topic and its namespace, which are gates
// for all of them, and when each is looked at again.
type limitKeys struct {
	by    map[keyName]*limitKey
	gates []*limitKey
	dirty []*limitKey // groups of these may be opened
	wakes wakeHeap
}

// keyOf returns a key, which it makes if it is new.
func (s *limitKeys) keyOf(name keyName, l *store.TopicLimits) *limitKey {
	k := s.by[name]
	if k == nil {
		k = &limitKey{keyName: name, most: l.Cap(name.key), has: l.Cap(name.key), more: 1}
		if name.rate {
			rate := l.RateOf(name.key)
			k.most = rate.Most() + int(2*store.TokenHorizon/max(1, rate.Spacing())) + 1
			k.has = math.MaxInt
		}
		s.by[name] = k
	}
	return k
}

// soil has a key looked at, which may have more groups open.
func (s *limitKeys) soil(k *limitKey) {
	if !k.dirty {
		k.dirty = true
		s.dirty = append(s.dirty, k)
	}
}

// refused closes a key until again, unless a notice is newer.
func (s *limitKeys) refused(k *limitKey, again time.Time) {
	k.more = 1
	if k.inLine = true; k.news {
		return
	}
	k.closed, k.has, k.turn = true, 0, time.Time{}
	s.wakeAt(k, again)
}

// granted records that a want has all that it needs: it took one of each cap, and the node is in no line.
func (s *limitKeys) granted(w store.Want) {
	for k := range s.ofWant(w) {
		k.inLine, k.turn = false, time.Time{}
		if !k.rate {
			k.took()
			s.soil(k)
		}
	}
}

// over records that a want had a place and could have had its permits, and was over a rate.
func (s *limitKeys) over(w store.Want) {
	for k := range s.ofWant(w) {
		if !k.rate {
			k.passed()
			s.soil(k)
		}
	}
}

// ofWant yields the keys of a want that are known: its own, those of the topic, and that of the namespace.
func (s *limitKeys) ofWant(w store.Want) iter.Seq[*limitKey] {
	names := [...]keyName{{}, {key: store.NamespaceCap}, {rate: true}, {key: w.CapKey}, {true, w.RateKey}}
	return func(yield func(*limitKey) bool) {
		for i, name := range names {
			k := s.by[name]
			if k == nil || i > 2 && name.key == "" { // it has no such key
				continue
			}
			if !yield(k) {
				return
			}
		}
	}
}

// reopen has groups of a key go again.
func (s *limitKeys) reopen(k *limitKey) {
	if k.closed = false; k.rate {
		k.has = k.most
	}
	s.soil(k)
}

// wakeAt has a key looked at.
func (s *limitKeys) wakeAt(k *limitKey, at time.Time) {
	k.again = at
	heap.Push(&s.wakes, wake{at, k})
}

// due opens the keys whose moment has come.
func (s *limitKeys) due(now time.Time) {
	for next := s.wakes.next(); next != nil && !next.again.After(now); next = s.wakes.next() {
		heap.Pop(&s.wakes)
		next.again = time.Time{}
		if next.closed {
			s.reopen(next)
		}
	}
}

// shut is a gate that nothing goes through.
func (s *limitKeys) shut() *limitKey {
	for _, k := range s.gates {
		if k.closed {
			return k
		}
	}
	return nil
}

// through is how many of n tasks may be asked for by the caps of all.
func (s *limitKeys) through(n int) int {
	for _, k := range s.gates {
		if !k.rate {
			n = min(n, k.asks())
		}
	}
	return n
}

// wake is a moment at which a key is looked at. One that the key does not have as again is void.
type wake struct {
	at  time.Time
	key *limitKey
}

// wakeHeap has the next on top.
type wakeHeap []wake

func (h wakeHeap) Len() int           { return len(h) }
func (h wakeHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h wakeHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push is for heap only, as is Pop.
func (h *wakeHeap) Push(x any) { *h = append(*h, x.(wake)) }

// Pop takes the last one.
func (h *wakeHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// next is the key that is looked at next, nil for none.
func (h *wakeHeap) next() *limitKey {
	for len(*h) > 0 {
		if first := (*h)[0]; first.key.again.Equal(first.at) {
			return first.key
		}
		heap.Pop(h)
	}
	return nil
}

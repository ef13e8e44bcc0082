package actors

import (
	"cmp"
	"slices"

	"github.com/ddq-io/ddq/store"
)

// core is a topic's bookkeeping: which due tasks wait for a worker, and how many
// more each subscription may take. It has no clock, no goroutine and no I/O; the
// topic actor owns it and carries out what it decides.
//
// Invariants:
//   - a subscription's credit is never negative
//   - room = min(credit, max - inFlight) is what it may be given; inFlight counts
//     what was assigned and is not settled
//   - after every method, no subscription has room while a task is ready, unless
//     the topic is paused
//
// Priorities, rates, caps and ordering keys belong in match: it alone decides
// which ready task goes next, and whether.
type core struct {
	ready  []readyTask // in order of readyTask.compare, from head on
	head   int
	subs   []*subState // in turn order
	turn   int         // index into subs of the next to serve
	paused bool
}

// readyTask is a due task waiting for a worker.
type readyTask struct {
	shard int
	store.Entry
}

// compare orders by due time; equal ones stay in order of arrival.
func (a readyTask) compare(b readyTask) int { return cmp.Compare(a.Due, b.Due) }

// subState is one subscription as the core sees it.
type subState struct {
	id       int64
	max      int // max in flight
	credit   int
	inFlight int
}

func (s *subState) room() int { return max(0, min(s.credit, s.max-s.inFlight)) }

func (s *subState) take(n int) { s.credit -= n; s.inFlight += n }

// assignment gives tasks of one shard to one subscription.
type assignment struct {
	sub   int64
	shard int
	tasks []store.Entry
}

// add takes in tasks of a shard that became due, and returns what to hold.
func (c *core) add(shard int, tasks []store.Entry) []assignment {
	fresh := make([]readyTask, len(tasks))
	for i, t := range tasks {
		fresh[i] = readyTask{shard: shard, Entry: t}
	}
	slices.SortStableFunc(fresh, readyTask.compare)
	c.merge(fresh)
	return c.match()
}

// merge puts a sorted batch in its place. Due times mostly rise, so it is
// usually the end.
func (c *core) merge(fresh []readyTask) {
	for len(fresh) > 0 {
		last := len(c.ready) - 1
		if last < c.head || c.ready[last].compare(fresh[0]) <= 0 {
			c.ready = append(c.ready, fresh...)
			return
		}
		at, _ := slices.BinarySearchFunc(c.ready[c.head:], fresh[0], func(a, b readyTask) int {
			if a.compare(b) <= 0 {
				return -1
			}
			return 1
		})
		at += c.head
		n := 1
		for n < len(fresh) && fresh[n].compare(c.ready[at]) < 0 {
			n++
		}
		c.ready = slices.Insert(c.ready, at, fresh[:n]...)
		fresh = fresh[n:]
	}
}

// reserve takes room for up to n tasks that are due at once and not stored yet,
// and returns the subscription for each. None when others wait already.
func (c *core) reserve(n int) []int64 {
	if c.paused || c.waiting() > 0 {
		return nil
	}
	var given []int64
	c.deal(n, func(s *subState, share int) {
		for range share {
			given = append(given, s.id)
		}
	})
	return given
}

// subscribe adds a subscription without credit.
func (c *core) subscribe(id int64, maxInFlight int) {
	c.subs = append(c.subs, &subState{id: id, max: maxInFlight})
}

// unsubscribe forgets a subscription. What it has in flight stays held.
func (c *core) unsubscribe(id int64) {
	i := slices.IndexFunc(c.subs, func(s *subState) bool { return s.id == id })
	if i < 0 {
		return
	}
	c.subs = slices.Delete(c.subs, i, i+1)
	if c.turn > i {
		c.turn--
	}
	if c.turn == len(c.subs) {
		c.turn = 0
	}
}

// grant adds credit, up to the subscription's max in flight.
func (c *core) grant(id int64, n int) []assignment {
	if s := c.sub(id); s != nil {
		s.credit = min(s.credit+n, s.max)
	}
	return c.match()
}

// settled makes room: n tasks of the subscription are no longer in flight.
func (c *core) settled(id int64, n int) []assignment {
	if s := c.sub(id); s != nil {
		s.inFlight = max(0, s.inFlight-n)
	}
	return c.match()
}

// refund takes back n assignments that came to nothing.
func (c *core) refund(id int64, n int) []assignment {
	if s := c.sub(id); s != nil {
		s.inFlight = max(0, s.inFlight-n)
		s.credit = min(s.credit+n, s.max)
	}
	return c.match()
}

// drop forgets the ready tasks of a shard.
func (c *core) drop(shard int) {
	c.ready = slices.DeleteFunc(c.ready[c.head:], func(t readyTask) bool { return t.shard == shard })
	c.head = 0
}

// pause stops or resumes handing out tasks.
func (c *core) pause(paused bool) []assignment {
	c.paused = paused
	return c.match()
}

// match gives ready tasks to subscriptions with room, in turn, until one of the
// two runs out. Shares are even, so that frames are large and no subscription waits.
func (c *core) match() []assignment {
	if c.paused {
		return nil
	}
	var out []assignment
	c.deal(c.waiting(), func(s *subState, share int) {
		out = c.assign(out, s.id, c.ready[c.head:c.head+share])
		c.head += share
	})
	c.compact()
	return out
}

// assign appends tasks for one subscription, grouped by shard.
func (c *core) assign(out []assignment, sub int64, tasks []readyTask) []assignment {
	first := len(out)
	for _, t := range tasks {
		i := first
		for i < len(out) && out[i].shard != t.shard {
			i++
		}
		if i == len(out) {
			out = append(out, assignment{sub: sub, shard: t.shard})
		}
		out[i].tasks = append(out[i].tasks, t.Entry)
	}
	return out
}

// deal gives n tasks to subscriptions with room, in turn and in even shares.
func (c *core) deal(n int, give func(s *subState, share int)) {
	for n > 0 {
		open := c.open()
		if open == 0 {
			return
		}
		share := (n + open - 1) / open
		for i := 0; i < len(c.subs) && n > 0; i++ {
			s := c.subs[c.turn]
			c.turn = (c.turn + 1) % len(c.subs)
			if k := min(share, s.room(), n); k > 0 {
				s.take(k)
				give(s, k)
				n -= k
			}
		}
	}
}

// open is the number of subscriptions with room.
func (c *core) open() (n int) {
	for _, s := range c.subs {
		if s.room() > 0 {
			n++
		}
	}
	return n
}

func (c *core) sub(id int64) *subState {
	for _, s := range c.subs {
		if s.id == id {
			return s
		}
	}
	return nil
}

// waiting is the number of ready tasks.
func (c *core) waiting() int { return len(c.ready) - c.head }

// inFlight is the number of assigned and unsettled tasks.
func (c *core) inFlight() (n int) {
	for _, s := range c.subs {
		n += s.inFlight
	}
	return n
}

// credit is the sum of what subscriptions have granted.
func (c *core) credit() (n int) {
	for _, s := range c.subs {
		n += s.credit
	}
	return n
}

// compact frees what was handed out once it is most of the slice.
func (c *core) compact() {
	switch {
	case c.head == len(c.ready):
		c.ready, c.head = c.ready[:0], 0
		if cap(c.ready) > 65536 {
			c.ready = nil
		}
	case c.head > 4096 && c.head > len(c.ready)/2:
		n := copy(c.ready, c.ready[c.head:])
		clear(c.ready[n:])
		c.ready, c.head = c.ready[:n], 0
	}
}

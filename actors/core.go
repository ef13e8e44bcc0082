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
//     the topic is paused, what its pace allows is handed out, or as many are on their
//     way as may be
//   - a subscription on demand has no credit but what a task was found for
//
// Tasks that are ready at other nodes are not in ready: the core knows how many
// there are, and asks for them on behalf of subscriptions that have room.
//
// Which of the ready tasks is next is the line's to say.
type core struct {
	line               // of ready tasks
	subs   []*subState // in turn order
	turn   int         // index into subs of the next to serve
	paused bool

	paced bool // no more than pace may be handed out until the next setPace
	pace  int

	way  int // assigned tasks of which nobody said yet whether they are held
	most int // of them, see congestion; 0: any number, and they are not counted

	remotes []*remoteNode // other nodes with shards of the topic
	asked   []ask         // room given to them since the last takeAsked
	voided  []void        // credit on demand that found no task since takeVoided
}

// remoteNode is another node as the core sees it.
type remoteNode struct {
	name  string
	ready int // tasks that wait for credit there, as far as is known
}

// ask gives room of a subscription to tasks of another node.
type ask struct {
	sub  int64
	node string
	n    int
}

// void is credit that came to nothing.
type void struct {
	sub int64
	n   int
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
	onDemand bool
	links    map[string]bool // nodes that can be asked on its behalf
}

// room is what may be given: on demand, the node that asks knows what its worker
// has in flight better than the notices of it that arrive here.
func (s *subState) room() int {
	if s.onDemand {
		return s.credit
	}
	return max(0, min(s.credit, s.max-s.inFlight))
}

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
	c.line.add(fresh)
	return c.match()
}

// reserve takes room for up to n tasks that are due at once and not stored yet,
// and returns the subscription for each. None when others wait already.
func (c *core) reserve(n int) []int64 {
	if c.paused || c.waiting() > 0 {
		return nil
	}
	var given []int64
	c.deal(c.allowed(n), "", func(s *subState, share int) {
		c.pace -= share
		for range share {
			given = append(given, s.id)
		}
	})
	return given
}

// subscribe adds a subscription without credit.
func (c *core) subscribe(id int64, maxInFlight int, onDemand bool) {
	c.subs = append(c.subs, &subState{id: id, max: maxInFlight, onDemand: onDemand})
}

// link says whether a node can be asked on behalf of a subscription.
func (c *core) link(id int64, node string, open bool) []assignment {
	s := c.sub(id)
	switch {
	case s == nil:
	case !open:
		delete(s.links, node)
	case s.links == nil:
		s.links = map[string]bool{node: true}
	default:
		s.links[node] = true
	}
	return c.match()
}

// demand takes in how many tasks wait for credit at another node.
func (c *core) demand(node string, ready int) []assignment {
	for _, r := range c.remotes {
		if r.name == node {
			r.ready = ready
			return c.match()
		}
	}
	c.remotes = append(c.remotes, &remoteNode{node, ready})
	return c.match()
}

// takeAsked returns what to ask other nodes for.
func (c *core) takeAsked() []ask {
	asked := c.asked
	c.asked = nil
	return asked
}

// takeVoided returns the credit on demand that found no task.
func (c *core) takeVoided() []void {
	voided := c.voided
	c.voided = nil
	return voided
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

// arrived takes in that n assigned tasks are held.
func (c *core) arrived(n int) []assignment {
	c.way = max(0, c.way-n)
	return c.match()
}

// bound sets how many tasks may be on their way, 0 for any number.
func (c *core) bound(most int) []assignment {
	if c.most = most; most == 0 {
		c.way = 0
	}
	return c.match()
}

// refund takes back n assignments that came to nothing.
func (c *core) refund(id int64, n int) []assignment {
	c.way = max(0, c.way-n)
	if s := c.sub(id); s != nil {
		s.inFlight = max(0, s.inFlight-n)
		s.credit = min(s.credit+n, s.max)
	}
	return c.match() // credit on demand that finds no other task is void
}

// pause stops or resumes handing out tasks.
func (c *core) pause(paused bool) []assignment {
	c.paused = paused
	return c.match()
}

// setPace bounds how many tasks are handed out from now until it is called again.
func (c *core) setPace(n int) []assignment {
	c.paced, c.pace = true, n
	return c.match()
}

// endPace lets go of that bound.
func (c *core) endPace() []assignment {
	c.paced = false
	return c.match()
}

// allowed is how many of n tasks may be handed out now.
func (c *core) allowed(n int) int {
	if c.paced {
		return max(0, min(n, c.pace))
	}
	return n
}

// deliverable is the number of ready tasks that may be handed out now.
func (c *core) deliverable() int {
	n := c.allowed(c.waiting())
	if c.most > 0 {
		return max(0, min(n, c.most-c.way))
	}
	return n
}

// crowded reports whether ready tasks wait only for others to arrive.
func (c *core) crowded() bool { return c.most > 0 && c.way >= c.most && c.waiting() > 0 }

// match gives ready tasks to subscriptions with room, in turn, until one of the
// two runs out. Shares are even, so that frames are large and no subscription waits.
func (c *core) match() []assignment {
	var out []assignment
	if !c.paused {
		c.askRemotes()
		c.deal(c.deliverable(), "", func(s *subState, share int) {
			out = c.assign(out, s.id, c.take(share))
			c.pace -= share
			if c.most > 0 {
				c.way += share
			}
		})
		c.compact()
		if c.deliverable() == 0 {
			c.askRemotes() // what the tasks of this node left
		}
	}
	c.voidCredit()
	return out
}

// askRemotes gives room to tasks of other nodes. When there is not enough for all
// tasks, each node has its share of it, this one too: tasks do not wait longer for
// being elsewhere.
func (c *core) askRemotes() {
	if len(c.remotes) == 0 {
		return
	}
	ready := c.deliverable()
	for _, r := range c.remotes {
		ready += r.ready
	}
	room := c.room()
	for _, r := range c.remotes {
		n := r.ready
		if room < ready && n > 0 {
			n = (n*room + ready - 1) / ready
		}
		c.deal(n, r.name, func(s *subState, share int) {
			c.asked = append(c.asked, ask{s.id, r.name, share})
			r.ready -= share
		})
	}
}

// room is what subscriptions of this node's workers may be given.
func (c *core) room() (n int) {
	for _, s := range c.subs {
		if !s.onDemand {
			n += s.room()
		}
	}
	return n
}

// voidCredit takes back credit on demand that found no task.
func (c *core) voidCredit() {
	if c.crowded() {
		return
	}
	for _, s := range c.subs {
		if s.onDemand && s.credit > 0 {
			c.voided = append(c.voided, void{s.id, s.credit})
			s.credit = 0
		}
	}
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

// deal gives n tasks to subscriptions with room, in turn and in even shares. Those
// of another node go where it can be asked.
func (c *core) deal(n int, node string, give func(s *subState, share int)) {
	for n > 0 {
		open := c.open(node)
		if open == 0 {
			return
		}
		share := (n + open - 1) / open
		for i := 0; i < len(c.subs) && n > 0; i++ {
			s := c.subs[c.turn]
			c.turn = (c.turn + 1) % len(c.subs)
			if k := min(share, s.room(), n); k > 0 && s.takes(node) {
				s.take(k)
				give(s, k)
				n -= k
			}
		}
	}
}

// open is the number of subscriptions with room for tasks of a node.
func (c *core) open(node string) (n int) {
	for _, s := range c.subs {
		if s.room() > 0 && s.takes(node) {
			n++
		}
	}
	return n
}

// takes reports whether a subscription can have tasks of a node; empty is this one.
func (s *subState) takes(node string) bool { return node == "" || s.links[node] }

func (c *core) sub(id int64) *subState {
	for _, s := range c.subs {
		if s.id == id {
			return s
		}
	}
	return nil
}

// inFlight is the number of assigned and unsettled tasks of this node's workers.
func (c *core) inFlight() (n int) {
	for _, s := range c.subs {
		if !s.onDemand {
			n += s.inFlight
		}
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

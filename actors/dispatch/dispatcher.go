package dispatch

import (
	"cmp"
	"slices"
	"time"

	"github.com/ddq-io/ddq/store"
)

// dispatcher is a topic's bookkeeping: which due tasks wait for a worker, and how many
// more each subscription may take. It has no clock, no goroutine and no I/O; the
// Topic owns it and carries out what it decides.
//
// Invariants:
//   - a subscription's credit is never negative
//   - room = min(credit, max - InFlight) is what it may be given; InFlight counts
//     what was assigned and is not settled
//   - after every method, no subscription has room while a task is ready, unless
//     the topic is paused, what its pace allows is handed out, or unheld is at its bound
//   - a subscription on demand has no credit but what a task was found for, or waits
//     for room in bytes
//   - unheld counts what was assigned since count was called and is neither held nor
//     unassigned
//
// Tasks that are ready at other nodes are not in ready: the dispatcher knows how many
// there are, and asks for them on behalf of subscriptions that have room.
//
// Which of the ready tasks is next is the ready queue's to say.
type dispatcher struct {
	topic      string
	readyQueue             // of ready tasks of a topic that has had no limits
	limiter    *limiter    // has those of one that has, or had; nil: see readyQueue
	reserved   int         // room for tasks that are asked for, or whose tokens come
	subs       []*subState // in turn order
	turn       int         // index into subs of the next to serve
	paused     bool

	paced bool // no more than pace may be handed out until the next SetPace
	pace  int
	asks  int // and no more than asks may be asked of other nodes

	counting bool // see count
	unheld   unheld
	most     int // of unheld, see widen; 0: any number

	remotes remoteNodes // other nodes with shards of the topic
	dealt   int         // whose turn it is of these, and of this node: places that cannot be divided
	asked   []Ask       // room given to them, see Effects
	voided  []Void      // credit on demand that found no task
}

// readyTask is a due task waiting for a worker.
type readyTask struct {
	Shard int
	store.Entry
}

// compare orders by due time; equal ones stay in order of arrival.
func (a readyTask) compare(b readyTask) int { return cmp.Compare(a.Due, b.Due) }

// subState is one subscription as the dispatcher sees it.
type subState struct {
	ID       int64
	Max      int // max in flight
	Credit   int
	InFlight int
	OnDemand bool
	links    map[string]bool // nodes that can be asked on its behalf
	bytes    ByteRoom        // nil: any number

	visibility time.Duration // of its holds
}

// ByteRoom bounds what a subscription is given by the bytes of its bodies, in tasks of
// the usual size. There may be more room at any time; the dispatcher is told by roomy.
type ByteRoom interface {
	Room() int
	Take(n int)   // n tasks were given
	Landed(n int) // of n tasks nothing will come
}

// room is what may be given: on demand, the node that asks knows what its worker
// has in flight better than the notices of it that arrive here.
func (s *subState) room() int {
	n := s.Credit
	if !s.OnDemand {
		n = max(0, min(s.Credit, s.Max-s.InFlight))
	}
	if n > 0 && s.bytes != nil {
		n = min(n, s.bytes.Room())
	}
	return n
}

func (s *subState) take(n int) {
	s.Credit -= n
	s.InFlight += n
	if s.bytes != nil {
		s.bytes.Take(n)
	}
}

// Address is where an assignment goes: which shard holds tasks for which subscription.
type Address struct {
	Sub   int64
	Shard int
}

// Compare orders addresses by subscription, then by shard.
func (a Address) Compare(b Address) int {
	return cmp.Or(cmp.Compare(a.Sub, b.Sub), cmp.Compare(a.Shard, b.Shard))
}

// assignment gives tasks of one shard to one subscription.
type assignment struct {
	Sub      int64
	Shard    int
	Tasks    []store.Entry
	OnDemand bool // the subscription
}

// add records tasks of a shard that became due, and returns what to hold.
func (c *dispatcher) add(shard int, tasks []store.Entry) []assignment {
	fresh := make([]readyTask, len(tasks))
	for i, t := range tasks {
		fresh[i] = readyTask{Shard: shard, Entry: t}
	}
	if c.limiter != nil {
		for _, t := range fresh {
			c.limiter.add(t)
		}
	} else {
		c.readyQueue.add(fresh)
	}
	return c.match()
}

// Waiting is the number of ready tasks that could go.
func (c *dispatcher) Waiting() int {
	if c.limiter != nil {
		return c.limiter.offer()
	}
	return c.readyQueue.Waiting()
}

// reserve takes room for up to n tasks that are due at once and not stored yet,
// and returns the subscription for each. None when others wait already.
func (c *dispatcher) reserve(n int) []int64 {
	if c.paused || c.Waiting() > 0 {
		return nil
	}
	var given []int64
	c.deal(c.allowed(min(n, c.free())), "", func(s *subState, share int) {
		c.pace -= share
		for range share {
			given = append(given, s.ID)
		}
	})
	return given
}

// subscribe adds a subscription without credit.
func (c *dispatcher) subscribe(s *Subscription) []assignment {
	c.subs = append(c.subs, &subState{ID: s.ID, Max: s.MaxInFlight, OnDemand: s.OnDemand, visibility: s.Visibility, bytes: s.Bytes})
	return c.match()
}

// unsubscribe forgets a subscription. What it has in flight stays held.
func (c *dispatcher) unsubscribe(id int64) {
	i := slices.IndexFunc(c.subs, func(s *subState) bool { return s.ID == id })
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
func (c *dispatcher) grant(id int64, n int) []assignment {
	if s := c.sub(id); s != nil {
		s.Credit = min(s.Credit+n, s.Max)
	}
	return c.match()
}

// settled makes room: n tasks of the subscription are no longer in flight.
func (c *dispatcher) settled(id int64, n int) []assignment {
	if s := c.sub(id); s != nil {
		s.InFlight = max(0, s.InFlight-n)
	}
	return c.match()
}

// refund gives back the credit for n tasks that the subscription does not get: room that
// was reserved or asked for, and assignments that are not counted.
func (c *dispatcher) refund(id int64, n int) []assignment {
	if s := c.sub(id); s != nil {
		s.InFlight = max(0, s.InFlight-n)
		s.Credit = min(s.Credit+n, s.Max)
		if s.bytes != nil {
			s.bytes.Landed(n)
		}
	}
	return c.match() // credit on demand that finds no other task is void
}

// age sets how often the longest due task goes first, see readyQueue.
func (c *dispatcher) age(every int) { c.readyQueue.every = every }

// pause stops or resumes handing out tasks.
func (c *dispatcher) pause(paused bool) []assignment {
	c.paused = paused
	return c.match()
}

// setPace bounds how many tasks are handed out, and how many are asked of other nodes,
// from now until it is called again.
func (c *dispatcher) setPace(n, asks int) []assignment {
	c.paced, c.pace, c.asks = true, n, asks
	return c.match()
}

// endPace lets go of that bound.
func (c *dispatcher) endPace() []assignment {
	c.paced = false
	return c.match()
}

// allowed is how many of n tasks may be handed out now, besides those that have reserved room.
func (c *dispatcher) allowed(n int) int {
	if c.paced {
		return max(0, min(n, c.pace-c.reserved))
	}
	return n
}

// deliverable is the number of ready tasks that may be handed out now.
func (c *dispatcher) deliverable() int {
	n := c.allowed(c.Waiting())
	if c.most > 0 {
		return max(0, min(n, c.most-c.unheld.n-c.reserved))
	}
	return n
}

// crowded reports whether ready tasks wait only for others to be held.
func (c *dispatcher) crowded() bool {
	return c.most > 0 && c.unheld.n+c.reserved >= c.most && c.Waiting() > 0
}

// match gives ready tasks to subscriptions with room, in turn, until one of the
// two runs out. Shares are even, so that frames are large and no subscription waits.
// Those of a topic with limits are given by the assigner, which ends with left.
func (c *dispatcher) match() []assignment {
	var out []assignment
	if c.limiter != nil {
		if !c.paused {
			c.askRemotes()
		}
		return nil
	}
	if !c.paused {
		c.askRemotes()
		c.deal(c.deliverable(), "", func(s *subState, share int) {
			out = c.assign(out, s, c.take(share))
			c.pace -= share
		})
		if c.counting {
			c.unheld.add(out)
		}
		c.compact()
		if c.deliverable() == 0 {
			c.askRemotes() // what the tasks of this node left
		}
	}
	c.voidCredit()
	return out
}

// left gives away what room the tasks of this node left.
func (c *dispatcher) left() {
	if !c.paused && c.deliverable() == 0 {
		c.askRemotes()
	}
	c.voidCredit()
}

// free is how much room nobody has reserved.
func (c *dispatcher) free() (n int) {
	for _, s := range c.subs {
		n += s.room()
	}
	return max(0, n-c.reserved)
}

// room is what subscriptions of this node's workers may be given.
func (c *dispatcher) room() (n int) {
	for _, s := range c.subs {
		if !s.OnDemand {
			n += s.room()
		}
	}
	return n
}

// voidCredit takes back credit on demand that found no task. What has no room in bytes
// is kept while tasks wait: given back, it would be granted for them again at once. So is what tasks have
// reserved: else it would go to and fro until they go.
func (c *dispatcher) voidCredit() {
	if c.crowded() || c.limiter != nil && c.limiter.call != nil {
		return
	}
	reserved := c.reserved - c.room()
	for _, s := range c.subs {
		if !s.OnDemand || s.Credit == 0 || c.deliverable() > 0 && s.room() == 0 {
			continue
		}
		kept := max(0, min(reserved, s.room()))
		reserved -= kept
		if n := s.Credit - kept; n > 0 {
			c.voided = append(c.voided, Void{s.ID, n})
			s.Credit = kept
		}
	}
}

// assign appends tasks for one subscription, grouped by shard.
func (c *dispatcher) assign(out []assignment, sub *subState, tasks []readyTask) []assignment {
	first := len(out)
	for _, t := range tasks {
		i := first
		for i < len(out) && out[i].Shard != t.Shard {
			i++
		}
		if i == len(out) {
			out = append(out, assignment{Sub: sub.ID, Shard: t.Shard, OnDemand: sub.OnDemand})
		}
		out[i].Tasks = append(out[i].Tasks, t.Entry)
	}
	return out
}

// deal gives n tasks to subscriptions with room, in turn and in even shares. Those
// of another node go where it can be asked.
func (c *dispatcher) deal(n int, node string, give func(s *subState, share int)) {
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
func (c *dispatcher) open(node string) (n int) {
	for _, s := range c.subs {
		if s.room() > 0 && s.takes(node) {
			n++
		}
	}
	return n
}

// takes reports whether a subscription can have tasks of a node; empty is this one.
func (s *subState) takes(node string) bool { return node == "" || s.links[node] }

func (c *dispatcher) sub(id int64) *subState {
	for _, s := range c.subs {
		if s.ID == id {
			return s
		}
	}
	return nil
}

// inFlight is the number of assigned and unsettled tasks of this node's workers.
func (c *dispatcher) inFlight() (n int) {
	for _, s := range c.subs {
		if !s.OnDemand {
			n += s.InFlight
		}
	}
	return n
}

// credit is the sum of what subscriptions have granted.
func (c *dispatcher) credit() (n int) {
	for _, s := range c.subs {
		n += s.Credit
	}
	return n
}

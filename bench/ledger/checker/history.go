package checker

import (
	"cmp"
	"slices"

	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/ledger/clock"
	"github.com/ddq-io/ddq/bench/ledger/verdict"
)

// History is everything that the clients of a run wrote down.
type History struct {
	Events  int // in all files
	Clients []string
	Audited bool // the end of the run was looked at

	stories   map[string]*story          // by topic and id
	schedules map[string]*diary          // by topic and name
	workflows map[string]*course         // by topic and id
	registers map[string]*register       // of audiences, by the topic of their runs
	acks      map[string][]*op           // that enqueue tasks, by the sums of these
	next      map[string][]*story        // tasks that acks enqueued, by their sums
	holds     map[string]int64           // how long a hold of a topic lasts, in ms
	topics    map[string]*ledger.Event   // how they were made
	changes   map[string]*story          // of topics
	backlogs  []*ledger.Event            // see Ordered
	workers   map[string][]*ledger.Event // of topics, see Works
	grants    []*op                      // calls for tokens
	drops     []*op                      // of topics
	groups    map[string]*group          // calls about many tasks, by their names
	logs      map[string][]*ledger.Event // of topics: what they had in the end
	watches   map[string][]*ledger.Event // by their names
	died      map[string]bool            // tasks, by topic and id, that are dead as the logs end
	faults    []verdict.Fault            // on the monotonic clock
	clock     clock.Clock
	from      int64 // mono of the first event
	to        int64 // of the last
	wall      int64 // the time of day at from
}

// Read reads every ledger in dir.
func Read(dir string) (*History, error) {
	files, err := ledger.ReadAll(dir)
	if err != nil {
		return nil, err
	}
	return New(files), nil
}

// New makes a history of the events of each client, in the order in which it wrote
// them down. It keeps the events, and every one must name its client.
func New(files [][]ledger.Event) *History {
	h := &History{stories: map[string]*story{}, schedules: map[string]*diary{}, workflows: map[string]*course{}, registers: map[string]*register{}, acks: map[string][]*op{}, next: map[string][]*story{}, holds: map[string]int64{}, topics: map[string]*ledger.Event{}, changes: map[string]*story{}, groups: map[string]*group{}, workers: map[string][]*ledger.Event{}, logs: map[string][]*ledger.Event{}, watches: map[string][]*ledger.Event{}, died: map[string]bool{}}
	for _, events := range files {
		if len(events) > 0 {
			h.Clients = append(h.Clients, events[0].Client)
		}
		h.add(events)
	}
	h.adoptNext()
	for _, s := range h.stories {
		switch {
		case s.recipient != "":
			h.adoptRecipient(s)
		case s.schedule != "":
			h.adopt(s)
		case s.making != nil:
			h.adoptStep(s)
		}
		s.dropped(h.drops)
		s.sort()
		h.gather(s)
	}
	for _, d := range h.schedules {
		d.sort()
	}
	for _, c := range h.workflows {
		c.sort()
	}
	for _, r := range h.registers {
		r.sort()
	}
	for _, w := range h.watches {
		slices.SortStableFunc(w, func(a, b *ledger.Event) int { return cmp.Compare(a.Mono, b.Mono) })
	}
	slices.SortFunc(h.faults, func(a, b verdict.Fault) int { return cmp.Compare(a.From, b.From) })
	h.clock.Ready()
	return h
}

// add takes the events of one client.
func (h *History) add(events []ledger.Event) {
	calls, changes := map[uint64]*op{}, map[uint64]*op{}
	for i := range events {
		e := &events[i]
		h.Events++
		if h.from == 0 || e.Mono < h.from {
			h.from, h.wall = e.Mono, e.Wall
		}
		h.to = max(h.to, e.Mono)
		h.clock.See(e)
		switch e.Kind {
		case ledger.Topic:
			h.holds[e.Topic], h.topics[e.Topic] = e.HoldMS, e
		case ledger.Fault:
			h.faults = append(h.faults, verdict.Fault{Name: e.Fault, From: e.Mono, To: never})
		case ledger.Healed:
			h.heal(e)
		case ledger.Audited:
			h.Audited = true
		case ledger.Call, ledger.Answer, ledger.Delivered, ledger.Ran, ledger.Found:
			if e.Op == ledger.Acquire {
				record(&h.grants, e, calls)
				continue
			}
			if e.Op == ledger.Drop {
				record(&h.drops, e, calls)
				continue
			}
			if e.Task == "" && isOfAudience(e) {
				h.register(e.Topic).add(e, calls)
				continue
			}
			if e.Schedule != "" && e.Task == "" {
				h.diary(e.Topic, e.Schedule).add(e, calls)
				continue
			}
			if e.Flow != "" && e.Task == "" {
				h.course(e.Topic, e.Flow).add(e, calls)
				continue
			}
			if e.Task == "" {
				h.change(e, changes)
				continue
			}
			h.story(e).add(e, calls)
		case ledger.Watching, ledger.Told, ledger.Expired, ledger.Failed:
			h.watches[e.Watch] = append(h.watches[e.Watch], e)
		case ledger.Ordered:
			h.backlogs = append(h.backlogs, e)
		case ledger.Works:
			h.workers[e.Topic] = append(h.workers[e.Topic], e)
		case ledger.Logged:
			h.logs[e.Topic] = append(h.logs[e.Topic], e)
			h.died[e.Topic+"/"+e.Task] = e.Change.What == "dead"
		case ledger.Opened, ledger.Clock:
		}
	}
}

func (h *History) story(e *ledger.Event) *story {
	key := e.Topic + "/" + e.Task
	s := h.stories[key]
	if s == nil {
		s = &story{topic: e.Topic, id: e.Task}
		h.stories[key] = s
	}
	return s
}

// change records an event about a topic.
func (h *History) change(e *ledger.Event, calls map[uint64]*op) {
	s := h.changes[e.Topic]
	if s == nil {
		s = &story{topic: e.Topic}
		h.changes[e.Topic] = s
	}
	s.events = append(s.events, e)
	switch e.Kind {
	case ledger.Call:
		o := &op{Event: e, result: ledger.Unknown, to: never}
		calls[e.Call] = o
		s.edits = append(s.edits, o)
	case ledger.Answer:
		if o := calls[e.Call]; o != nil {
			o.answer, o.result, o.to = e, e.Result, e.Mono
		}
	case ledger.Found:
		s.found = e
	case ledger.Opened, ledger.Topic, ledger.Delivered, ledger.Ran, ledger.Fault, ledger.Healed, ledger.Clock, ledger.Audited, ledger.Watching, ledger.Told, ledger.Expired, ledger.Failed, ledger.Logged, ledger.Ordered, ledger.Works:
	}
}

// record adds a call that is not about one task to those of its kind, or its answer.
func record(kind *[]*op, e *ledger.Event, calls map[uint64]*op) {
	if e.Kind == ledger.Call {
		o := &op{Event: e, result: ledger.Unknown, to: never}
		calls[e.Call], *kind = o, append(*kind, o)
		return
	}
	if o := calls[e.Call]; o != nil {
		o.answer, o.result, o.to = e, e.Result, e.Mono
		delete(calls, e.Call)
	}
}

// group is a call about many tasks, as each of them has it.
type group struct {
	stories []*story
	ops     []*op
}

// gather adds what a story has of calls about many tasks.
func (h *History) gather(s *story) {
	for _, o := range slices.Concat(s.removals, s.edits) {
		if o.Group == "" {
			continue
		}
		g := h.groups[o.Group]
		if g == nil {
			g = &group{}
			h.groups[o.Group] = g
		}
		g.stories, g.ops = append(g.stories, s), append(g.ops, o)
	}
}

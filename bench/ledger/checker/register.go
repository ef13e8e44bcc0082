package checker

import (
	"cmp"
	"slices"

	"github.com/ddq-io/ddq/bench/ledger"
)

// register is all that is known about an audience, and the schedule whose runs go through it.
type register struct {
	topic   string
	events  []*ledger.Event // of the schedule and its runs
	puts    []*op           // of the schedule
	members map[string]*member
	found   map[int64]*ledger.Event // runs at the end, by occurrence
}

// member is a recipient.
type member struct {
	id      string
	events  []*ledger.Event
	joins   []*op
	moves   []*op
	refuses []*op    // opts out, or drops out
	tasks   []*story // of all runs
}

// register returns the one of the topic of a schedule.
func (h *History) register(topic string) *register {
	r := h.registers[topic]
	if r == nil {
		r = &register{topic: topic, members: map[string]*member{}, found: map[int64]*ledger.Event{}}
		h.registers[topic] = r
	}
	return r
}

// isOfAudience reports whether an event is about an audience, or the schedule of one.
func isOfAudience(e *ledger.Event) bool { return e.Recipient != "" || e.Spread != nil || e.Walk != nil }

// add takes an event that is not about a task.
func (r *register) add(e *ledger.Event, calls map[uint64]*op) {
	if e.Recipient != "" {
		r.member(e.Recipient).add(e, calls)
		return
	}
	r.events = append(r.events, e)
	if e.Kind == ledger.Found {
		r.found[e.Occurrence] = e
		return
	}
	record(&r.puts, e, calls)
}

func (r *register) member(id string) *member {
	m := r.members[id]
	if m == nil {
		m = &member{id: id}
		r.members[id] = m
	}
	return m
}

func (m *member) add(e *ledger.Event, calls map[uint64]*op) {
	m.events = append(m.events, e)
	switch e.Op {
	case ledger.Join:
		record(&m.joins, e, calls)
	case ledger.MoveOn:
		record(&m.moves, e, calls)
	case ledger.OptOut, ledger.DropOut:
		record(&m.refuses, e, calls)
	}
}

// calls are all about the audience and its schedule.
func (r *register) calls() []*op {
	all := slices.Clone(r.puts)
	for _, m := range r.members {
		all = slices.Concat(all, m.joins, m.moves, m.refuses)
	}
	return all
}

// sort puts everything in order.
func (r *register) sort() {
	byTime := func(a, b *ledger.Event) int { return cmp.Compare(a.Mono, b.Mono) }
	slices.SortStableFunc(r.events, byTime)
	for _, m := range r.members {
		for _, s := range m.tasks {
			m.events = append(m.events, s.events...)
		}
		slices.SortStableFunc(m.events, byTime)
	}
}

// adoptRecipient gives a task to the recipient whom it is for. A run made it: after the schedule was
// first put, and before the task was first seen.
func (h *History) adoptRecipient(s *story) {
	r, since := h.register(s.topic), h.from
	m := r.member(s.recipient)
	m.tasks = append(m.tasks, s)
	for _, put := range r.puts {
		since = put.Mono
		break
	}
	s.enqueuedBy(&ledger.Event{Kind: ledger.Call, Op: ledger.Enqueue, Topic: s.topic, Task: s.id, Mono: since})
}

// asked is when the first of some calls was made that may have done it, never when none was.
func asked(ops []*op) int64 {
	at := int64(never)
	for _, o := range ops {
		if o.may() {
			at = min(at, o.Mono)
		}
	}
	return at
}

// answered is when it was first said that one of them did it, never when none was.
func answered(ops []*op) int64 {
	at := int64(never)
	for _, o := range ops {
		if o.did() {
			at = min(at, o.to)
		}
	}
	return at
}

package dispatch

import (
	"cmp"
	"slices"
	"time"

	"github.com/ddq-io/ddq/store"
)

// waitlist is the tasks under limits that came by and did not go yet, each with a ticket,
// and what becomes of them otherwise: they are ready again, or their credit is given back.
type waitlist struct {
	topic   string
	limits  store.TopicLimits
	every   int                  // see readyQueue
	tickets map[ticketID]*Ticket // of every task that came by and did not go yet
	waits   waitCounts
	alarms  alarms
	arrived int64

	// Gathered until assigner.admitted takes it.
	ready   []readyTask // again
	refunds map[Address]int
}

type ticketID struct {
	shard int
	id    string
}

func (g *waitlist) ticket(shard int, e store.Entry) *Ticket {
	id := ticketID{shard, e.ID}
	t := g.tickets[id]
	if t == nil {
		g.arrived++
		t = &Ticket{arrival: g.arrived}
		t.rateKey, t.capKey = keysOf(&e)
		g.tickets[id] = t
	}
	t.readyTask = readyTask{Shard: shard, Entry: e}
	return t
}

// all returns the tickets in order of arrival.
func (g *waitlist) all() []*Ticket {
	all := make([]*Ticket, 0, len(g.tickets))
	for _, t := range g.tickets {
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b *Ticket) int { return cmp.Compare(a.arrival, b.arrival) })
	return all
}

// again makes a task ready again.
func (g *waitlist) again(t *Ticket) { g.ready = append(g.ready, t.readyTask) }

// refund ends the assignment that a task came by with.
func (g *waitlist) refund(sub int64, t *Ticket) { g.refunds[Address{sub, t.Shard}]++ }

// turnBack ends the assignment of a task that passed and cannot be sent on: its
// subscription ended while permits were asked for, and it is ready again, or its shard
// has retired.
func (g *waitlist) turnBack(p *admittedTask, ready bool) {
	t := &Ticket{readyTask: p.Task}
	g.refund(p.Sub, t)
	if ready {
		g.again(t)
	}
}

// release forgets the ticket that a task had under other limits.
func (g *waitlist) release(id ticketID) {
	if t := g.tickets[id]; t != nil && t.stage == outside {
		g.back(t)
		g.unclaim(t, slices.Clone(t.claims))
		delete(g.tickets, id)
	}
}

// unclaim gives up the claims that a task has at caps: others may go instead.
func (g *waitlist) unclaim(t *Ticket, caps []*capLimit) {
	for _, c := range caps {
		if i := slices.Index(t.claims, c); i >= 0 {
			t.claims = slices.Delete(t.claims, i, i+1)
			c.out--
			g.wakeSoon(&c.waitQueue)
		}
	}
}

// untry is unclaim, and the task would wait there again.
func (g *waitlist) untry(t *Ticket, caps []*capLimit) {
	g.unclaim(t, caps)
	t.tried = slices.DeleteFunc(t.tried, func(c *capLimit) bool { return slices.Contains(caps, c) })
}

// back records that a task is not in flight from a queue any more.
func (g *waitlist) back(t *Ticket) {
	if t.cleared != nil {
		t.cleared.out--
		g.wakeSoon(t.cleared)
	}
}

// first takes the next task out of a queue.
func (g *waitlist) first(l *waitQueue) *Ticket {
	next := l.pop()
	t := g.tickets[ticketID{next.Shard, next.ID}]
	l.compact()
	t.stage, t.queue = outside, nil
	return t
}

func (g *waitlist) join(l *waitQueue, t *Ticket) {
	l.join(t)
	g.wakeSoon(l)
}

// wakeSoon has a queue looked at when what is going on is over.
func (g *waitlist) wakeSoon(l *waitQueue) { g.alarms.set(l, time.Time{}.Add(1)) }

package actors_test

import (
	"fmt"
	"time"

	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// simOrder checks from the workers' side that tasks of an ordering key are held one at a
// time, in order of their due times. What a late frame, a lost answer or a change of the
// due time could explain is no breach, and nothing is after a failover that undid calls.
type simOrder struct {
	tasks map[string]*simOrdered
	held  map[string]simHeld // by key
	gone  time.Time          // when the topic was deleted last
}

// simOrdered is a task of a key.
type simOrdered struct {
	key     string
	asked   time.Time // when its first enqueue was
	stored  time.Time // when that was answered
	due     store.Millis
	meddled bool
	began   time.Time // when it was first received
}

type simHeld struct {
	id    string
	until time.Time // it is held by then at least, unless it is settled before
}

// simOrderedID is the id of a task of a key, the same in every run.
func simOrderedID(key string, n int) string {
	return fmt.Sprintf("%08x-0000-8ddc-8000-%s%04x", n, place.HashOfKey(key), n%0x10000)
}

func newSimOrder() *simOrder {
	return &simOrder{tasks: map[string]*simOrdered{}, held: map[string]simHeld{}}
}

// asked takes down that a task is enqueued. What is asked for again may come into being
// once more, after it was done.
func (o *simOrder) asked(id string, traits *store.Traits) {
	key := traits.Ordering()
	switch {
	case key == "":
	case o.tasks[id] == nil:
		o.tasks[id] = &simOrdered{key: key, asked: time.Now()}
	default:
		o.meddled(id)
	}
}

func (o *simOrder) stored(id string, due store.Millis) {
	if t := o.tasks[id]; t != nil && t.stored.IsZero() {
		t.stored, t.due = time.Now(), due
	}
}

func (o *simOrder) meddled(id string) {
	if t := o.tasks[id]; t != nil {
		t.meddled = true
	}
}

// forget takes down that the topic is deleted: nothing is held any more, and what is asked
// for again may come into being once more.
func (o *simOrder) forget() {
	clear(o.held)
	o.gone = time.Now()
	for _, t := range o.tasks {
		t.meddled = true
	}
}

// settled takes down that a worker ends a hold.
func (o *simOrder) settled(id string) {
	if t := o.tasks[id]; t != nil && o.held[t.key].id == id {
		delete(o.held, t.key)
	}
}

// simOrderSlack is more than clocks and frames can be off by.
const simOrderSlack = 5 * time.Second

// received takes down a delivery that left its node at a moment, of a hold that lasts so
// long at first.
func (s *sim) received(d subscription.Delivery, sent time.Time, lasts time.Duration) {
	o, now := s.order, time.Now()
	t := o.tasks[d.Task.ID]
	if t == nil || s.plan.rewind > 0 {
		return
	}
	until := sent.Add(d.HoldFor)
	if held := o.held[t.key]; held.id != "" && held.id != d.Task.ID && now.Before(held.until) && now.Before(until) {
		s.breach = append(s.breach, fmt.Sprintf("%v: %s is delivered while %s of the same ordering key is held", now.Sub(s.start), d.Task.ID, held.id))
	}
	began := sent.Add(d.HoldFor - lasts - simOrderSlack) // of the hold, at the earliest
	if until.After(now) && began.After(o.gone) {         // else it may be over, with its topic
		o.held[t.key] = simHeld{d.Task.ID, until}
	}
	if t.began.IsZero() {
		t.began = now
	}
	for id, other := range o.tasks {
		if other.after(t) && !other.began.IsZero() && other.began.Before(began) {
			s.breach = append(s.breach, fmt.Sprintf("%v: %s is held after %s of the same ordering key, which is due later", now.Sub(s.start), d.Task.ID, id))
		}
	}
}

// after reports whether a task has to come after another one of its key for certain.
func (t *simOrdered) after(other *simOrdered) bool {
	return t.key == other.key && !t.meddled && !other.meddled && !other.stored.IsZero() && !t.stored.IsZero() &&
		other.stored.Before(t.asked) && other.due < t.due
}

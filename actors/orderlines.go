package actors

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/ddq-io/ddq/store"
)

// orderLines are the ordering keys of a shard that have a task with the topic or at a
// worker, or tasks that wait for one. They have no clock and no I/O: the shard owns them
// and carries out what they decide. The store decides which task of a key is held. Here
// is only who need not ask it, because another one is known to be before it.
//
// Invariants:
//   - of a key at most one task is let out at a time, as far as is known here
//   - a line whose tasks wait has a head that is known, or the store is being asked, and
//     it is looked at again after a while if nobody tells of its head
//   - a line without anything is forgotten
type orderLines struct {
	byKey  map[string]*orderLine
	byHead map[string]*orderLine
	loose  []*orderLine // whose head may have ended since the last settle

	// Gathered since it was taken.
	out   []store.Entry // to let out
	in    []store.Entry // tasks that wait, of which the store told
	spare []string      // tasks that waited, and are not to be kept in memory
	later []store.Entry // tasks that waited, and are not due yet
	asks  []string      // keys to ask the store for the first tasks of
	watch []*orderLine  // to look at after a while
}

// orderLine is one key.
type orderLine struct {
	key    string
	head   string        // the task that the others wait for; empty: not known
	due    store.Millis  // of the head, when it is known to wait; else 0
	parked []store.Entry // ready tasks that wait, in order
	more   bool          // the store may have others that are ready

	asking  bool // the store is being asked
	stale   bool // and what it says is of before something that happened
	again   bool // so that it is to be asked once more
	left    bool // since then a task was not kept in memory
	loose   bool // the head may have ended
	watched bool // in watch
	looks   int  // in a row that found the same head
}

const (
	// parkedMost is how many tasks of a key wait in memory: the store has the others.
	parkedMost = 32

	minOrderLook = time.Second      // a line is looked at after that,
	maxOrderLook = 15 * time.Second // then after twice that, up to this
)

func compareParked(a, b store.Entry) int {
	return cmp.Or(cmp.Compare(a.Due, b.Due), strings.Compare(a.ID, b.ID))
}

// idle reports whether there is nothing to settle and nothing to take.
func (o *orderLines) idle() bool {
	return len(o.loose)+len(o.out)+len(o.in)+len(o.spare)+len(o.later)+len(o.asks)+len(o.watch) == 0
}

func (o *orderLines) line(key string) *orderLine {
	l := o.byKey[key]
	if l == nil {
		if o.byKey == nil {
			o.byKey, o.byHead = make(map[string]*orderLine), make(map[string]*orderLine)
		}
		l = &orderLine{key: key}
		o.byKey[key] = l
	}
	return l
}

func (o *orderLines) setHead(l *orderLine, id string, due store.Millis) {
	if l.head != id {
		if o.byHead[l.head] == l {
			delete(o.byHead, l.head)
		}
		if l.head, l.looks = id, 0; id != "" {
			o.byHead[id] = l
		}
	}
	l.due = due
}

func (o *orderLines) forget(l *orderLine) {
	o.setHead(l, "", 0)
	l.loose = false
	delete(o.byKey, l.key)
}

// full reports whether a ready task need not be taken in: enough others of its key are
// in memory that go before it.
func (o *orderLines) full(e *store.Entry) bool {
	l := o.byKey[e.Traits.Ordering()]
	if l == nil || l.head == e.ID || len(l.parked) < parkedMost || compareParked(*e, l.parked[len(l.parked)-1]) <= 0 {
		return false
	}
	l.more, l.left = true, true
	o.look(l)
	return true
}

// ready takes in that a task is ready, and reports whether it is let out.
func (o *orderLines) ready(e store.Entry) bool {
	l := o.line(e.Traits.OrderingKey)
	switch {
	case l.head == e.ID:
		l.due = 0
		return true
	case l.head == "" && !l.asking && !l.more && len(l.parked) == 0:
		o.setHead(l, e.ID, 0)
		return true
	}
	o.park(l, e)
	return false
}

// park has a ready task wait.
func (o *orderLines) park(l *orderLine, e store.Entry) {
	o.unpark(l, e.ID)
	at, _ := slices.BinarySearchFunc(l.parked, e, compareParked)
	l.parked = slices.Insert(l.parked, at, e)
	if last := len(l.parked) - 1; last >= parkedMost {
		o.spare = append(o.spare, l.parked[last].ID)
		l.parked, l.more, l.left = l.parked[:last], true, true
	}
	o.look(l)
}

// unpark takes a task out of those that wait.
func (o *orderLines) unpark(l *orderLine, id string) (e store.Entry, was bool) {
	i := slices.IndexFunc(l.parked, func(e store.Entry) bool { return e.ID == id })
	if i < 0 {
		return e, false
	}
	e = l.parked[i]
	l.parked = slices.Delete(l.parked, i, i+1)
	return e, true
}

// waits reports whether a task is one of those that wait, and gives it these traits.
func (o *orderLines) waits(e store.Entry) bool {
	l := o.byKey[e.Traits.Ordering()]
	if l == nil {
		return false
	}
	i := slices.IndexFunc(l.parked, func(p store.Entry) bool { return p.ID == e.ID })
	if i >= 0 {
		l.parked[i].Traits = e.Traits
	}
	return i >= 0
}

// look sees to it that a line with tasks that wait is looked at again.
func (o *orderLines) look(l *orderLine) {
	if !l.watched && (len(l.parked) > 0 || l.more) {
		l.watched = true
		o.watch = append(o.watch, l)
	}
}

// ended takes in that a task is not held any more, or is gone. If it is pending again
// the shard learns that with the same message.
func (o *orderLines) ended(id string) {
	if len(o.byHead) == 0 {
		return
	}
	if l := o.byHead[id]; l != nil && !l.loose {
		l.loose = true
		o.loose = append(o.loose, l)
	}
}

// learned takes in that a task is pending: the head of a key stays that, and what waits
// for it is looked at when it is due.
func (o *orderLines) learned(e store.Entry) {
	if len(o.byHead) == 0 {
		return
	}
	l := o.byHead[e.ID]
	if l == nil || !l.loose {
		return
	}
	l.loose = false
	if len(l.parked) == 0 && !l.more && !l.asking {
		o.forget(l) // it comes again by itself
		return
	}
	l.stale = l.asking
	l.due, l.watched = e.Due, false
	o.look(l)
}

// early takes in that a task that was let out is not due: it may be the head no more.
func (o *orderLines) early(id string) {
	if l := o.byHead[id]; l != nil {
		o.setHead(l, "", 0)
		o.next(l)
	}
}

// doubt takes in that a task that was let out is in no state to be held.
func (o *orderLines) doubt(id string) {
	if l := o.byHead[id]; l != nil {
		o.ask(l)
	}
}

// removed takes in that a task of a key, which is empty when it is not known, was deleted.
func (o *orderLines) removed(key, id string) {
	o.ended(id)
	if l := o.byKey[key]; l != nil {
		if _, was := o.unpark(l, id); was {
			o.spare = append(o.spare, id)
		}
	}
}

// behind takes in that the store did not let a task be held, because of another one. It
// waits then.
func (o *orderLines) behind(e store.Entry, head string) {
	l := o.line(e.Traits.OrderingKey)
	if l.head == e.ID || l.head == "" {
		o.setHead(l, head, 0)
	}
	o.park(l, e)
	if first, was := o.unpark(l, head); was && l.head == head {
		o.out = append(o.out, first)
		return
	}
	o.ask(l)
}

func (o *orderLines) ask(l *orderLine) {
	if l.asking {
		l.stale, l.again = true, true
		return
	}
	l.asking, l.left = true, false
	o.asks = append(o.asks, l.key)
}

// settle lets out the next task of each key whose head has ended.
func (o *orderLines) settle() {
	for _, l := range o.loose {
		if l.loose {
			l.loose = false
			o.setHead(l, "", 0)
			o.next(l)
		}
	}
	clear(o.loose)
	o.loose = o.loose[:0]
}

// next lets out the next task of a key that has no head.
func (o *orderLines) next(l *orderLine) {
	l.stale = l.asking
	switch {
	case len(l.parked) > 0:
		e := l.parked[0]
		l.parked = slices.Delete(l.parked, 0, 1)
		o.setHead(l, e.ID, 0)
		o.out = append(o.out, e)
	case l.more:
		o.ask(l)
	case !l.asking:
		o.forget(l)
	}
}

// timeToLook takes in that it is time to look at a key.
func (o *orderLines) timeToLook(key string) {
	if l := o.byKey[key]; l != nil {
		if l.watched = false; len(l.parked) > 0 || l.more {
			o.ask(l)
		}
	}
}

// notFound takes in that the store could not be asked.
func (o *orderLines) notFound(key string) {
	if l := o.byKey[key]; l != nil {
		l.asking, l.stale, l.again = false, false, false
		l.more = true // for it to be looked at
		o.look(l)
	}
}

// found takes in the first tasks of a key as the store has them, full: as many as were
// asked for. known says whether a task is with the topic.
func (o *orderLines) found(key string, first []store.Ordered, full bool, now store.Millis, known func(id string) bool) {
	l := o.byKey[key]
	if l == nil {
		return
	}
	l.asking = false
	if l.stale {
		if l.again || l.head == "" {
			o.ask(l)
		}
		l.stale, l.again = false, false
		o.look(l)
		return
	}
	if len(first) == 0 {
		for _, e := range l.parked {
			o.spare = append(o.spare, e.ID)
		}
		o.forget(l)
		return
	}
	o.lead(l, &first[0], now, known)
	l.more = full || l.left
	for _, t := range first[1:] {
		if t.Due > now {
			l.more = l.left
			break
		}
		if !t.Held && !known(t.ID) {
			o.in = append(o.in, t.Entry)
			o.park(l, t.Entry)
		}
	}
	if l.due != 0 && len(l.parked) == 0 && !l.more {
		o.forget(l) // the head comes by itself
		return
	}
	o.look(l)
}

// lead takes in which task is the head of a key, and lets it out if it can be held.
func (o *orderLines) lead(l *orderLine, head *store.Ordered, now store.Millis, known func(id string) bool) {
	looks := l.looks + 1
	if l.head != head.ID {
		looks = 0
	}
	e, waited := o.unpark(l, head.ID)
	o.setHead(l, head.ID, 0)
	l.looks = looks
	switch {
	case head.Held && waited:
		o.spare = append(o.spare, e.ID)
	case head.Held:
	case head.Due > now:
		if l.due = head.Due; waited {
			o.later = append(o.later, head.Entry)
		}
	case waited || !known(head.ID):
		o.out = append(o.out, head.Entry)
	}
}

// lookAt is when to look at a line again.
func (l *orderLine) lookAt(now store.Millis) store.Millis {
	at := now.Add(min(minOrderLook<<min(l.looks, 8), maxOrderLook))
	if l.due > now && l.due < at {
		return l.due
	}
	return at
}

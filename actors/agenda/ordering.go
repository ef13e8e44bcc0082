package agenda

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/ddq-io/ddq/store"
)

// orderKeys are the ordering keys of a shard that have a task with the topic or at a
// worker, or tasks that wait for one. They have no clock and no I/O: the shard owns them
// and carries out what they decide. The store decides which task of a key is held. Here
// is only who need not ask it, because another one is known to be before it.
//
// Invariants:
//   - of a key at most one task is let out at a time, as far as is known here
//   - a task that waits is in waiting, and with the topic or in the wheel no more
//   - a key whose tasks wait has a head that is known, or the store is being asked, and
//     it is looked at again after a while if nobody tells of its head
//   - a key without anything is forgotten
type orderKeys struct {
	Most    int // tasks that wait
	ByKey   map[string]*orderKey
	byHead  map[string]*orderKey
	Waiting map[string]*orderKey // by id
	loose   []*orderKey          // whose head may have ended since the last settle

	// Gathered since it was taken.
	Out   []store.Entry // to let out
	Later []store.Entry // tasks that are not due yet, and may have been taken for ready ones
	From  store.Millis  // and others of them are due from then on; 0: there are none
	Asks  []string      // keys to ask the store for the first tasks of
	Watch []*orderKey   // to look at after a while
}

// orderKey is one key.
type orderKey struct {
	Key    string
	head   string        // the task that the others wait for; empty: not known
	due    store.Millis  // of the head, when it is known to wait; else 0
	parked []store.Entry // ready tasks that wait, in order
	more   bool          // the store may have others that are ready
	doubts []string      // ids of parked tasks that may be gone: what the store says next tells

	asking  bool // the store is being asked
	stale   bool // and what it says is of before something that happened
	again   bool // so that it is to be asked once more
	left    bool // since then a task was not kept in memory
	came    bool // since then a task came that waits
	loose   bool // the head may have ended
	watched bool // in watch
	moved   bool // since then the head was another one, and not by what the store said
	looks   int  // in a row that found the same head
	out     bool // the head was with the topic when it was time to look
}

const (
	// ParkedMost is how many tasks of a key wait in memory: the store has the others.
	ParkedMost = 32

	minOrderLook = time.Second      // a key is looked at after that,
	maxOrderLook = 15 * time.Second // then after twice that, up to this,
	maxOutLook   = time.Minute      // or this while the head is with the topic, which tells of it
)

func compareParked(a, b store.Entry) int {
	return cmp.Or(cmp.Compare(a.Due, b.Due), strings.Compare(a.ID, b.ID))
}

// Idle reports whether there is nothing to settle and nothing to take.
func (o *orderKeys) Idle() bool {
	return len(o.loose)+len(o.Out)+len(o.Later)+len(o.Asks)+len(o.Watch) == 0 && o.From == 0
}

func (o *orderKeys) at(key string) *orderKey {
	l := o.ByKey[key]
	if l == nil {
		if o.ByKey == nil {
			o.ByKey, o.byHead, o.Waiting = make(map[string]*orderKey), make(map[string]*orderKey), make(map[string]*orderKey)
		}
		l = &orderKey{Key: key}
		o.ByKey[key] = l
	}
	return l
}

func (o *orderKeys) setHead(l *orderKey, id string, due store.Millis) {
	if l.head != id {
		if o.byHead[l.head] == l {
			delete(o.byHead, l.head)
		}
		if l.head, l.looks, l.moved = id, 0, true; id != "" {
			o.byHead[id] = l
		}
	}
	l.due = due
}

func (o *orderKeys) forget(l *orderKey) {
	o.setHead(l, "", 0)
	l.loose = false
	delete(o.ByKey, l.Key)
}

// MustWait records that a task is ready, and reports whether it waits for another one.
func (o *orderKeys) MustWait(e store.Entry) bool {
	l := o.ByKey[e.Traits.Ordering()]
	if l == nil || l.head == e.ID || l.head == "" && !l.asking && !l.more && len(l.parked) == 0 {
		return false
	}
	o.park(l, e)
	return true
}

// Let records that a ready task is let out.
func (o *orderKeys) Let(e store.Entry) { o.setHead(o.at(e.Traits.OrderingKey), e.ID, 0) }

// park has a ready task wait, or leaves it to the store when enough do.
func (o *orderKeys) park(l *orderKey, e store.Entry) {
	o.unpark(e.ID)
	l.doubts = slices.DeleteFunc(l.doubts, func(id string) bool { return id == e.ID })
	at, _ := slices.BinarySearchFunc(l.parked, e, compareParked)
	l.parked = slices.Insert(l.parked, at, e)
	o.Waiting[e.ID] = l
	l.came = true
	if len(l.parked) > ParkedMost || len(o.Waiting) > o.Most {
		o.unpark(l.parked[len(l.parked)-1].ID)
		l.more, l.left = true, true
	}
	o.look(l)
}

// unpark takes a task out of those that wait.
func (o *orderKeys) unpark(id string) (e store.Entry, was bool) {
	l := o.Waiting[id]
	if l == nil {
		return e, false
	}
	i := slices.IndexFunc(l.parked, func(e store.Entry) bool { return e.ID == id })
	e = l.parked[i]
	l.parked = slices.Delete(l.parked, i, i+1)
	delete(o.Waiting, id)
	return e, true
}

// Moved records what a task is like that may wait, and reports whether it still does.
func (o *orderKeys) Moved(e store.Entry, now store.Millis) bool {
	l := o.Waiting[e.ID]
	if l == nil {
		return false
	}
	if o.unpark(e.ID); e.Due > now {
		return false
	}
	o.park(l, e)
	return true
}

// look sees to it that a key with tasks that wait is looked at again.
func (o *orderKeys) look(l *orderKey) {
	if !l.watched && (len(l.parked) > 0 || l.more) {
		l.watched, l.moved = true, false
		o.Watch = append(o.Watch, l)
	}
}

// Ended records that a task is not held any more, or is gone. If it is pending again
// the shard learns that with the same message.
func (o *orderKeys) Ended(id string) {
	if len(o.byHead) == 0 {
		return
	}
	if l := o.byHead[id]; l != nil && !l.loose {
		l.loose = true
		o.loose = append(o.loose, l)
	}
}

// Learned records that a task is pending: the head of a key stays that, and what waits
// for it is looked at when it is due.
func (o *orderKeys) Learned(e store.Entry) {
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

// Early records that a task that was let out is not due: it may be the head no more.
func (o *orderKeys) Early(id string) {
	if l := o.byHead[id]; l != nil {
		o.setHead(l, "", 0)
		o.next(l)
	}
}

// Doubt records that a task that was let out is in no state to be held, or that one that waits may be gone.
func (o *orderKeys) Doubt(id string) {
	if l := o.byHead[id]; l != nil {
		o.ask(l)
	}
	if l := o.Waiting[id]; l != nil {
		l.doubts = append(l.doubts, id)
		o.ask(l)
	}
}

// Removed records that a task was deleted.
func (o *orderKeys) Removed(id string) {
	o.unpark(id)
	o.Ended(id)
}

// Behind records that the store did not let a task be held, because of another one. It
// waits then.
func (o *orderKeys) Behind(e store.Entry, head string) {
	l := o.at(e.Traits.OrderingKey)
	if l.head == e.ID || l.head == "" {
		o.setHead(l, head, 0)
	}
	o.park(l, e)
	if o.Waiting[head] == l && l.head == head {
		first, _ := o.unpark(head)
		o.Out = append(o.Out, first)
		return
	}
	o.ask(l)
}

func (o *orderKeys) ask(l *orderKey) {
	if l.asking {
		l.stale, l.again = true, true
		return
	}
	l.asking, l.left, l.came = true, false, false
	o.Asks = append(o.Asks, l.Key)
}

// Settle lets out the next task of each key whose head has ended.
func (o *orderKeys) Settle() {
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
func (o *orderKeys) next(l *orderKey) {
	l.stale = l.asking
	switch {
	case len(l.parked) > 0:
		e, _ := o.unpark(l.parked[0].ID)
		o.setHead(l, e.ID, 0)
		o.Out = append(o.Out, e)
	case l.more:
		o.ask(l)
	case !l.asking:
		o.forget(l)
	}
}

// TimeToLook records that it is time to look at a key. known says whether a task is
// with the topic.
func (o *orderKeys) TimeToLook(key string, known func(id string) bool) {
	l := o.ByKey[key]
	if l == nil {
		return
	}
	l.watched = false
	switch {
	case l.moved: // somebody tells
		o.look(l)
	case len(l.parked) > 0 || l.more:
		// Also while its head is with the topic: limits may keep one there that is not the first, and only a hold would tell.
		l.out = known(l.head)
		o.ask(l)
	}
}

// NotFound records that the store could not be asked.
func (o *orderKeys) NotFound(key string) {
	if l := o.ByKey[key]; l != nil {
		l.asking, l.stale, l.again = false, false, false
		l.more = true // for it to be looked at
		o.look(l)
	}
}

// Found records the first tasks of a key as the store has them, full: as many as were
// asked for. known says whether a task is with the topic.
func (o *orderKeys) Found(key string, first []store.Ordered, full bool, now store.Millis, known func(id string) bool) {
	l := o.ByKey[key]
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
		o.clear(l)
		return
	}
	for _, id := range l.doubts {
		if !slices.ContainsFunc(first, func(t store.Ordered) bool { return t.ID == id }) {
			o.unpark(id) // the store has it, or it is gone
		}
	}
	l.doubts = nil
	o.lead(l, &first[0], now, known)
	came, kept := l.came, !l.more
	l.more = full || l.left
	behind := first[1:]
	later := slices.IndexFunc(behind, func(t store.Ordered) bool { return t.Due > now })
	if later >= 0 {
		behind, l.more = behind[:later], l.left
	}
	for _, t := range behind {
		if !t.Held && !known(t.ID) {
			o.park(l, t.Entry)
		}
	}
	switch {
	case l.due == 0 || len(behind) > 0 || l.more:
		o.look(l)
	case came:
		o.ask(l) // of what came nothing is known
		o.look(l)
	default:
		o.clear(l) // the head comes by itself, and what waited is gone
	}
	if later >= 0 {
		o.moved(first[1+later:], full && !kept)
	}
}

// moved records tasks of a key that are not due yet: a page that was read before they were moved may have
// had them wait, or be left to the store. more says that the store may have others of these.
func (o *orderKeys) moved(later []store.Ordered, more bool) {
	for _, t := range later {
		if o.Waiting[t.ID] == nil {
			o.Later = append(o.Later, t.Entry)
		}
	}
	if last := later[len(later)-1].Due; more && (o.From == 0 || last < o.From) {
		o.From = last
	}
}

// clear forgets a key and what waits there.
func (o *orderKeys) clear(l *orderKey) {
	for len(l.parked) > 0 {
		o.unpark(l.parked[0].ID)
	}
	o.forget(l)
}

// lead records which task is the head of a key, and lets it out if it can be held.
func (o *orderKeys) lead(l *orderKey, head *store.Ordered, now store.Millis, known func(id string) bool) {
	looks := l.looks + 1
	if l.head != head.ID {
		looks = 0
	}
	_, waited := o.unpark(head.ID)
	o.setHead(l, head.ID, 0)
	l.looks, l.moved = looks, false
	switch {
	case head.Held:
	case head.Due > now:
		l.watched = false // that may be sooner than the next look
		if l.due = head.Due; waited {
			o.Later = append(o.Later, head.Entry)
		}
	case !known(head.ID):
		o.Out = append(o.Out, head.Entry)
	}
}

// LookAt is when to look at a key again.
func (l *orderKey) LookAt(now store.Millis) store.Millis {
	most := maxOrderLook
	if l.out {
		most = maxOutLook
	}
	at := now.Add(min(minOrderLook<<min(l.looks, 8), most))
	if l.due > now && l.due < at {
		return l.due
	}
	return at
}

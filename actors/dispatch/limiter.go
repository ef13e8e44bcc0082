package dispatch

import (
	"slices"
	"time"

	"github.com/ddq-io/ddq/actors/ordered"
	"github.com/ddq-io/ddq/store"
)

// limiter has the ready tasks of a topic that has limits, or had some. It has no clock, no goroutine and no
// I/O; the assigner owns it and carries out what it decides.
//
// A task takes its tokens and permits together, when a worker has room for it. What cannot go is parked by
// what it lacks, and is in nobody's way.
//
// Invariants:
//   - a task is in one group, or asked for
//   - a group is open or parked at one key, if it is not empty
//   - of a key that is not closed as many groups are open as it is believed to have, or is tried for, and one at least
//   - a closed key has a moment at which it is looked at
type limiter struct {
	limitKeys
	picker
	topic  string
	limits store.TopicLimits
	groups map[groupKey]*group
	lanes  map[store.Lane]*lane
	known  map[taskID]taskPlace
	counts taskCounts

	call      *TakeCall     // that is on its way; nil: none
	calls     uint64        // how many there were
	coming    []admitted    // with tokens whose moments come; the first first
	told      []*limitKey   // with news
	turns     []*limitKey   // that this node was told of in turn, see passOn
	pause     time.Duration // until the next call, as the last one failed
	tokenLife time.Duration // see store.Take.Life
	retry     time.Time     // when that is over; zero: it is
	could     time.Time     // see Topic.Pressing

	counted LimitCounts // since effects were taken

	// What goes with the next call, or alone.
	free  []store.Permit
	back  []store.TokenReceipt
	leave []store.Limit // lines that are of no use
	owes  time.Time     // since when there is some; zero: there is none, or it was not looked at
}

type taskID struct {
	shard int
	id    string
}

// taskPlace is where a task is.
type taskPlace struct {
	group *group // it is in, or was
	asked bool   // it is not there
}

// taskCounts are numbers of tasks.
type taskCounts struct{ open, noToken, noPermit int }

func newLimiter(topic string, ageing int) *limiter {
	g := &limiter{topic: topic, tokenLife: firstLife}
	g.clear(ageing)
	return g
}

// clear forgets groups and keys.
func (g *limiter) clear(ageing int) {
	g.picker, g.limitKeys = newPicker(ageing), limitKeys{by: make(map[keyName]*limitKey)}
	g.groups, g.lanes, g.counts = make(map[groupKey]*group), make(map[store.Lane]*lane), taskCounts{}
	if g.known == nil {
		g.known = make(map[taskID]taskPlace)
	}
}

// configure replaces the limits, and opens all groups. What the store knows stays.
func (g *limiter) configure(ageing int, l store.TopicLimits) {
	g.every = ageing
	if l == g.limits {
		return
	}
	for _, k := range ordered.All(g.by, compareNames) {
		if k.inLine {
			g.leaveLine(k)
		}
	}
	var all []readyTask
	for _, gr := range ordered.All(g.groups, groupKey.compare) {
		all = append(all, gr.tasks[gr.head:]...)
	}
	g.clear(ageing)
	g.limits, g.told, g.turns = l, nil, nil
	for id, place := range g.known {
		if !place.asked {
			delete(g.known, id)
		}
	}
	if g.call != nil {
		g.call.stale = true
	}
	for _, name := range []keyName{{rate: true}, {}, {key: store.NamespaceCap}} {
		if name.rate && l.Rate.Limited() || !name.rate && l.Cap(name.key) > 0 {
			g.gates = append(g.gates, g.keyOf(name, &l))
		}
	}
	slices.SortStableFunc(all, readyTask.compare)
	for _, t := range all {
		g.add(t)
	}
}

// add adds a task that is ready. One that is known is of the last keys that it came with.
func (g *limiter) add(t readyTask) {
	id := taskID{t.Shard, t.ID}
	place, found := g.known[id]
	switch {
	case found && place.asked:
		return // one of them is enough
	case found:
		g.count(place.group, -place.group.len())
		place.group.remove(id)
		g.count(place.group, place.group.len())
		g.fix(place.group)
	}
	gr := g.groupOf(&t)
	gr.merge([]readyTask{t})
	if t.Traits != nil {
		gr.lane.weight = t.Traits.FairnessWeight
	}
	g.came(gr, id)
}

// giveBack puts back a task that was picked and did not go, before others.
func (g *limiter) giveBack(t readyTask) {
	gr := g.groupOf(&t)
	if place := g.known[taskID{t.Shard, t.ID}]; place.asked {
		place.group.asked--
	}
	gr.unpop(t)
	g.picker.gaveBack(gr.lane)
	g.came(gr, taskID{t.Shard, t.ID})
}

func (g *limiter) came(gr *group, id taskID) {
	g.known[id] = taskPlace{group: gr}
	g.count(gr, 1)
	g.fix(gr)
}

// groupOf returns the group of a task, which it makes if it is new.
func (g *limiter) groupOf(t *readyTask) *group {
	key := groupKey{lane: t.Traits.Lane()}
	rate, concurrency := keysOf(&t.Entry)
	if g.limits.KeyRate.Limited() {
		key.rate = rate
	}
	if g.limits.KeyConcurrency > 0 {
		key.cap = concurrency
	}
	gr := g.groups[key]
	if gr != nil {
		return gr
	}
	gr = &group{groupKey: key, lane: g.lanes[key.lane]}
	if gr.lane == nil {
		gr.lane = g.picker.lane(key.lane)
		g.lanes[key.lane] = gr.lane
	}
	gr.lane.refs++
	if key.rate != "" {
		gr.keys[0] = g.keyOf(keyName{true, key.rate}, &g.limits)
	}
	if key.cap != "" {
		gr.keys[1] = g.keyOf(keyName{false, key.cap}, &g.limits)
	}
	for _, k := range gr.keys {
		if k != nil {
			k.refs++
		}
	}
	g.groups[key] = gr
	return gr
}

// fix puts a group where it belongs, whose tasks changed.
func (g *limiter) fix(gr *group) {
	switch {
	case gr.len() == 0:
		g.takeOut(gr)
		g.forget(gr)
	case gr.parked != nil:
		gr.parked.parked.fix(gr)
	case gr.open:
		g.picker.headChanged(gr)
	case gr.shut() != nil:
		g.park(gr, gr.shut())
	default:
		g.openGroup(gr)
	}
}

// takeOut has a group be in no place.
func (g *limiter) takeOut(gr *group) {
	g.count(gr, -gr.len())
	switch {
	case gr.parked != nil:
		gr.parked.parked.remove(gr)
		gr.parked = nil
	case gr.open:
		gr.open = false
		if gr.place > 0 {
			g.picker.remove(gr)
		}
		for _, k := range gr.keys {
			if k != nil {
				k.open--
				g.soil(k)
			}
		}
	}
	g.count(gr, gr.len())
}

func (g *limiter) openGroup(gr *group) {
	g.takeOut(gr)
	gr.open = true
	g.picker.add(gr)
	for _, k := range gr.keys {
		if k != nil {
			k.open++
		}
	}
	g.count(gr, gr.len())
}

// park has a group wait at a key.
func (g *limiter) park(gr *group, k *limitKey) {
	g.takeOut(gr)
	gr.parked = k
	k.parked.add(gr)
	g.count(gr, gr.len())
}

// settle opens groups of keys that may have more of them open.
func (g *limiter) settle() {
	for len(g.dirty) > 0 {
		last := len(g.dirty) - 1
		k := g.dirty[last]
		g.dirty = g.dirty[:last]
		k.dirty = false
		for k.open < k.wanted() && len(k.parked) > 0 {
			gr := k.parked[0]
			if other := gr.shut(); other != nil { // it waits for that instead
				g.park(gr, other)
				continue
			}
			g.openGroup(gr)
		}
		g.forgetKey(k)
	}
}

// forget forgets a group that is empty for good.
func (g *limiter) forget(gr *group) {
	if gr.len() > 0 || gr.asked > 0 || g.groups[gr.groupKey] != gr {
		return
	}
	delete(g.groups, gr.groupKey)
	if gr.lane.refs--; gr.lane.refs == 0 {
		delete(g.lanes, gr.groupKey.lane)
	}
	for _, k := range gr.keys {
		if k != nil {
			k.refs--
			g.soil(k)
		}
	}
}

// forgetKey forgets a key that no group has. That of a rate is known until its next token comes.
func (g *limiter) forgetKey(k *limitKey) {
	if k.refs > 0 || slices.Contains(g.gates, k) || g.by[k.keyName] != k {
		return
	}
	if k.inLine {
		g.leaveLine(k)
	}
	if k.rate && k.closed {
		return
	}
	k.again = time.Time{} // its wakes are void
	delete(g.by, k.keyName)
}

// drop forgets the tasks of a shard.
func (g *limiter) drop(shard int) {
	for _, gr := range ordered.All(g.groups, groupKey.compare) {
		g.count(gr, -gr.len())
		had := gr.len()
		gr.tasks = slices.DeleteFunc(gr.tasks[gr.head:], func(t readyTask) bool { return t.Shard == shard })
		gr.head = 0
		g.count(gr, gr.len())
		if gr.len() < had {
			g.fix(gr)
		}
	}
	for id, place := range g.known {
		if id.shard != shard {
			continue
		}
		if delete(g.known, id); place.asked {
			place.group.asked--
			g.forget(place.group)
		}
	}
	if g.call != nil {
		if g.call.dropped == nil {
			g.call.dropped = make(map[int]bool)
		}
		g.call.dropped[shard] = true
	}
	g.settle()
}

// gone forgets a task that was picked, and goes.
func (g *limiter) gone(t *readyTask) {
	id := taskID{t.Shard, t.ID}
	if place, found := g.known[id]; found && place.asked {
		delete(g.known, id)
		place.group.asked--
		g.forget(place.group)
	}
}

// count counts n tasks of a group where it is.
func (g *limiter) count(gr *group, n int) {
	switch {
	case gr.parked == nil && gr.open:
		g.counts.open += n
	case gr.parked == nil:
	case gr.parked.rate:
		g.counts.noToken += n
	default:
		g.counts.noPermit += n
	}
}

// offer is how many tasks could go now, as far as is known.
func (g *limiter) offer() int {
	if g.shut() != nil || !g.retry.IsZero() {
		return 0
	}
	return g.through(g.counts.open)
}

// gauges are how many tasks are ready, and lack something of each limit.
func (g *limiter) gauges() (ready int, lack [Lacks]int) {
	lack[LackKeyRate], lack[LackKeyCap] = g.counts.noToken, g.counts.noPermit
	if k := g.shut(); k != nil {
		lack[k.lack()] += g.counts.open
		return 0, lack
	}
	return g.counts.open, lack
}

// under reports whether limits apply to a task.
func (g *limiter) under(e *store.Entry) bool {
	rate, concurrency := keysOf(e)
	return g.limits.Rate.Limited() || g.limits.Concurrency > 0 || g.limits.Namespace > 0 ||
		rate != "" && g.limits.KeyRate.Limited() || concurrency != "" && g.limits.KeyConcurrency > 0
}

// keysOf are the keys by which limits apply to a task.
func keysOf(e *store.Entry) (rate, concurrency string) {
	if e.Traits == nil {
		return "", ""
	}
	return e.Traits.RateKey, e.Traits.ConcurrencyKey
}

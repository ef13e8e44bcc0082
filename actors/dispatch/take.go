package dispatch

import (
	"slices"
	"time"

	"github.com/ddq-io/ddq/store"
)

const (
	// lookBehind is how many wants more than there is room for the store looks at, when those before lack something.
	lookBehind = 256

	// After a call that failed the next one comes after leastPause, then after twice the last pause, up to mostPause.
	leastPause, mostPause = 50 * time.Millisecond, time.Second

	// leastAgain is when a key that lacks something is asked for again, at the soonest.
	leastAgain = time.Millisecond

	// roomComes is how long a turn waits for room that others have lent. It is less than store.LineTurn, after which
	// the next in line may have what is there.
	roomComes = 3 * time.Millisecond

	// mostOwed is how long what is given back waits for a call that asks for something.
	mostOwed = time.Millisecond
)

// TakeCall asks the store for what tasks need that could go now: up to Room of the Wants, in order. With it goes
// what is given back. One is in flight at a time. Whoever makes it sets Call, Node, Holders, one for each of Room, and
// Until.
type TakeCall struct {
	store.Take
	Room int

	tasks   []readyTask  // by want
	stale   bool         // the limits are others since
	dropped map[int]bool // shards whose tasks are gone since
}

// Taken is what became of a TakeCall.
type Taken struct {
	Reply   *store.TakeReply // nil: the store failed
	Unknown bool             // it failed, and perhaps it has done what was asked
}

// admitted is a task that may be held.
type admitted struct {
	readyTask
	limited bool      // it needed something
	since   time.Time // it had all
	at      time.Time // it may be held from then on
	before  time.Time // its tokens end; zero: it has none
	permit  *Permit   // nil: under no cap
	receipt store.TokenReceipt
	doomed  bool // to be dead-lettered
}

// pick takes out the tasks that go next, in order: as many as there is room for, and more when some may lack
// what others need not have.
func (g *limiter) pick(room int) (picked []readyTask) {
	most := room
	if g.limits.KeyRate.Limited() || g.limits.KeyConcurrency > 0 {
		most += lookBehind
	}
	most = min(most, store.MaxWants)
	var aside, touched []*group
	for len(picked) < most {
		gr := g.picker.next()
		if gr == nil {
			break
		}
		if k := gr.shut(); k != nil {
			g.park(gr, k)
			g.settle()
			continue
		}
		if limit := gr.keys[1]; gr.picked >= room || limit != nil && limit.picked >= limit.asks() {
			g.picker.remove(gr)
			aside = append(aside, gr)
			continue
		}
		touched = append(touched, gr)
		picked = append(picked, g.take(gr))
	}
	for _, gr := range touched {
		gr.picked = 0
		if k := gr.keys[1]; k != nil {
			k.picked = 0
		}
	}
	for _, gr := range aside {
		g.picker.add(gr)
	}
	g.settle()
	return picked
}

// take takes the head out of an open group.
func (g *limiter) take(gr *group) readyTask {
	t := gr.pop()
	gr.asked++
	gr.picked++
	if k := gr.keys[1]; k != nil {
		k.picked++
	}
	g.known[taskID{t.Shard, t.ID}] = taskPlace{gr, true}
	g.counts.open--
	if gr.len() == 0 {
		gr.lane.groups.remove(gr)
		g.picker.took(gr.lane)
		g.takeOut(gr)
	} else {
		gr.lane.groups.fix(gr)
		g.picker.took(gr.lane)
	}
	return t
}

// ask splits tasks that were picked into those that need nothing, as far as there is room for them in their
// turn, and those that a call asks for; nil: none does.
func (g *limiter) ask(picked []readyTask, room int) (free []admitted, call *TakeCall) {
	var asked []readyTask
	for i := range picked {
		if t := &picked[i]; i < room && !g.under(&t.Entry) {
			free = append(free, admitted{readyTask: *t})
		} else {
			asked = append(asked, *t)
		}
	}
	room -= len(free)
	behind := asked
	if room > 0 && slices.ContainsFunc(asked, func(t readyTask) bool { return g.under(&t.Entry) }) {
		call = g.newCall()
		behind = nil
		for _, t := range asked {
			if !g.under(&t.Entry) {
				behind = append(behind, t)
				continue
			}
			call.tasks = append(call.tasks, t)
			call.Wants = append(call.Wants, g.want(&t))
		}
		call.Room = min(room, len(call.tasks))
		g.stay(call)
	}
	for i := len(behind) - 1; i >= 0; i-- {
		g.giveBack(behind[i])
	}
	return free, call
}

func (g *limiter) want(t *readyTask) (w store.Want) {
	rate, concurrency := keysOf(&t.Entry)
	if g.limits.KeyRate.Limited() {
		w.RateKey = rate
	}
	if g.limits.KeyConcurrency > 0 {
		w.CapKey = concurrency
	}
	return w
}

// newCall is a call that gives back what there is to give back.
func (g *limiter) newCall() *TakeCall {
	g.calls++
	g.call = &TakeCall{Take: store.Take{
		Topic: g.topic, Limits: g.limits, Life: g.tokenLife,
		Free: cut(&g.free), Back: cut(&g.back), Leave: cut(&g.leave),
	}}
	g.owes = time.Time{}
	return g.call
}

// cut takes out as many as go with one call.
func cut[T any](all *[]T) []T {
	n := min(len(*all), 8*store.MaxWants)
	out := (*all)[:n:n]
	if *all = (*all)[n:]; len(*all) == 0 {
		*all = nil
	}
	return out
}

// giveBackAlone makes a call that only gives back, when nothing was asked for in time that it could go with; nil: there
// is none to make.
func (g *limiter) giveBackAlone(now time.Time) *TakeCall {
	switch {
	case len(g.free)+len(g.back)+len(g.leave) == 0:
		g.owes = time.Time{}
	case g.owes.IsZero():
		g.owes = now
	case g.call == nil && g.retry.IsZero() && now.Sub(g.owes) >= mostOwed:
		return g.newCall()
	}
	return nil
}

// answered records what became of the call: it closes the keys that have nothing, puts back who lacks
// something, and returns the others.
func (g *limiter) answered(now time.Time, a *Taken) (granted []admitted) {
	call := g.call
	g.call = nil
	if a.Reply == nil {
		g.pause = min(max(leastPause, 2*g.pause), mostPause)
		g.retry = now.Add(g.pause)
		g.failed(call, a)
	} else {
		g.pause = 0
	}
	g.counted.gaveBack(call, a)
	var left []readyTask
	holder := 0
	for i, t := range call.tasks {
		var got store.Taking
		if a.Reply != nil {
			got = a.Reply.Wants[i]
		}
		g.refusal(&got)
		ad := admitted{readyTask: t, limited: true, since: now, before: got.Before, receipt: got.Receipt}
		if got.Status == store.Granted {
			if got.At.After(a.Reply.Now) {
				ad.at = got.At
			}
			ad.permit = call.permit(i, holder)
			holder++
		}
		useless := call.stale || call.dropped[t.Shard]
		switch {
		case useless && got.Status == store.Granted:
			g.unused(ad.receipt, ad.permit)
			left = append(left, t)
		case useless:
			left = append(left, t)
		case got.Status == store.Granted:
			g.granted(call.Wants[i])
			granted = append(granted, ad)
		case got.Status == store.OverRate:
			ad.doomed = true
			g.over(call.Wants[i])
			granted = append(granted, ad)
		default:
			g.lacks(now, &got)
			left = append(left, t)
		}
	}
	for _, k := range g.told {
		k.news = false
	}
	g.told = g.told[:0]
	if a.Reply != nil {
		if holder > 0 && !g.could.IsZero() {
			g.counted.Waited = max(g.counted.Waited, now.Sub(g.could))
		}
		g.could = time.Time{} // those that were refused waited for something else
	}
	slices.SortStableFunc(granted, func(a, b admitted) int { return boolToInt(a.doomed) - boolToInt(b.doomed) })
	for i := len(left) - 1; i >= 0; i-- {
		if !call.dropped[left[i].Shard] {
			g.giveBack(left[i])
		}
	}
	g.parkShut(left)
	g.settle()
	return granted
}

// failed has what a call gave back given back with the next one, and permits that it may have taken. Tokens are lost:
// given back twice, they would be given twice.
func (g *limiter) failed(call *TakeCall, a *Taken) {
	g.free = append(call.Free, g.free...)
	g.leave = append(call.Leave, g.leave...)
	if !a.Unknown {
		g.back = append(call.Back, g.back...)
		return
	}
	for i := range call.Wants { // the i-th has one of the first i holders, if any
		keys := call.caps(i)
		for h := range min(i+1, len(call.Holders)) {
			for _, key := range keys {
				if h == i || key.Key != "" && key.Key != store.NamespaceCap {
					g.free = append(g.free, store.Permit{Key: key, Holder: call.Holders[h]})
				}
			}
		}
	}
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// parkShut parks the groups of tasks that were refused.
func (g *limiter) parkShut(refused []readyTask) {
	for i := range refused {
		if gr := g.known[taskID{refused[i].Shard, refused[i].ID}].group; gr != nil && gr.open {
			if k := gr.shut(); k != nil {
				g.park(gr, k)
			}
		}
	}
}

// lacks records what a want lacks.
func (g *limiter) lacks(now time.Time, got *store.Taking) {
	if got.Status != store.NoToken && got.Status != store.NoPermit {
		return
	}
	if k := g.by[keyName{got.Lacks.Rate, got.Lacks.Key.Key}]; k != nil {
		again := got.Again
		if least := now.Add(leastAgain); again.Before(least) { // by a clock that is behind this node's
			again = least
		}
		g.refused(k, again)
	}
}

// refusal counts a limit for which wants were refused: once a call.
func (g *limiter) refusal(got *store.Taking) {
	if got.Status == store.NotReached || got.Status == store.Granted {
		return
	}
	name := keyName{got.Lacks.Rate, got.Lacks.Key.Key}
	if k := g.by[name]; k != nil {
		if k.said == g.calls {
			return
		}
		k.said = g.calls
	}
	g.counted.Refused[name.lack()]++
}

// unused has given back what a task has that does not go. Another task may have it in the same call.
func (g *limiter) unused(tokens store.TokenReceipt, p *Permit) {
	if tokens.Key.To != 0 || tokens.Topic.To != 0 {
		g.back = append(g.back, tokens)
	}
	if tokens.Key.To != 0 {
		g.hears(g.by[keyName{rate: true, key: tokens.RateKey}])
	}
	if tokens.Topic.To != 0 {
		g.hears(g.by[keyName{rate: true}])
	}
	if p != nil {
		g.end(p)
	}
}

// end has a permit freed. Another task may have it in the same call.
func (g *limiter) end(p *Permit) {
	g.free = append(g.free, p.Each()...)
	for _, key := range p.Keys {
		g.hears(g.by[keyName{key: key.Key}])
	}
}

// freed records that something may be there of a key in whose line this node has a place.
func (g *limiter) freed(now time.Time, name keyName) {
	k := g.by[name]
	if k == nil {
		g.leave = append(g.leave, g.limitOf(name))
		return
	}
	g.hears(k)
	if k.turn.IsZero() {
		k.turn, k.asked = now, false
		g.turns = append(g.turns, k)
	}
}

// hears records that something may be there of a key; nil is one that nothing is known of.
func (g *limiter) hears(k *limitKey) {
	if k == nil {
		return
	}
	if !k.rate {
		k.has = min(k.has+1, k.most)
	}
	if g.call != nil && !k.news {
		k.news = true
		g.told = append(g.told, k)
	}
	g.reopen(k)
}

// passOn ends the places in lines that are of no use: this node was told that it is its turn, and asks for nothing, or
// lacked something else. Who lacks nothing but room is given some time where there are subscriptions: room is lent to and
// fro.
func (g *limiter) passOn(now time.Time, subs int) {
	if g.call != nil || !g.retry.IsZero() {
		return
	}
	g.turns = slices.DeleteFunc(g.turns, func(k *limitKey) bool {
		open := k.open
		if slices.Contains(g.gates, k) {
			open = g.counts.open
		}
		switch {
		case k.turn.IsZero():
			return true
		case subs > 0 && open > 0 && !k.asked && now.Sub(k.turn) < roomComes:
			return false
		}
		k.turn = time.Time{}
		g.leaveLine(k)
		return true
	})
}

// leaveLine ends this node's place in the line of a key.
func (g *limiter) leaveLine(k *limitKey) {
	k.inLine = false
	if limit := g.limitOf(k.keyName); !slices.Contains(g.leave, limit) {
		g.leave = append(g.leave, limit)
	}
}

// stay keeps the places in line that a call is to leave and asks by. Nodes that left, and came last each time, would be in
// each other's way for ever.
func (g *limiter) stay(call *TakeCall) {
	if len(call.Leave)+len(g.turns) == 0 {
		return
	}
	asked := make(map[store.Limit]*limitKey)
	for _, w := range call.Wants {
		for k := range g.ofWant(w) {
			asked[g.limitOf(k.keyName)] = k
			k.asked = true
		}
	}
	call.Leave = slices.DeleteFunc(call.Leave, func(l store.Limit) bool {
		k := asked[l]
		if k != nil {
			k.inLine = true
		}
		return k != nil
	})
}

// limitOf is a key as the store names it.
func (g *limiter) limitOf(name keyName) store.Limit {
	if name.rate {
		return store.Limit{Key: store.LimitKey{Topic: g.topic, Key: name.key}, Rate: true}
	}
	return store.Limit{Key: store.CapKey(g.topic, name.key)}
}

// permit is what a granted want has under a holder; nil: it is under no cap.
func (c *TakeCall) permit(want, holder int) *Permit {
	keys := c.caps(want)
	if len(keys) == 0 {
		return nil
	}
	return &Permit{Holder: c.Holders[holder], Keys: keys, Until: c.Until}
}

// caps are those that a want is under: that of its key, the topic's, the namespace's.
func (c *TakeCall) caps(want int) (keys []store.LimitKey) {
	if key := c.Wants[want].CapKey; key != "" {
		keys = append(keys, store.CapKey(c.Topic, key))
	}
	for _, key := range [...]string{"", store.NamespaceCap} {
		if c.Limits.Cap(key) > 0 {
			keys = append(keys, store.CapKey(c.Topic, key))
		}
	}
	return keys
}

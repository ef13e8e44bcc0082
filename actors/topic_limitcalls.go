package actors

import (
	"cmp"
	"context"
	"slices"

	"github.com/ddq-io/ddq/actors/dispatch"
	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/ordered"
	"github.com/ddq-io/ddq/actors/runtime"
	"github.com/ddq-io/ddq/actors/shard"
	"github.com/ddq-io/ddq/store"
)

// limitBatch is how many tokens' lines, tasks or permits are in one call at most.
const limitBatch = 2 * store.BatchItems

// fly starts the store calls about limits that may start. What comes while one of
// a kind is under way makes the next batch.
func (t *topicLimits) fly() {
	if batch := t.reserves.Next(); batch != nil {
		t.storeReserves(batch)
	}
	if batch := t.acquires.Next(); batch != nil {
		t.acquire(batch)
	}
	if batch := t.frees.Next(); batch != nil {
		t.storeFrees(batch)
	}
}

func (t *topicLimits) storeReserves(batch []dispatch.Reservation) {
	asked := make([]store.Reservation, len(batch))
	for i, r := range batch {
		asked[i] = r.Asked
	}
	t.calls.Run(func(ctx context.Context) {
		m := &tokensReserved{asked: batch}
		m.got, m.err = t.Store.Reserve(ctx, asked)
		t.done(m)
	})
}

// wanted is one task that permits are asked for.
type wantedPermit struct {
	ticket *dispatch.Ticket
	key    string // of its cap; empty: under none but the topic's
}

// acquire asks the store for the permits of tasks.
func (t *topicLimits) acquire(tickets []*dispatch.Ticket) {
	limits, visibility, wanted := t.core.Limits(), t.topic.Visibility, make([]wantedPermit, len(tickets))
	for i, ticket := range tickets {
		wanted[i].ticket = ticket
		if limits.KeyConcurrency > 0 {
			wanted[i].key = ticket.CapKey()
		}
		if sub := t.subscribers[ticket.Sub()]; sub != nil {
			visibility = max(visibility, sub.Options.Visibility)
		}
	}
	a := acquisition{Runtime: t.Runtime, topic: t.topic.Name, limits: limits, wanted: wanted}
	t.calls.Run(func(ctx context.Context) {
		a.until = a.Latest().Add(visibility + shard.PermitSlack)
		t.done(&permitsAcquired{all: a.run(ctx)})
	})
}

// acquisition asks for permits of keys first, then, for those that got one, of the
// topic. It runs off the actor.
type acquisition struct {
	*runtime.Runtime
	topic  string
	limits store.TopicLimits
	wanted []wantedPermit
	until  store.Millis
	all    []dispatch.Acquired
}

func (a *acquisition) run(ctx context.Context) []dispatch.Acquired {
	a.all = make([]dispatch.Acquired, len(a.wanted))
	holders := store.NewTokens(len(a.wanted))
	byKey := make(map[string][]int)
	var topic []int
	for i, w := range a.wanted {
		a.all[i] = dispatch.Acquired{Ticket: w.ticket, Permit: &dispatch.Permit{Holder: holders[i], Until: a.until}, Room: -1}
		if w.key != "" {
			byKey[w.key] = append(byKey[w.key], i)
		}
		topic = append(topic, i)
	}
	err := a.ask(ctx, byKey, a.limits.KeyConcurrency)
	if a.limits.Concurrency > 0 && err == nil {
		topic = slices.DeleteFunc(topic, func(i int) bool { return a.all[i].Permit == nil })
		err = a.ask(ctx, map[string][]int{"": topic}, a.limits.Concurrency)
	}
	if err != nil {
		a.fail(ctx, err)
	}
	return a.all
}

// ask asks for the permits of some tasks by key, and takes back what those have that
// do not get one.
func (a *acquisition) ask(ctx context.Context, byKey map[string][]int, most int) error {
	var asked []store.Acquire
	var groups [][]int
	for key, items := range ordered.All(byKey, cmp.Compare) {
		if len(items) == 0 {
			continue
		}
		q := store.Acquire{Key: store.LimitKey{Topic: a.topic, Key: key}, Max: most, Node: a.Name, Until: a.until}
		for _, i := range items {
			q.Holders = append(q.Holders, a.all[i].Permit.Holder)
		}
		asked, groups = append(asked, q), append(groups, items)
	}
	if len(asked) == 0 {
		return nil
	}
	var got []store.Acquired
	_, err := a.Resolve(ctx, func() (err error) {
		got, err = a.Store.Acquire(ctx, asked)
		return err
	})
	if err != nil {
		return err
	}
	var back []store.Permit
	for g, items := range groups {
		for k, i := range items {
			r := &a.all[i]
			if k < got[g].N {
				r.Permit.Keys = append(r.Permit.Keys, asked[g].Key)
				r.Fits(most - got[g].InUse)
				continue
			}
			back = append(back, r.Permit.Each()...)
			r.Permit, r.Lacks = nil, asked[g].Key.Key
		}
	}
	a.giveBack(ctx, back)
	return nil
}

// giveBack frees permits of keys whose tasks wait for the topic's. Those that are not
// end by themselves.
func (a *acquisition) giveBack(ctx context.Context, permits []store.Permit) {
	if len(permits) == 0 {
		return
	}
	if _, err := a.Store.Free(ctx, permits); err != nil {
		a.Log.Debug("permits not given back", "topic", a.topic, "err", err)
	}
}

// fail gives back what may have been taken.
func (a *acquisition) fail(ctx context.Context, err error) {
	a.Metrics.StoreErrors.Inc()
	a.Log.Debug("permits not acquired", "topic", a.topic, "err", err)
	var back []store.Permit
	for i := range a.all {
		r := &a.all[i]
		if r.Permit != nil {
			for _, key := range [...]string{a.wanted[i].key, ""} {
				back = append(back, store.Permit{Key: store.LimitKey{Topic: a.topic, Key: key}, Holder: r.Permit.Holder})
			}
		}
		r.Permit, r.Failed = nil, true
	}
	a.giveBack(ctx, back)
}

// resign gives up this node's turns at caps, and tells those who wait behind it when
// there is a permit.
func (t *topicLimits) resign(keys []store.LimitKey) {
	if len(keys) == 0 {
		return
	}
	asked := make([]store.Acquire, len(keys))
	for i, key := range keys {
		asked[i] = store.Acquire{Key: key, Node: t.Name}
	}
	limits := t.core.Limits()
	t.calls.Run(func(ctx context.Context) {
		got, err := t.Store.Acquire(ctx, asked)
		if err != nil {
			t.log.Debug("turns not given up", "topic", asked[0].Key.Topic, "err", err) // they lapse
			return
		}
		var room []store.Permit // of nobody: to hear who waits
		for i := range asked {
			key := asked[i].Key
			if most := limits.Cap(key.Key); got[i].InUse < most {
				room = append(room, store.Permit{Key: key})
			}
		}
		t.freeAll(ctx, room)
	})
}

// free ends permits, and tells the nodes that wait for them, this one too.
func (t *topicLimits) free(permits []*dispatch.Permit) {
	t.frees.Waiting = append(t.frees.Waiting, permits...)
}

func (t *topicLimits) storeFrees(permits []*dispatch.Permit) {
	var all []store.Permit
	for _, p := range permits {
		all = append(all, p.Each()...)
	}
	t.calls.Run(func(ctx context.Context) {
		t.freeAll(ctx, all)
		t.done(&permitsFreed{})
	})
}

// freeAll runs off the actor.
func (t *topicLimits) freeAll(ctx context.Context, permits []store.Permit) {
	if len(permits) == 0 {
		return
	}
	var waiting [][]string
	_, err := t.Resolve(ctx, func() (err error) {
		waiting, err = t.Store.Free(ctx, permits)
		return err
	})
	if err != nil {
		t.noteLimits(err) // they end by themselves
		return
	}
	t.tellFree(permits, waiting)
}

// tellFree tells nodes that permits are free: as many of them as there are permits,
// and this one in any case, whose tasks may wait without having asked.
func (t *topicLimits) tellFree(freed []store.Permit, waiting [][]string) {
	here := &permitsFree{}
	there := make(map[string]*fleet.FreedNotice)
	given := make(map[string]int)
	for i, p := range freed {
		key := p.Key.Key
		if !slices.Contains(waiting[i], t.Name) {
			here.keys = append(here.keys, key)
		}
		if len(waiting[i]) == 0 {
			continue
		}
		node := waiting[i][given[key]%len(waiting[i])]
		given[key]++
		if node == t.Name {
			here.inTurn = append(here.inTurn, key)
			continue
		}
		if there[node] == nil {
			there[node] = &fleet.FreedNotice{Topic: t.ref.shared.Current.Load().Name}
		}
		there[node].Keys = append(there[node].Keys, key)
	}
	if len(here.keys)+len(here.inTurn) > 0 {
		t.Send(t.ref.pid, here)
	}
	for node, n := range ordered.All(there, cmp.Compare) {
		t.Fleet.Notify(node, fleet.Notice{Freed: []fleet.FreedNotice{*n}})
	}
}

func (t *topicLimits) noteLimits(err error) {
	t.Metrics.StoreErrors.Inc()
	t.log.Debug("store call about limits failed", "topic", t.ref.shared.Current.Load().Name, "err", err)
}

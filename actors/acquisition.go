package actors

import (
	"cmp"
	"context"
	"slices"

	"github.com/ddq-io/ddq/actors/dispatch"
	"github.com/ddq-io/ddq/actors/ordered"
	"github.com/ddq-io/ddq/actors/runtime"
	"github.com/ddq-io/ddq/store"
)

// acquisition asks for permits of keys first, then, for those that got one, of the
// topic, and of its namespace last. It runs off the actor.
type acquisition struct {
	*runtime.Runtime
	topic  string
	limits store.TopicLimits
	wanted []wantedPermit
	until  store.Millis
	all    []dispatch.Acquired

	// free frees permits whose tasks wait for those of another cap, and tells who waits for them. Those that
	// are not freed end by themselves.
	free func(ctx context.Context, permits []store.Permit)
}

func (a *acquisition) run(ctx context.Context) []dispatch.Acquired {
	a.all = make([]dispatch.Acquired, len(a.wanted))
	holders := store.NewTokens(len(a.wanted))
	byKey := make(map[string][]int)
	var left []int
	for i, w := range a.wanted {
		a.all[i] = dispatch.Acquired{Ticket: w.ticket, Permit: &dispatch.Permit{Holder: holders[i], Until: a.until}, Room: -1}
		if w.key != "" {
			byKey[w.key] = append(byKey[w.key], i)
		}
		left = append(left, i)
	}
	err := a.ask(ctx, byKey, a.limits.KeyConcurrency)
	for _, key := range [...]string{"", store.NamespaceCap} {
		if most := a.limits.Cap(key); most > 0 && err == nil {
			left = slices.DeleteFunc(left, func(i int) bool { return a.all[i].Permit == nil })
			err = a.ask(ctx, map[string][]int{key: left}, most)
		}
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
		q := store.Acquire{Key: store.CapKey(a.topic, key), Max: most, Node: inLine(a.Name, a.topic, key), Until: a.until}
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
	a.free(ctx, back)
	return nil
}

// fail gives back what may have been taken.
func (a *acquisition) fail(ctx context.Context, err error) {
	a.Metrics.StoreErrors.Inc()
	a.Log.Debug("permits not acquired", "topic", a.topic, "err", err)
	var back []store.Permit
	for i := range a.all {
		r := &a.all[i]
		if r.Permit != nil {
			for _, key := range [...]string{a.wanted[i].key, "", store.NamespaceCap} {
				if a.limits.Cap(key) > 0 {
					back = append(back, store.Permit{Key: store.CapKey(a.topic, key), Holder: r.Permit.Holder})
				}
			}
		}
		r.Permit, r.Failed = nil, true
	}
	a.free(ctx, back)
}

// wantedPermit is one task that permits are asked for.
type wantedPermit struct {
	ticket *dispatch.Ticket
	key    string // of its cap; empty: under none but the topic's
}

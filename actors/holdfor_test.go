package actors_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
	"github.com/ddq-io/ddq/store/place"
)

// slowReplies is a store whose replies take a while, so that what a node believes the
// store's clock to be lags behind it by as much.
type slowReplies struct {
	store.Store
	by time.Duration
}

func (f slowReplies) Clock(ctx context.Context) (time.Time, error) {
	defer time.Sleep(f.by)
	return f.Store.Clock(ctx)
}

func (f slowReplies) Claim(ctx context.Context, s store.Shard, session store.Session) (store.Stamp, store.Fence, error) {
	defer time.Sleep(f.by)
	return f.Store.Claim(ctx, s, session)
}

func (f slowReplies) Window(ctx context.Context, s store.Shard, w store.WindowQuery) (store.Stamp, []store.Entry, error) {
	defer time.Sleep(f.by)
	return f.Store.Window(ctx, s, w)
}

func (f slowReplies) Add(ctx context.Context, s store.Shard, tasks []*store.Task) (store.Stamp, []store.AddResult, error) {
	defer time.Sleep(f.by)
	return f.Store.Add(ctx, s, tasks)
}

func (f slowReplies) HoldNew(ctx context.Context, s store.Shard, fence store.Fence, tasks []*store.Task, holds []store.Hold) (store.Stamp, []store.AddResult, error) {
	defer time.Sleep(f.by)
	return f.Store.HoldNew(ctx, s, fence, tasks, holds)
}

func (f slowReplies) Hold(ctx context.Context, s store.Shard, fence store.Fence, holds []store.Hold) (store.Stamp, []store.HoldResult, error) {
	defer time.Sleep(f.by)
	return f.Store.Hold(ctx, s, fence, holds)
}

func (f slowReplies) Extend(ctx context.Context, s store.Shard, extends []store.Extend) (store.Stamp, []store.ExtendResult, error) {
	defer time.Sleep(f.by)
	return f.Store.Extend(ctx, s, extends)
}

// A worker may rely on what it is told is left of a hold: it is never more than there is,
// however slow the replies that tell a node the store's clock.
func TestHoldLastsAsLongAsTheWorkerIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := servicetest.Start(t, actors.Config{}, slowReplies{memstore.New(), 40 * time.Millisecond})
		defer func() {
			s.Node().Stop(t.Context())
			time.Sleep(5 * time.Second) // the actor library's dead-letter throttle ends by itself
		}()
		w := servicetest.Subscribe(t, s, "mail", 10)
		for _, delay := range []time.Duration{0, time.Second} {
			servicetest.EnqueueOne(t, s, servicetest.After("mail", delay.String(), delay))
			time.Sleep(2 * time.Second)
			d := w.TakeOne()
			w.Settle(subscription.SettleAck, d)
			if left := d.Deadline.Time().Sub(w.At[len(w.At)-1]); d.HoldFor > left {
				t.Errorf("due in %v: %v is left of the hold, and the worker is told %v", delay, left, d.HoldFor)
			}
			w.Settle(subscription.SettleExtend, d)
			time.Sleep(time.Second)
			if r := w.TakeSettled()[0]; r.HoldFor > s.Node().Config().Topic.Visibility-40*time.Millisecond {
				t.Errorf("extended by %v with an answer 40ms later, and the worker is told %v", s.Node().Config().Topic.Visibility, r.HoldFor)
			}
			w.Settle(subscription.SettleAck, d)
			if left := d.Deadline.Time().Sub(w.At[len(w.At)-1]); d.HoldFor > left {
				t.Errorf("due in %v: %v is left of the hold, and the worker is told %v", delay, left, d.HoldFor)
			}
			w.Settle(subscription.SettleExtend, d)
			asked := time.Now()
			time.Sleep(time.Second)
			if r := w.TakeSettled()[0]; r.HoldFor > s.Node().Config().Topic.Visibility {
				t.Errorf("extended at %v by %v, and the worker is told %v", asked, s.Node().Config().Topic.Visibility, r.HoldFor)
			}
		}
	})
}

// The clock of a shard's primary was set since this node heard of it last, and what another node holds for its worker
// is long on its way: how long such holds last is known once the store was asked, and before that nobody is told.
func TestHoldsOfAShardNotHeardOfLatelyLastNoLongerThanTheWorkerIsTold(t *testing.T) {
	const set, lag = 5 * time.Second, 3 * time.Second
	for name, silent := range map[string]bool{"the store answers": false, "the store is silent": true} {
		t.Run(name, func(t *testing.T) {
			servicetest.FleetBubble(t, nil, func(t *testing.T, f *servicetest.Fleet) {
				f.ManyClocks = true
				f.Join("a")
				b := f.Join("b")
				w := servicetest.Subscribe(t, b.Sys, "mail", 10)
				servicetest.Idle(time.Minute)
				f.Store.SetClock(set)
				f.Edit(func() { f.Lag = lag })
				b.Store.NoCounts.Store(silent)
				owners, sent := f.Owners("mail"), 0
				for i := range 10 {
					if id := fmt.Sprint(i); owners[place.ShardOf(id, len(owners))] == "a" {
						servicetest.EnqueueOne(t, f.Nodes["a"].Sys, servicetest.After("mail", id, 0))
						sent++
					}
				}
				servicetest.Idle(3 * lag) // what is given back comes again
				got := w.Take()
				if len(got) != sent {
					t.Errorf("%d deliveries, want %d", len(got), sent)
				}
				for i, d := range got {
					_, found, err := f.Store.Get(t.Context(), store.Shard{Topic: "mail", N: place.ShardOf(d.Task.ID, len(owners))}, []string{d.Task.ID})
					if err != nil {
						t.Fatal(err)
					}
					if left := found[0].Deadline.Time().Sub(w.At[i].Add(set)); d.HoldFor > left {
						t.Errorf("%v is left of a hold, and the worker is told %v", left, d.HoldFor)
					}
				}
			})
		})
	}
}

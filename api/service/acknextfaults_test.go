package service_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
)

// away cannot be reached for acks any more: it went away right behind a commit. What it closes is not taken by a first
// commit, and a second one fails.
type away struct {
	*memstore.Store
	gone   atomic.Bool
	closes atomic.Int32
}

func (a *away) Ack(ctx context.Context, s store.Shard, acks []store.Ack, retention time.Duration) (store.Stamp, []store.Status, error) {
	if a.gone.Load() {
		return store.Stamp{}, nil, store.ErrUnavailable
	}
	return a.Store.Ack(ctx, s, acks, retention)
}

func (a *away) Commit(ctx context.Context, s store.Shard, f *store.Fence, commits []store.Commit) (store.Stamp, []store.CommitResult, error) {
	if len(commits[0].Acks) == 0 || a.closes.Load() == 0 {
		return a.Store.Commit(ctx, s, f, commits)
	}
	if a.closes.Add(-1) == 0 {
		return store.Stamp{}, nil, store.ErrUnavailable
	}
	stamp, results, err := a.Store.Commit(ctx, s, f, commits[:1])
	for len(results) < len(commits) {
		results = append(results, store.CommitResult{Status: store.Closed})
	}
	return stamp, results, err
}

// An ack that is made is answered so, whatever becomes of the calls about others of its batch. Those are answered by
// what is known of them.
func TestACallAboutOtherAcksDecidesNothing(t *testing.T) {
	for name, fails := range map[string]func(*away){
		"why a hold is over":    func(a *away) { a.gone.Store(true) },
		"where the tasks go to": func(a *away) { a.closes.Store(2) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := &away{Store: memstore.New()}
				s := servicetest.Start(t, actors.Config{Topic: store.Topic{Shards: 1}}, db)
				defer servicetest.Stop(s)
				w := servicetest.Subscribe(t, s, "mail", 100)
				servicetest.EnqueueOne(t, s, nextTask("mail", "first"))
				first := w.Gets("first")["first"]
				asks := []subscription.Settlement{
					{Kind: subscription.SettleAck, ID: first.Task.ID, Token: first.Token},
					{Kind: subscription.SettleAck, ID: first.Task.ID + "x", Token: subscription.EncodeToken(0, store.NewToken())}, // of a hold that is over
				}
				next := service.Nexts{0: {Tasks: []service.NewTask{nextTask("mail", "next")}}, 1: {Tasks: []service.NewTask{nextTask("mail", "never")}}}
				fails(db)
				done, err := s.Delivery.SettleNext(t.Context(), "mail", asks, next)
				synctest.Wait()
				if err != nil {
					t.Fatal(err)
				}
				if done[0].Err != nil {
					t.Errorf("the ack that was made is answered %v", done[0].Err)
				}
				if e := done[1].Err; e == nil || e.Reason != "STORE_DOWN" {
					t.Errorf("the ack of which nothing is known is answered %v", e)
				}
				db.gone.Store(false)
				servicetest.Idle(20 * time.Second)
				w.Gets("next")
				if again, err := ackNext(t, s, "mail", first, next[0].Tasks...); err != nil || !again.Already {
					t.Errorf("the same ack again: %+v, %v", again, err)
				}
				if again, err := s.Delivery.SettleNext(t.Context(), "mail", asks[1:], service.Nexts{0: next[1]}); err != nil || again[0].Err == nil || again[0].Err.Reason != "HOLD_LOST" {
					t.Errorf("the other ack again: %+v, %v", again, err)
				}
			})
		})
	}
}

// reads counts the messages that relays read.
type reads struct {
	*memstore.Store
	messages atomic.Int64
}

func (r *reads) Messages(ctx context.Context, s store.Shard, q store.Queue, after int64, limit, bytes int) (store.MessagePage, error) {
	page, err := r.Store.Messages(ctx, s, q, after, limit, bytes)
	r.messages.Add(int64(len(page.Messages)))
	return page, err
}

// What waits for a topic that is paused is not read, and arrives once that goes on.
func TestWhatWaitsForAPausedTopicIsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const acks, each = 52, 100
		db := &reads{Store: memstore.New()}
		s := servicetest.Start(t, actors.Config{Topic: store.Topic{Shards: 1}}, db)
		defer servicetest.Stop(s)
		mail := servicetest.Subscribe(t, s, "mail", acks)
		configure(t, s, "audit", func(c *store.Topic) { c.EnqueuePaused = true })
		var names []string
		for i := range acks {
			names = append(names, fmt.Sprint(i))
			servicetest.EnqueueOne(t, s, nextTask("mail", names[i]))
		}
		for name, d := range mail.Gets(names...) {
			next := make([]service.NewTask, each)
			for k := range next {
				next[k] = nextTask("audit", fmt.Sprint(name, "-", k))
			}
			if _, err := ackNext(t, s, "mail", d, next...); err != nil {
				t.Fatal(err)
			}
		}
		servicetest.Idle(time.Minute)
		if n := db.messages.Load(); n > 2*acks {
			t.Errorf("%d messages are read while they wait", n)
		}
		configure(t, s, "audit", func(c *store.Topic) { c.EnqueuePaused = false })
		servicetest.Idle(time.Second)
		stats, err := db.Counts(t.Context(), []store.Shard{{Topic: "audit"}, {Topic: "mail"}})
		if err != nil {
			t.Fatal(err)
		}
		if stats[0].Pending != acks*each || stats[1].Parcels != 0 {
			t.Errorf("%d of %d tasks arrived, %d messages are left", stats[0].Pending, acks*each, stats[1].Parcels)
		}
	})
}

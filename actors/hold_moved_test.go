package actors_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
)

// awayForHolds is a store of which the first hold fails, after a while.
type awayForHolds struct {
	*servicetest.FaultyStore
	lasts time.Duration
}

func (a *awayForHolds) Hold(ctx context.Context, s store.Shard, f store.Fence, holds []store.Hold) (store.Stamp, []store.HoldResult, error) {
	if lasts := a.lasts; lasts > 0 {
		a.lasts = 0
		time.Sleep(lasts)
		return store.Stamp{}, nil, store.ErrUnavailable
	}
	return a.FaultyStore.Hold(ctx, s, f, holds)
}

// A task is moved to an earlier time while a hold of it is on its way, which fails: what is read again
// then begins with that time.
func TestTaskMovedWhileItsHoldFailsComesSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := actors.Config{WatchdogInterval: time.Hour, Topic: store.Topic{Shards: 1}}
		s := servicetest.Start(t, cfg, &awayForHolds{servicetest.NewFaultyStore(), 3 * time.Second})
		defer servicetest.Stop(s)
		w := servicetest.Subscribe(t, s, "mail", 10)
		servicetest.EnqueueOne(t, s, servicetest.After("mail", "a", 2*time.Second))
		time.Sleep(3 * time.Second)
		if _, err := s.Tasks.Reschedule(t.Context(), "mail", "a", service.When{At: store.Millis(time.Now().Add(-2 * time.Second).UnixMilli())}, 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if got := w.Take(); len(got) != 1 {
			t.Errorf("%d deliveries ten seconds later, want one", len(got))
		}
	})
}

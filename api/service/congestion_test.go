package service_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
)

// busyStore holds one batch at a time, each task of which takes a while.
type busyStore struct {
	store.Store
	each time.Duration
	turn chan struct{} // has room for one: whoever fills it

	holds, late int // guarded by turn
}

func (b *busyStore) Hold(ctx context.Context, s store.Shard, f store.Fence, wanted []store.Hold) (store.Stamp, []store.HoldResult, error) {
	b.turn <- struct{}{}
	defer func() { <-b.turn }()
	time.Sleep(time.Duration(len(wanted)) * b.each)
	stamp, results, err := b.Store.Hold(ctx, s, f, wanted)
	for _, r := range results {
		b.holds++
		if r.Status == store.Late {
			b.late++
		}
	}
	return stamp, results, err
}

// A store that is slower than a rate allows: when all tasks that workers have credit for
// were sent to it at once, their tokens ended on the way, and most of what it did was to
// say so.
func TestTokensDoNotEndOnTheWay(t *testing.T) {
	const tasks, perSecond = 10_000, 5000
	synctest.Test(t, func(t *testing.T) {
		b := &busyStore{Store: memstore.New(), each: time.Second / perSecond, turn: make(chan struct{}, 1)}
		s := servicetest.Start(t, actors.Config{Limits: actors.Limits{BatchTasks: tasks}}, b)
		defer func() {
			s.Node().Stop(t.Context())
			time.Sleep(5 * time.Second) // as in bubble
		}()
		rate := &store.Rate{Count: 1_000_000, Period: time.Second, Burst: 100_000}
		if _, err := s.Topics.Create(t.Context(), "mail", service.TopicChange{Rate: rate}); err != nil {
			t.Fatal(err)
		}
		w := servicetest.Subscribe(t, s, "mail", tasks)
		backlog := make([]service.NewTask, tasks)
		for i := range backlog {
			backlog[i] = servicetest.After("mail", "", 0)
			backlog[i].Task.MaxRetries = -1
		}
		if _, err := s.Tasks.Enqueue(t.Context(), backlog); err != nil {
			t.Fatal(err)
		}
		began, got := time.Now(), 0
		for got < tasks && time.Since(began) < 20*time.Second {
			got += w.Rate(100 * time.Millisecond)
		}
		took := time.Since(began)
		t.Logf("%d of %d delivered in %v; %d holds, %d of them too late", got, tasks, took, b.holds, b.late)
		if got != tasks || took > 2*tasks/perSecond*time.Second {
			t.Errorf("%d of %d delivered in %v: the store can do %d a second", got, tasks, took, perSecond)
		}
		if b.late > b.holds/10 {
			t.Errorf("%d of %d holds came too late", b.late, b.holds)
		}
	})
}

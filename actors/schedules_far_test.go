package actors_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/api/service/schedules"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
)

// wakesStore counts how often it is asked which cells wake.
type wakesStore struct {
	*memstore.Store
	asked atomic.Int64
}

func (w *wakesStore) Wakes(ctx context.Context, s store.Shard, q store.WakeQuery) (store.Stamp, []store.Wake, error) {
	if q.To != 0 { // else a call of a user asks for the time
		w.asked.Add(1)
	}
	return w.Store.Wakes(ctx, s, q)
}

// TestASchedulePutForLaterCausesNoLook has schedules put whose first runs are in an hour, which come in time.
func TestASchedulePutForLaterCausesNoLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &wakesStore{Store: memstore.New()}
		s := servicetest.Start(t, actors.Config{Topic: store.Topic{Shards: 1}}, db)
		defer servicetest.Stop(s)
		w := servicetest.Subscribe(t, s, "mail", 10)
		servicetest.Idle(time.Second)
		start, before := time.Now(), db.asked.Load()
		for _, name := range []string{"a", "b", "c"} {
			n := schedules.Definition{Topic: "mail", Name: name, Spec: everySpec(time.Hour)}
			if put, err := s.Schedules.Put(t.Context(), n, nil); err != nil || put.Outcome != schedules.Created {
				t.Fatal(put, err)
			}
		}
		if servicetest.Idle(time.Millisecond); db.asked.Load() != before {
			t.Errorf("the store was asked %d times which cells wake", db.asked.Load()-before)
		}
		servicetest.Idle(time.Until(start.Add(time.Hour)) + 10*time.Millisecond)
		got := w.Take()
		if len(got) != 3 {
			t.Fatalf("%d runs after an hour, want 3", len(got))
		}
		for _, d := range got {
			if d.Task.RunOf == nil || d.Task.Due.Time().Before(start.Add(time.Hour-time.Second)) {
				t.Errorf("a run of %+v, due %v", d.Task.RunOf, d.Task.Due.Time())
			}
		}
	})
}

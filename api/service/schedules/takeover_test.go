package schedules_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/service/schedules"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
)

// overtaken is a store at which something happens before a call of no owner reads parcels, and
// before it commits.
type overtaken struct {
	*memstore.Store
	reads   func(store.Shard)
	commits func()
	owner   chan struct{} // what the owner commits waits until it is closed; nil: for nothing
}

func (o *overtaken) Parcels(ctx context.Context, s store.Shard, box store.Box, after int64, limit int) ([]store.Parcel, error) {
	if reads := o.reads; reads != nil {
		o.reads = nil
		reads(s)
	}
	return o.Store.Parcels(ctx, s, box, after, limit)
}

func (o *overtaken) Commit(ctx context.Context, s store.Shard, f *store.Fence, commits []store.Commit) (store.Stamp, []store.CommitResult, error) {
	if then := o.commits; then != nil && f == nil {
		o.commits = nil
		then()
	}
	if o.owner != nil && f != nil {
		<-o.owner
	}
	return o.Store.Commit(ctx, s, f, commits)
}

// TestAChangeIsForTheServerThatWasRead has a server take over between what a trigger reads and its
// commit: the former one was told of an end that the new one was not, under a number that the new one
// gives to another.
func TestAChangeIsForTheServerThatWasRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &overtaken{Store: memstore.New()}
		s := servicetest.Start(t, actors.Config{}, st)
		defer s.Node().Stop(context.WithoutCancel(t.Context()))
		yearly := scheduled("yearly", cron("0 3 1 1 *"))
		yearly.Overlap = schedule.Allow
		put(t, s, yearly)
		w := handsFor(t, s)
		trigger := func() {
			if _, err := s.Schedules.Trigger(t.Context(), schedules.Trigger{Name: "yearly"}); err != nil {
				t.Fatal(err)
			}
		}
		trigger()
		first, _ := w.next()
		trigger()
		second, _ := w.next()

		was := st.Clone()
		st.reads = func(shard store.Shard) {
			_, token, _ := subscription.DecodeToken(first.Token)
			for range 3 {
				if _, _, err := st.Store.Commit(t.Context(), shard, nil, []store.Commit{{Send: []store.Parcel{{To: "sanother", Body: []byte("look")}}}}); err != nil {
					t.Fatal(err)
				}
			}
			if _, _, err := st.Ack(t.Context(), shard, []store.Ack{{ID: first.Task.ID, Token: token}}, time.Hour); err != nil {
				t.Fatal(err)
			}
		}
		st.commits = func() { st.Restore(was) }
		trigger()
		third, _ := w.next()
		for _, d := range []subscription.Delivery{second, first, third} {
			w.ack(d)
		}
		servicetest.Idle(10 * time.Second)
		if found := get(t, s, "yearly"); len(found.Open) != 0 || found.Totals[schedule.Done] != 3 {
			t.Errorf("all runs have ended; open are %v, and done %d", found.Open, found.Totals[schedule.Done])
		}
	})
}

// TestATriggerWhosePlaceIsTakenAtOnceHasWaited: where the owner has not decided yet what the timetable names, the step of
// the trigger does, and a later one takes the place of a run that waits.
func TestATriggerWhosePlaceIsTakenAtOnceHasWaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &overtaken{Store: memstore.New()}
		s := servicetest.Start(t, actors.Config{}, st)
		defer s.Node().Stop(context.WithoutCancel(t.Context()))
		minutely := scheduled("minutely", cron("* * * * *"))
		minutely.Overlap = schedule.BufferOne
		put(t, s, minutely)
		if _, err := s.Schedules.Trigger(t.Context(), schedules.Trigger{Name: "minutely"}); err != nil {
			t.Fatal(err)
		}
		servicetest.Idle(time.Second)
		st.owner = make(chan struct{})
		servicetest.Idle(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute + time.Second)))
		made, err := s.Schedules.Trigger(t.Context(), schedules.Trigger{Name: "minutely"})
		if err != nil || made.ID != "" || !made.Waiting {
			t.Errorf("%+v, %v", made, err)
		}
		close(st.owner)
		servicetest.Idle(time.Second)
		if found := get(t, s, "minutely"); found.Skipped[schedule.Superseded] != 1 || len(found.Waiting) != 1 {
			t.Errorf("skipped %v, and %v wait", found.Skipped, found.Waiting)
		}
	})
}

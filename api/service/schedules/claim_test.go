package schedules_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/audience"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/audiences"
	"github.com/ddq-io/ddq/api/service/schedules"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
	"github.com/ddq-io/ddq/timer/timetable"
)

// meanwhile does something right before a commit to a shard that is made without an owner.
type meanwhile struct {
	*memstore.Store
	shard func(store.Shard) bool
	skip  int    // commits before that
	do    func() // once
	fail  bool   // that commit and all later ones to the shard, as after a crash
}

func (m *meanwhile) Commit(ctx context.Context, s store.Shard, f *store.Fence, commits []store.Commit) (store.Stamp, []store.CommitResult, error) {
	if f == nil && m.shard != nil && m.shard(s) {
		m.skip--
		if do := m.do; do != nil && m.skip < 0 {
			m.do = nil
			do()
		}
		if m.fail && m.skip < 0 {
			return store.Stamp{}, nil, store.ErrUnavailable
		}
	}
	return m.Store.Commit(ctx, s, f, commits)
}

// named is what a schedule names, and may be deleted.
type named struct {
	lies   store.Shard // where it lies
	inUse  string      // why it is not deleted
	gone   string      // why a schedule is refused
	create func(t *testing.T, s *service.Service)
	delete func(ctx context.Context, s *service.Service) error
	name   func(*schedules.Definition)
}

var allNamed = map[string]named{
	"an audience": {
		lies: audience.Catalog(), inUse: "AUDIENCE_IN_USE", gone: "NO_AUDIENCE",
		create: func(t *testing.T, s *service.Service) {
			t.Helper()
			if _, err := s.Audiences.Create(t.Context(), audiences.Spec{Name: "users", Shards: 1}, 1); err != nil {
				t.Fatal(err)
			}
		},
		delete: func(ctx context.Context, s *service.Service) error { return s.Audiences.Delete(ctx, "users", 1) },
		name: func(n *schedules.Definition) {
			n.Audience = &schedule.Target{Name: "users", Quiet: uint8(audience.Defer)}
		},
	},
	"a calendar": {
		lies: schedule.CalendarShard, inUse: "CALENDAR_IN_USE", gone: "NO_CALENDAR",
		create: func(t *testing.T, s *service.Service) {
			t.Helper()
			putCalendar(t, s, schedules.Calendar{Name: "weekends", Calendar: timetable.Calendar{Weekdays: []time.Weekday{time.Sunday}}})
		},
		delete: func(ctx context.Context, s *service.Service) error { return s.Calendars.Delete(ctx, "weekends") },
		name:   func(n *schedules.Definition) { n.Calendars = []string{"weekends"} },
	},
}

// TestWhatAScheduleNamesIsThere has a schedule put between any two commits of the deletion of what it names, and the
// other way round: one of the two is refused.
func TestWhatAScheduleNamesIsThere(t *testing.T) {
	for what, of := range allNamed {
		for _, edit := range []bool{false, true} {
			for skip := range 2 {
				t.Run(fmt.Sprintf("%s, edit %t, behind %d commits", what, edit, skip), func(t *testing.T) {
					ofNamed(t, of, edit, func(t *testing.T, s *service.Service, st *meanwhile, n schedules.Definition) {
						st.shard, st.skip = func(s store.Shard) bool { return s == of.lies }, skip
						st.do = func() { put(t, s, n) }
						if err := of.delete(t.Context(), s); servicetest.ReasonOf(err) != of.inUse {
							t.Errorf("put meanwhile, it is deleted with %v", err)
						}
					})
					ofNamed(t, of, edit, func(t *testing.T, s *service.Service, st *meanwhile, n schedules.Definition) {
						st.shard, st.skip = func(s store.Shard) bool { return s.Topic == "report" }, skip
						st.do = func() {
							if err := of.delete(t.Context(), s); err != nil {
								t.Error(err)
							}
						}
						if _, err := s.Schedules.Put(t.Context(), n, nil); servicetest.ReasonOf(err) != of.gone {
							t.Errorf("deleted meanwhile, it is put with %v", err)
						}
						found, err := s.Schedules.Get(t.Context(), "report", n.Name)
						if there := err == nil; there != edit || there && (found.Audience != nil || len(found.Calendars) > 0) {
							t.Errorf("it is %+v, %v", found, err)
						}
					})
				})
			}
		}
	}
}

// TestACrashOfADeletionKeepsNoScheduleAway has it end before each of its commits.
func TestACrashOfADeletionKeepsNoScheduleAway(t *testing.T) {
	for what, of := range allNamed {
		for skip := range 2 {
			t.Run(fmt.Sprintf("%s, behind %d commits", what, skip), func(t *testing.T) {
				ofNamed(t, of, false, func(t *testing.T, s *service.Service, st *meanwhile, n schedules.Definition) {
					st.shard, st.skip, st.fail = func(s store.Shard) bool { return s == of.lies }, skip, true
					if err := of.delete(t.Context(), s); err == nil {
						t.Fatal("it did not fail")
					}
					st.fail = false
					put(t, s, n)
					if err := of.delete(t.Context(), s); servicetest.ReasonOf(err) != of.inUse {
						t.Errorf("deleted with %v", err)
					}
				})
			})
		}
	}
}

// TestACrashOfAPutKeepsNothingFromBeingDeleted has it end before each of its commits.
func TestACrashOfAPutKeepsNothingFromBeingDeleted(t *testing.T) {
	for what, of := range allNamed {
		for skip := range 2 {
			t.Run(fmt.Sprintf("%s, behind %d commits", what, skip), func(t *testing.T) {
				ofNamed(t, of, false, func(t *testing.T, s *service.Service, st *meanwhile, n schedules.Definition) {
					st.shard, st.skip, st.fail = func(s store.Shard) bool { return s.Topic == "report" }, skip, true
					if _, err := s.Schedules.Put(t.Context(), n, nil); err == nil {
						t.Fatal("it did not fail")
					}
					st.fail = false
					if err := of.delete(t.Context(), s); err != nil {
						t.Errorf("deleted with %v", err)
					}
				})
			})
		}
	}
}

// ofNamed runs a test with something and a schedule that is to name it. With edit there is such a schedule, which
// names nothing.
func ofNamed(t *testing.T, of named, edit bool, test func(t *testing.T, s *service.Service, st *meanwhile, n schedules.Definition)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		st := &meanwhile{Store: memstore.New()}
		s := servicetest.Start(t, actors.Config{}, st)
		defer s.Node().Stop(context.WithoutCancel(t.Context()))
		of.create(t, s)
		n := scheduled("nightly", cron("30 2 * * *"))
		if edit {
			put(t, s, n)
		}
		of.name(&n)
		test(t, s, st, n)
	})
}

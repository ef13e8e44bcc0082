package actors_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/audience"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/audiences"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/timer/timetable"
)

// users is the audience of tests: so many recipients in four shards.
type users struct {
	*testing.T
	*audiences.Audiences
}

func newUsers(t *testing.T, n *actors.Node, recipients int) users {
	t.Helper()
	u := users{t, audiences.New(audienceStore{n.Cells(), n.Store()}, audiences.Limits{}, nil)}
	if _, err := u.Create(t.Context(), audiences.Spec{Name: "users", Shards: 4, Kinds: []audience.NamedKind{{Name: "digest"}}}, 1); err != nil {
		t.Fatal(err)
	}
	var batch []audiences.Recipient
	for i := range recipients {
		batch = append(batch, audiences.Recipient{ID: fmt.Sprint("user-", i), Data: []byte{byte(i)}})
	}
	if recipients > 0 {
		u.put(batch...)
	}
	return u
}

// audienceStore is the store of a node as audiences see it.
type audienceStore struct {
	cellsOfNode
	shardsOfNode
}

type (
	cellsOfNode  interface{ store.Cells }
	shardsOfNode interface {
		store.Retention
		store.Reader
	}
)

func (u users) put(recipients ...audiences.Recipient) {
	u.Helper()
	results, err := u.Put(u.Context(), "users", 0, recipients)
	if err != nil {
		u.Fatal(err)
	}
	for _, r := range results {
		if r.Err != nil {
			u.Fatal(r.Err)
		}
	}
}

// toUsers is a schedule each hour for all users, spread over ten minutes.
func toUsers() schedule.Spec {
	spec := everySpec(time.Hour)
	spec.Audience = &schedule.Target{Name: "users", Kind: "digest", Window: 10 * time.Minute, Grain: time.Second, Quiet: uint8(audience.Defer)}
	return spec
}

// ackAll acknowledges what a worker gets, and returns for whom and when it was.
func ackAll(w *servicetest.Stream, frame *uint64, got map[string]time.Time) {
	ds := w.Take()
	for i, d := range ds {
		got[d.Task.RunOf.Recipient] = w.At[len(w.At)-len(ds)+i]
		*frame++
		w.Sub.Settle(*frame, []subscription.Settlement{{Kind: subscription.SettleAck, ID: d.Task.ID, Token: d.Token}})
	}
}

// TestRunOfAnAudience has a worker do a run, at the places of the recipients.
func TestRunOfAnAudience(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		u := newUsers(t, s.Node(), 300)
		u.put(audiences.Recipient{ID: "user-1", Off: []string{"digest"}}, audiences.Recipient{ID: "user-2", Disabled: true})
		w := servicetest.Subscribe(t, s, "mail", 1000)
		start := time.Now()
		sched := putSchedule(t, s.Node(), "hourly", toUsers())
		servicetest.Idle(time.Hour - time.Millisecond)
		if status, err := u.Describe(t.Context(), "users"); err != nil || len(status.Runs) != 0 {
			t.Errorf("before its time: %+v, %v", status, err)
		}
		got, frame := make(map[string]time.Time), uint64(0)
		at := start.Add(time.Hour)
		spread := audience.Spread{Window: 10 * time.Minute, Grain: time.Second}
		for range 601 {
			servicetest.Idle(time.Second)
			ackAll(w, &frame, got)
			if status, _ := u.Describe(t.Context(), "users"); time.Since(at) > time.Second && time.Since(at) < 9*time.Minute && len(status.Runs) != 1 {
				t.Fatalf("on its way: %+v", status)
			}
			if read := sched.read(); time.Since(at) > time.Second && time.Since(at) < 9*time.Minute && len(read.Open) != 1 {
				t.Fatalf("on its way: %+v", read)
			}
			if time.Since(at) > 5*time.Minute && time.Since(at) < 5*time.Minute+time.Second {
				u.put(audiences.Recipient{ID: "joined"})
			}
		}
		servicetest.Idle(2 * time.Second)
		ackAll(w, &frame, got)
		servicetest.Idle(2 * time.Second)
		if len(got) != 298 {
			t.Errorf("%d recipients got a task, want 298", len(got))
		}
		for id, when := range got {
			_, p := audience.Locate(id, 4)
			if late := when.Sub(at.Add(spread.Place(p))); late < 0 || late > 5*time.Millisecond {
				t.Errorf("%s: %v behind its place", id, late)
			}
		}
		read := sched.read()
		if read.Totals[schedule.Done] != 1 || len(read.Open) != 0 {
			t.Errorf("after the run it is %+v", read)
		}
		stats, err := s.Node().CountsOf(t.Context(), []store.Shard{sched.shard()})
		if err != nil || stats[0].Parcels != 0 || stats[0].Cells != 1 {
			t.Errorf("the shard has %+v, %v", stats, err)
		}
		if status, _ := u.Describe(t.Context(), "users"); len(status.Runs) != 0 {
			t.Errorf("after the run: %+v", status)
		}
	})
}

// TestRunOfAnAudienceIsCancelled takes back what is made when its schedule goes.
func TestRunOfAnAudienceIsCancelled(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		u := newUsers(t, s.Node(), 300)
		spec := toUsers()
		spec.Timetable.Entries = []timetable.Entry{{Every: time.Minute}}
		sched := putSchedule(t, s.Node(), "minutely", spec)
		servicetest.Idle(time.Minute + 10*time.Second)
		shard := []store.Shard{sched.shard()}
		if stats, err := s.Node().CountsOf(t.Context(), shard); err != nil || stats[0].Pending == 0 || stats[0].Cells < 2 {
			t.Fatalf("on its way: %+v, %v", stats, err)
		}
		sched.does(schedule.Delete{CancelOpen: true})
		servicetest.Idle(5 * time.Second)
		if stats, err := s.Node().CountsOf(t.Context(), shard); err != nil || stats[0].Pending != 0 || stats[0].Cells != 0 || stats[0].Parcels != 0 {
			t.Errorf("after it was cancelled: %+v, %v", stats, err)
		}
		if status, _ := u.Describe(t.Context(), "users"); len(status.Runs) != 0 {
			t.Errorf("after it was cancelled: %+v", status)
		}
	})
}

// TestRunOfNoAudience fails.
func TestRunOfNoAudience(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		sched := putSchedule(t, s.Node(), "hourly", toUsers())
		servicetest.Idle(time.Hour + time.Second)
		if read := sched.read(); read.Totals[schedule.Failed] != 1 || len(read.Open) != 0 {
			t.Errorf("it is %+v", read)
		}
	})
}

// TestRunOfAnAudienceWhileOwnersChange has the shard change hands every few seconds, and
// recipients move between time zones meanwhile: each gets one task.
func TestRunOfAnAudienceWhileOwnersChange(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		a := f.Nodes["a"].Sys
		if _, err := a.Node().Topics().Create(t.Context(), longVisible(a)); err != nil {
			t.Fatal(err)
		}
		u := newUsers(t, a.Node(), 400)
		spec := toUsers()
		spec.Timetable.Entries = []timetable.Entry{{Every: 10 * time.Minute}}
		spec.Audience.Window = 5 * time.Minute
		sched := putSchedule(t, a.Node(), "often", spec)
		w := servicetest.Subscribe(t, a, "mail", 10_000)
		times, frame := make(map[string]int), uint64(0)
		zones := []string{"UTC", "Asia/Tokyo", "Europe/Berlin"}
		for second := range 19 * 60 { // the next run is not part of it
			if second%7 == 0 {
				f.Nodes["a"].SetDraining(second%2 == 0)
				f.Nodes["b"].SetDraining(second%2 == 1)
			}
			u.put(audiences.Recipient{ID: fmt.Sprint("user-", second%400), Zone: zones[second%3], Data: []byte{byte(second)}})
			servicetest.Idle(time.Second)
			for _, d := range w.Take() {
				times[d.Task.RunOf.Recipient]++
				frame++
				w.Sub.Settle(frame, []subscription.Settlement{{Kind: subscription.SettleAck, ID: d.Task.ID, Token: d.Token}})
			}
		}
		for i := range 400 {
			if id := fmt.Sprint("user-", i); times[id] != 1 {
				t.Errorf("%s got %d tasks", id, times[id])
			}
		}
		if read := sched.read(); read.Totals[schedule.Done] != 1 {
			t.Errorf("it is %+v", read)
		}
	})
}

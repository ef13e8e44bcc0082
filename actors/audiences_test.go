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
	u := users{t, audiences.New(audienceStore{n.Cells(), n.Store()}, audiences.Limits{}, audiences.Outside{})}
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
		runs, err := u.Runs(t.Context(), "users", 0)
		if err != nil || len(runs) != 1 {
			t.Fatalf("runs are %+v, %v", runs, err)
		}
		r := runs[0]
		if r.Topic != "mail" || r.Schedule != "hourly" || r.Planned != 300 || r.Made() != 298 || r.Ends != [3]int64{298} || r.Ended == 0 {
			t.Errorf("it is remembered as %+v", r)
		}
		if r.Verdicts[audience.OptedOut] != 1 || r.Verdicts[audience.Disabled] != 1 {
			t.Errorf("those without a task are %v", r.Verdicts)
		}
	})
}

// TestRunIsCancelledByHand ends a run half way, and takes back what is pending after that.
func TestRunIsCancelledByHand(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		u := newUsers(t, s.Node(), 300)
		u.Audiences = s.Audiences
		sched := putSchedule(t, s.Node(), "hourly", toUsers())
		servicetest.Idle(time.Hour + 5*time.Minute)
		runs, err := u.Runs(t.Context(), "users", 0)
		if err != nil || len(runs) != 1 || runs[0].Phase != audience.Walking || runs[0].Behind != 0 {
			t.Fatalf("runs are %+v, %v", runs, err)
		}
		id, shard := runs[0].Walk.Run, []store.Shard{sched.shard()}
		cancel := func(undo bool) {
			t.Helper()
			if r, err := u.CancelRun(t.Context(), "users", id, undo, s.Node().Clock().Millis()); err != nil || !r.Cancelled {
				t.Fatalf("cancelled: %+v, %v", r, err)
			}
		}
		cancel(false)
		before, _ := s.Node().CountsOf(t.Context(), shard)
		servicetest.Idle(5 * time.Minute)
		if after, _ := s.Node().CountsOf(t.Context(), shard); before[0].Pending == 0 || after[0].Pending != before[0].Pending {
			t.Errorf("after it was cancelled there are %d tasks, before %d", after[0].Pending, before[0].Pending)
		}
		if read := sched.read(); len(read.Open) != 1 {
			t.Errorf("its tasks are open, and it is %+v", read)
		}
		cancel(true)
		servicetest.Idle(5 * time.Second)
		if after, _ := s.Node().CountsOf(t.Context(), shard); after[0].Pending != 0 {
			t.Errorf("with delete there are %d tasks", after[0].Pending)
		}
		if read := sched.read(); len(read.Open) != 0 || read.Totals[schedule.Removed] != 1 {
			t.Errorf("after that it is %+v", read)
		}
		if r, err := u.Audiences.Run(t.Context(), "users", id, 0); err != nil || r.Ended == 0 || r.Ends[2] != r.Made() {
			t.Errorf("it is remembered as %+v, %v", r, err)
		}
		cancel(true)
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

// TestRunAtTheTimeOfEachRecipient has half past two come to each on its own, and is
// spread over a quarter of an hour.
func TestRunAtTheTimeOfEachRecipient(t *testing.T) {
	skipLong(t)
	servicetest.Bubble(t, actors.Config{LeaseTTL: time.Minute}, func(t *testing.T, s *service.Service) {
		u := newUsers(t, s.Node(), 0)
		zones := map[string]string{
			"first": "Pacific/Kiritimati", "tokyo": "Asia/Tokyo", "kolkata": "Asia/Kolkata", "berlin": "Europe/Berlin", "none": "",
			"york": "America/New_York", "honolulu": "Pacific/Honolulu", "last": "Etc/GMT+12",
		}
		for id, zone := range zones {
			u.put(audiences.Recipient{ID: id, Zone: zone})
		}
		w := servicetest.Subscribe(t, s, "mail", 1000)
		spec := toUsers()
		spec.Overlap = schedule.Allow
		spec.Timetable = timetable.Spec{Zone: timetable.Recipient, Entries: []timetable.Entry{{Cron: "30 14 1 1 *"}}}
		spec.Audience.Window, spec.Audience.Kind = 15*time.Minute, ""
		sched := putSchedule(t, s.Node(), "yearly", spec)
		table, _ := timetable.New(spec.Timetable, "yearly", time.Now())
		first, _ := table.Next(time.Now())
		servicetest.Idle(time.Until(first) - time.Minute)
		got, frame := make(map[string]time.Time), uint64(0)
		occurs := make(map[string]time.Time)
		for range 28 * 60 * 3 {
			servicetest.Idle(20 * time.Second)
			ds := w.Take()
			for i, d := range ds {
				got[d.Task.RunOf.Recipient] = w.At[len(w.At)-len(ds)+i]
				occurs[d.Task.RunOf.Recipient] = d.Task.RunOf.Occurrence.Time()
				frame++
				w.Sub.Settle(frame, []subscription.Settlement{{Kind: subscription.SettleAck, ID: d.Task.ID, Token: d.Token}})
			}
		}
		wall := time.Date(first.In(timetable.FirstZone).Year(), 1, 1, 14, 30, 0, 0, time.UTC)
		for id, name := range zones {
			if name == "" {
				name = "UTC"
			}
			zone, _ := time.LoadLocation(name)
			at, _ := timetable.Instant(wall, zone)
			_, p := audience.Locate(id, 4)
			place := at.Add(audience.Spread{Window: 15 * time.Minute, Grain: time.Second}.Place(p))
			if late := got[id].Sub(place); late < 0 || late > time.Second {
				t.Errorf("%s in %s: %v behind %v, at %v", id, name, late, place, got[id])
			}
			if !occurs[id].Equal(at) {
				t.Errorf("%s: its occurrence is %v, want %v", id, occurs[id], at)
			}
		}
		if read := sched.read(); read.Totals[schedule.Done] != 1 || len(read.Open) != 0 {
			t.Errorf("after the run it is %+v", read)
		}
	})
}

// ranFor has a worker do what comes for so long, and returns what each recipient got.
func ranFor(w *servicetest.Stream, frame *uint64, long time.Duration) map[string][]*store.Task {
	got := make(map[string][]*store.Task)
	for range long / (10 * time.Second) {
		servicetest.Idle(10 * time.Second)
		for _, d := range w.Take() {
			got[d.Task.RunOf.Recipient] = append(got[d.Task.RunOf.Recipient], d.Task)
			*frame++
			w.Sub.Settle(*frame, []subscription.Settlement{{Kind: subscription.SettleAck, ID: d.Task.ID, Token: d.Token}})
		}
	}
	return got
}

// placed returns a recipient whose place in a run of toUsers is within two bounds.
func placed(prefix string, from, to time.Duration) string {
	for i := 0; ; i++ {
		id := fmt.Sprint(prefix, "-", i)
		_, p := audience.Locate(id, 4)
		if at := (audience.Spread{Window: 10 * time.Minute, Grain: time.Second}).Place(p); from <= at && at < to {
			return id
		}
	}
}

// TestChangesWhileARunGoesOn changes recipients five minutes into a run of ten, most of them
// with places that are yet to come, and has another run after it.
func TestChangesWhileARunGoesOn(t *testing.T) {
	const changed = 5 * time.Minute
	late := func(prefix string) string { return placed(prefix, 6*time.Minute, 9*time.Minute) }
	soon := func(prefix string) string { return placed(prefix, changed+10*time.Second, changed+20*time.Second) }
	early := func(prefix string) string { return placed(prefix, time.Minute, 4*time.Minute) }
	zone := func(z string) func(*audiences.Recipient) { return func(r *audiences.Recipient) { r.Zone = z } }
	off := func(r *audiences.Recipient) { r.Off = []string{"digest"} }
	quiet := func(r *audiences.Recipient) { r.Quiet = audiences.QuietHours{From: "00:00", To: "01:08"} }
	changes := []struct {
		name           string
		id             string
		change         func(*audiences.Recipient) // nil: removed
		again          bool                       // put again after that
		joins          bool                       // was none before
		here, nextTime int
	}{
		{"nothing", late("same"), func(*audiences.Recipient) {}, false, false, 1, 1},
		{"opts out", late("off"), off, false, false, 0, 0},
		{"opts out when its task is made", soon("soon"), off, false, false, 1, 0},
		{"opts out behind its place", early("early"), off, false, false, 1, 0},
		{"is disabled", late("disabled"), func(r *audiences.Recipient) { r.Disabled = true }, false, false, 0, 0},
		{"is removed", late("gone"), nil, false, false, 0, 0},
		{"leaves and joins again", late("again"), nil, true, false, 0, 1},
		{"joins", late("new"), func(*audiences.Recipient) {}, false, true, 0, 1},
		{"moves", late("moved"), zone("Asia/Tokyo"), false, false, 1, 1},
		{"moves behind its place", early("moved"), zone("Asia/Tokyo"), false, false, 1, 1},
		{"wants quiet", late("quiet"), quiet, false, false, 1, 1},
	}
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		u := newUsers(t, s.Node(), 50)
		for _, c := range changes {
			if !c.joins {
				u.put(audiences.Recipient{ID: c.id, Data: []byte("before")})
			}
		}
		w, frame := servicetest.Subscribe(t, s, "mail", 1000), uint64(0)
		putSchedule(t, s.Node(), "hourly", toUsers())
		got := ranFor(w, &frame, time.Hour+changed)
		for _, c := range changes {
			if c.change == nil {
				u.remove(c.id)
			}
			if c.change != nil || c.again {
				r := audiences.Recipient{ID: c.id, Data: []byte("after")}
				if c.change != nil {
					c.change(&r)
				}
				u.put(r)
			}
		}
		rest := ranFor(w, &frame, 10*time.Minute)
		next := ranFor(w, &frame, time.Hour)
		for _, c := range changes {
			if n := len(got[c.id]) + len(rest[c.id]); n != c.here {
				t.Errorf("%s: it got %d tasks of the run, want %d", c.name, n, c.here)
			}
			for _, task := range rest[c.id] {
				if made := task.Created.Time().Sub(task.RunOf.Occurrence.Time()); made > changed && string(task.RunOf.RecipientData) != "after" {
					t.Errorf("%s: its data is %q", c.name, task.RunOf.RecipientData)
				}
				if c.name == "wants quiet" && task.Due.Time().Format("15:04:05") != "01:08:00" {
					t.Errorf("it is due at %v, in its quiet hours", task.Due.Time())
				}
			}
			if len(next[c.id]) != c.nextTime {
				t.Errorf("%s: it got %d tasks of the next run, want %d", c.name, len(next[c.id]), c.nextTime)
			}
		}
		if status, _ := u.Describe(t.Context(), "users"); len(status.Runs) != 0 {
			t.Errorf("runs are open: %v", status.Runs)
		}
	})
}

func (u users) remove(id string) {
	u.Helper()
	if _, err := u.Remove(u.Context(), "users", []string{id}); err != nil {
		u.Fatal(err)
	}
}

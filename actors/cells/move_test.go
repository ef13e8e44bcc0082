package cells

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
	"github.com/ddq-io/ddq/timer/timetable"
)

// reshard gives the topic one other shard, behind the one that is looked at.
func (r *lookRig) reshard() store.Shard {
	r.topic = &store.Topic{
		Name: "mail", MaxPayload: 1 << 20, First: 1, Shards: 1, Former: [store.MaxFormer]store.Span{{Shards: 1}},
	}
	return store.Shard{Topic: "mail", N: 1}
}

// ownerOf is a rig for another shard of the topic, as the topic is now.
func (r *lookRig) ownerOf(s store.Shard) *lookRig {
	r.Helper()
	session := store.Session{Node: "other", Start: store.NewToken(), TTL: 24 * time.Hour, Begin: true}
	_, err := r.db.RenewSession(r.Context(), session)
	if err != nil {
		r.Fatal(err)
	}
	other := *r
	if _, other.fence, err = r.db.Claim(r.Context(), s, session); err != nil {
		r.Fatal(err)
	}
	shard := r.Shard
	shard.ID = s
	other.Looker, other.progress = NewLooker(shard), Progress{}
	return &other
}

// arrived are the cells for which parcels lie in the in-box of another shard, each as often as they do.
func (r *lookRig) arrived(s store.Shard) (to []store.CellID) {
	r.Helper()
	for after := int64(0); ; {
		parcels, err := r.db.Parcels(r.Context(), s, store.InBox, after, 1000)
		if err != nil {
			r.Fatal(err)
		}
		if len(parcels) == 0 {
			return to
		}
		for i := range parcels {
			to, after = append(to, parcels[i].To), parcels[i].Number
		}
	}
}

// daily puts schedules that wake in a day.
func (r *lookRig) daily(n int) {
	for i := range n {
		r.putWith(fmt.Sprint("daily-", i), func(s *schedule.Spec) {
			s.Timetable = timetable.Spec{Entries: []timetable.Entry{{Every: 24 * time.Hour}}}
		})
	}
}

// TestAScheduleThatWakesSoonMovesFirst: behind thousands that wake in a day it would stand still for
// as long as they move.
func TestAScheduleThatWakesSoonMovesFirst(t *testing.T) {
	inBubble(t, func(r *lookRig) {
		r.daily(2 * moveBatch)
		r.put("soon")
		to := r.reshard()
		r.mustLook()
		if got := r.arrived(to); !slices.Contains(got, schedule.CellID("soon")) {
			t.Errorf("after one look %d schedules have arrived, and the one that wakes soon is none of them", len(got))
		}
	})
}

// TestAScheduleMovesFirstThoughOthersWakeBefore: workflows stay, and more of them than are read at once wake before it.
func TestAScheduleMovesFirstThoughOthersWakeBefore(t *testing.T) {
	inBubble(t, func(r *lookRig) {
		r.daily(4 * moveBatch)
		r.workflows(3*moveBatch, r.Now().Add(30*time.Minute))
		r.putWith("soon", func(s *schedule.Spec) {
			s.Timetable = timetable.Spec{Entries: []timetable.Entry{{Every: time.Hour}}}
		})
		to := r.reshard()
		r.mustLook()
		if got := r.arrived(to); !slices.Contains(got, schedule.CellID("soon")) {
			t.Errorf("after one look %d schedules have arrived, and the one that wakes soon is none of them", len(got))
		}
	})
}

// TestWhatCannotMoveHidesNothing: those that cannot be read stay, and fill more than a page.
func TestWhatCannotMoveHidesNothing(t *testing.T) {
	inBubble(t, func(r *lookRig) {
		r.put("moves")
		moves := r.schedule("moves")
		var c store.Commit
		for i := range 2 * moveBatch {
			c.Puts = append(c.Puts, store.Put{Cell: store.Cell{ID: schedule.CellID(fmt.Sprint("corrupt-", i)), List: schedule.CorruptList, Body: []byte{1}}})
		}
		body, err := schedule.Encode(moves)
		if err != nil {
			t.Fatal(err)
		}
		c.Puts = append(c.Puts, store.Put{Cell: store.Cell{ID: schedule.CellID("moves"), Body: body}, If: store.AnyVersion}) // it wakes no more
		r.commit(c)
		to := r.reshard()
		for range 2 {
			r.mustLook()
		}
		if got := r.arrived(to); !slices.Contains(got, schedule.CellID("moves")) {
			t.Errorf("after two looks %v have arrived", got)
		}
	})
}

// TestAShardThatIsDownHoldsUpNoOther: what goes to one that takes nothing waits for it, in order, and the rest arrives.
func TestAShardThatIsDownHoldsUpNoOther(t *testing.T) {
	for down := 1; down <= 2; down++ {
		inBubble(t, func(r *lookRig) {
			r.Knobs.HandBatch = 7
			r.daily(24)
			r.reshard()
			r.topic.Shards = 2
			shard := func(n int) store.Shard { return store.Shard{Topic: "mail", N: n} }
			want := make(map[store.CellID]int)
			for i := range 24 {
				name := fmt.Sprint("daily-", i)
				want[schedule.CellID(name)] = schedule.Shards(r.topic, name)[0].N
			}
			r.failing.down = shard(down)
			for range 3 {
				if out := r.look(); !errors.Is(out.Err, errBroken) {
					t.Errorf("a look while shard %d is down: %v", down, out.Err)
				}
			}
			for id, n := range want {
				if got, is := count(r.arrived(shard(n)), id), n != down; is != (got == 1) {
					t.Errorf("shard %d is down: %s is %d times in shard %d", down, id, got, n)
				}
			}
			r.failing.down = store.Shard{}
			r.mustLook()
			for id, n := range want {
				if got := count(r.arrived(shard(n)), id); got != 1 {
					t.Errorf("shard %d was down: %s is %d times in shard %d", down, id, got, n)
				}
			}
		})
	}
}

// TestAShardThatFailsOnceLosesNothing: what comes behind that goes with it, as the tally would count both.
func TestAShardThatFailsOnceLosesNothing(t *testing.T) {
	inBubble(t, func(r *lookRig) {
		r.Knobs.HandBatch = 3
		r.daily(9)
		to := r.reshard()
		calls := 0
		r.failing.elsewhere = func() {
			if calls++; calls == 1 {
				r.failing.down = to
			} else {
				r.failing.down = store.Shard{}
			}
		}
		if out := r.look(); !errors.Is(out.Err, errBroken) {
			t.Errorf("it has come to %v", out.Err)
		}
		r.failing.down = store.Shard{}
		r.mustLook()
		for i := range 9 {
			if got := count(r.arrived(to), schedule.CellID(fmt.Sprint("daily-", i))); got != 1 {
				t.Errorf("daily-%d has arrived %d times", i, got)
			}
		}
	})
}

// TestAShardThatIsSetBackTakesNothingTwice: an owner is about to deliver by a tally that it read before that, and the
// next one was quicker.
func TestAShardThatIsSetBackTakesNothingTwice(t *testing.T) {
	inBubble(t, func(r *lookRig) {
		r.put("first")
		to := r.reshard()
		r.mustLook() // now there is a tally
		r.put("second")
		r.put("third")
		next, all := *r, *r.failing
		next.Looker, next.progress = NewLooker(r.Shard), Progress{}
		next.Store, next.failing = &all, &all
		r.Knobs.HandBatch = 1
		var was *memstore.Store
		r.failing.elsewhere = func() {
			if was == nil { // the second one is about to arrive
				was = r.db.Clone()
				return
			}
			r.failing.elsewhere = nil
			r.db.Restore(was)
			next.mustLook()
		}
		if out := r.look(); !errors.Is(out.Err, store.ErrAnotherServer) {
			t.Errorf("it has come to %v", out.Err)
		}
		r.mustLook()
		for _, name := range []string{"second", "third"} {
			if got := count(r.arrived(to), schedule.CellID(name)); got != 1 {
				t.Errorf("%s has arrived %d times", name, got)
			}
		}
	})
}

// workflows puts headers that wake at a moment.
func (r *lookRig) workflows(n int, wake store.Millis) {
	r.Helper()
	var c store.Commit
	for i := range n {
		c.Puts = append(c.Puts, store.Put{Cell: store.Cell{ID: store.CellID(fmt.Sprintf("%cflow-%d", store.CellWorkflow, i)), Wake: wake, Body: []byte("x")}})
	}
	r.commit(c)
}

// TestAnEndOvertakesThoseThatMove: a run that began before a reshard has ended for its schedule as soon
// as the former shard is looked at.
func TestAnEndOvertakesThoseThatMove(t *testing.T) {
	inBubble(t, func(r *lookRig) {
		r.daily(3 * moveBatch)
		r.put("soon")
		time.Sleep(time.Minute)
		made := runs(r.mustLook())
		to := r.reshard()
		for range 2 {
			r.mustLook()
		}
		before := count(r.arrived(to), schedule.CellID("soon"))
		r.ack(made[0])
		r.mustLook()
		if got := count(r.arrived(to), schedule.CellID("soon")); before == 0 || got != before+1 {
			t.Errorf("%d parcels have arrived for the schedule, and %d with the end of its run", before, got)
		}
	})
}

// TestAnOwnerThatHasNotHeardOfAReshardLosesNoEnd: another one moved the schedules off before, so that an end
// finds its cell gone.
func TestAnOwnerThatHasNotHeardOfAReshardLosesNoEnd(t *testing.T) {
	inBubble(t, func(r *lookRig) {
		r.put("soon")
		time.Sleep(time.Minute)
		made, heard := runs(r.mustLook()), r.topic
		to := r.reshard()
		for range 2 {
			r.mustLook()
		}
		before := count(r.arrived(to), schedule.CellID("soon"))
		r.stored, r.topic = r.topic, heard
		r.ack(made[0])
		for range 2 { // the second one forgets what was taken
			r.mustLook()
		}
		r.topic = r.stored
		r.mustLook()
		if got := count(r.arrived(to), schedule.CellID("soon")); before == 0 || got != before+1 {
			t.Errorf("%d parcels have arrived for the schedule, and %d with the end of its run", before, got)
		}
	})
}

// TestAnEndDoesNotOvertakeItsScheduleOverTwoReshards: the schedule is on its way to a shard that is a former one
// by now. Where it goes from there the end would find nobody yet.
func TestAnEndDoesNotOvertakeItsScheduleOverTwoReshards(t *testing.T) {
	inBubble(t, func(r *lookRig) {
		r.put("soon")
		time.Sleep(time.Minute)
		made := runs(r.mustLook())
		first := r.reshard()
		r.mustLook()
		second := store.Shard{Topic: "mail", N: 2}
		r.topic = &store.Topic{
			Name: "mail", MaxPayload: 1 << 20, First: 2, Shards: 1, Former: [store.MaxFormer]store.Span{{Shards: 1}, {First: 1, Shards: 1}},
		}
		r.ack(made[0])
		for range 2 {
			r.mustLook()
		}
		if soon := schedule.CellID("soon"); count(r.arrived(first), soon) != 2 || count(r.arrived(second), soon) != 0 {
			t.Fatalf("%v have arrived in the shard that the schedule goes to, and %v in the next", r.arrived(first), r.arrived(second))
		}
		there := r.ownerOf(first)
		for range 2 {
			there.mustLook()
		}
		last := there.ownerOf(second)
		last.mustLook()
		if s := last.schedule("soon"); s.Totals[schedule.Done] != 1 || len(s.Open) != 0 {
			t.Errorf("it has totals %v and the open runs %+v", s.Totals, s.Open)
		}
	})
}

// TestAnEndThatIsOnItsWayCounts: the next occurrence comes when a run has ended, and its former shard has
// not sent that on.
func TestAnEndThatIsOnItsWayCounts(t *testing.T) {
	inBubble(t, func(r *lookRig) {
		r.put("minutely")
		time.Sleep(time.Minute)
		made := runs(r.mustLook())
		there := r.ownerOf(r.reshard())
		r.mustLook()
		there.mustLook()
		time.Sleep(time.Minute)
		if out := there.mustLook(); len(runs(out)) != 0 || there.schedule("minutely").Skipped[schedule.Overlapped] != 1 {
			t.Fatalf("while the run is open the next occurrence makes %v, skipped are %v", runs(out), there.schedule("minutely").Skipped)
		}
		r.ack(made[0])
		time.Sleep(time.Minute)
		if out := there.mustLook(); len(runs(out)) != 1 {
			t.Errorf("after its end the next occurrence makes %v, skipped are %v", runs(out), there.schedule("minutely").Skipped)
		}
		for range 3 {
			r.mustLook()
			there.mustLook()
		}
		if s := there.schedule("minutely"); s.Totals[schedule.Done] != 1 || len(s.Open) != 1 {
			t.Errorf("told once more, it has totals %v and the open runs %+v", s.Totals, s.Open)
		}
	})
}

// TestARunOfBeforeAReshardIsOpenUntilItEnds: tasks of runs that have been open for an hour are looked at,
// where they are.
func TestARunOfBeforeAReshardIsOpenUntilItEnds(t *testing.T) {
	inBubble(t, func(r *lookRig) {
		r.put("minutely")
		time.Sleep(time.Minute)
		r.mustLook()
		there := r.ownerOf(r.reshard())
		r.mustLook()
		there.mustLook()
		time.Sleep(2 * time.Hour)
		there.mustLook()
		if s := there.schedule("minutely"); len(s.Open) != 1 || s.Totals[schedule.Removed] != 0 {
			t.Errorf("its run waits in the former shard, and it has totals %v and the open runs %+v", s.Totals, s.Open)
		}
	})
}

// TestARunThatDiedInALaterShardHasFailed: its dead letter was requeued behind a reshard, and its end was not
// told, when the schedule has not moved yet.
func TestARunThatDiedInALaterShardHasFailed(t *testing.T) {
	inBubble(t, func(r *lookRig) {
		r.put("minutely")
		time.Sleep(time.Minute)
		made := runs(r.mustLook())
		r.fail(made[0])
		r.commit(store.Commit{Take: 1})
		_, found, err := r.db.Get(t.Context(), r.ID, made)
		if err != nil || found[0].State != store.StateDead {
			t.Fatalf("its run is %+v, %v", found, err)
		}
		there := r.ownerOf(r.reshard())
		task := found[0].Task
		task.Tells = ""
		if _, added, err := r.db.Add(t.Context(), there.ID, []*store.Task{&task}); err != nil || added[0].Status != store.Added {
			t.Fatalf("%+v, %v", added, err)
		}
		if _, removed, err := r.db.RemoveDead(t.Context(), r.ID, made); err != nil || removed[0] != store.OK {
			t.Fatalf("%v, %v", removed, err)
		}
		there.fail(made[0])
		time.Sleep(2 * time.Hour)
		for range 3 {
			r.mustLook()
			there.mustLook()
		}
		if s := there.schedule("minutely"); s.Totals[schedule.Failed] != 1 || s.Totals[schedule.Removed] != 0 {
			t.Errorf("totals %v", s.Totals)
		}
	})
}

// fail has a worker fail a run for good.
func (r *lookRig) fail(id string) {
	r.Helper()
	_, nacked, err := r.db.Nack(r.Context(), r.ID, []store.Nack{{ID: id, Token: r.hold(id), Reason: store.ReasonPermanent}})
	if err != nil || nacked[0].Status != store.OK {
		r.Fatalf("nack: %v, %v", nacked, err)
	}
}

func count(all []store.CellID, id store.CellID) (n int) {
	for _, to := range all {
		if to == id {
			n++
		}
	}
	return n
}

// TestAScheduleTakesItsEndsBeforeItMoves has more to do with ends than one look commits, and behind them
// one that is forwarded. None of them is lost.
func TestAScheduleTakesItsEndsBeforeItMoves(t *testing.T) {
	inBubble(t, func(r *lookRig) {
		const large = 10
		r.put("moved")
		for i := range large {
			r.putWith(fmt.Sprint("large-", i), func(s *schedule.Spec) { s.Template.Task.Payload = make([]byte, 300<<10) })
		}
		time.Sleep(time.Minute)
		ends := make(map[string]string)
		for range large {
			r.mustLook()
		}
		for i := range large {
			s := r.schedule(fmt.Sprint("large-", i))
			ends[s.Name] = s.ID(s.Open[0].Occurrence)
		}
		moved := r.schedule("moved")
		r.commit(store.Commit{Puts: []store.Put{{Cell: store.Cell{ID: schedule.CellID("moved")}, If: store.AnyVersion}}}) // it was the first to go
		for _, id := range ends {
			r.ack(id)
		}
		r.ack(moved.ID(moved.Open[0].Occurrence))
		time.Sleep(time.Minute) // with an end the next run is made
		to := r.reshard()
		for range 10 {
			r.mustLook()
		}
		if n := count(r.arrived(to), schedule.CellID("moved")); n != 1 {
			t.Errorf("%d ends were forwarded for a schedule that has moved", n)
		}
		there := r.ownerOf(to)
		for range 10 {
			there.mustLook()
		}
		for name := range ends {
			if s := there.schedule(name); s.Totals[schedule.Done] != 1 {
				t.Errorf("%s has moved with totals %v, and the runs %+v", name, s.Totals, s.Open)
			}
		}
	})
}

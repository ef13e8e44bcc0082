package actors_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/api/service"
	history "github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
)

// In some runs tasks expire, and users requeue dead letters. What has expired is a dead letter soon, whether a worker
// comes for it or not. The run of a schedule that is requeued is open again: no other is made beside it.

// simDead is what is known of tasks that die.
type simDead struct {
	expires  map[string]store.Millis // tasks that nobody moves
	requeued map[string]simRequeued  // runs of schedules
}

// simRequeued is a run that is pending again, and the number of what tells its schedule so.
type simRequeued struct {
	schedule store.CellID
	number   int64
}

// drawExpiring draws whether tasks expire, and drawRequeues how often users requeue, from sources of their own like
// drawIdle.
func (s *sim) drawExpiring(p *simPlan) bool {
	return p.rewind == 0 && p.drops == 0 && rand.New(rand.NewPCG(s.seed, 57)).IntN(10) < 3
}

func (s *sim) drawRequeues(p *simPlan) time.Duration {
	rng := rand.New(rand.NewPCG(s.seed, 58))
	if p.rewind > 0 || p.drops > 0 || p.reshards > 0 || rng.IntN(10) < 6 && !p.edited {
		return 0
	}
	return simBetween(rng, time.Second, 20*time.Second)
}

// requeues has users requeue dead letters now and then, while the producers are at it.
func (s *sim) requeues() {
	if s.plan.requeues == 0 {
		return
	}
	var next func()
	next = func() {
		if time.Since(s.start) < s.plan.active {
			s.requeue()
			s.after(s.between(0, 2*s.plan.requeues), next)
		}
	}
	s.after(s.plan.requeues, next)
}

// requeue has a user ask a node for some dead letter: not for the step of a workflow, nor for what a recipient got,
// nor for one whose order nobody could tell then.
func (s *sim) requeue() {
	n := s.anyNode()
	var ids []string
	for _, sh := range s.shardsOf(simTopic) {
		found, _, err := s.on(sh).List(simContext, sh, store.KindDead, "", 1000)
		if err != nil {
			panic(err) // memstore fails only when it is closed
		}
		for i := range found {
			t := &found[i]
			if t.StepOf == nil && (t.RunOf == nil || t.RunOf.Recipient == "") && t.Traits.Ordering() == "" && t.Reason != store.ReasonRateLimited && t.Expires == 0 {
				ids = append(ids, t.ID)
			}
		}
	}
	if n == nil || len(ids) == 0 {
		return
	}
	id := ids[s.rng.IntN(len(ids))]
	s.spawn(n, func() error {
		ctx, cancel := n.timeout()
		defer cancel()
		_, err := n.use.DeadLetters.Requeue(ctx, simTopic, []string{id}, service.DeadFilter{}, service.Pace{})
		return err
	}, func(err error) { s.log("%s is requeued: %v", id, err) })
}

// Requeue writes down a second life of what it makes pending.
func (st *simStore) Requeue(ctx context.Context, sh store.Shard, ids []string) (store.Stamp, []store.RemoveResult, error) {
	return askAll(ctx, st, "requeue", sh, true, func(m *memstore.Store) (store.Stamp, []store.RemoveResult, error) {
		_, was, _ := m.Get(simContext, sh, ids)
		stamp, r, err := m.Requeue(simContext, sh, ids)
		for i := range r {
			if r[i].Status != store.OK {
				continue
			}
			t := &was[i]
			if t.RunOf != nil {
				st.s.requeuedRun(m, sh, t)
			}
			st.s.client("requeues").ask(history.Event{Op: history.Enqueue, Task: t.ID, Due: int64(r[i].Due), Sum: string(t.Payload), Attempts: t.MaxRetries + 1})(
				history.Event{Due: int64(r[i].Due), Replaced: "dead"}, nil)
		}
		return stamp, r, err
	})
}

// requeuedRun writes down that the run of a schedule is pending again, and what tells the schedule of that.
func (s *sim) requeuedRun(m *memstore.Store, sh store.Shard, t *store.Snapshot) {
	told, err := m.Parcels(simContext, sh, store.InBox, 0, 10_000)
	if err != nil {
		panic(err) // memstore fails only when it is closed
	}
	for i := range told {
		if e, ok := schedule.Told(&told[i]).(schedule.Requeued); ok && e.ID == t.ID {
			s.dead.requeued[t.ID] = simRequeued{schedule.CellID(t.RunOf.Schedule), told[i].Number}
			s.sometimes("the run of a schedule is requeued")
		}
	}
}

// knowsRequeued judges that a schedule which has taken that a run is pending again takes it for open.
func (s *sim) knowsRequeued(next *schedule.Schedule, id store.CellID) (fault string) {
	for _, run := range slices.Sorted(maps.Keys(s.dead.requeued)) {
		r := s.dead.requeued[run]
		open := slices.ContainsFunc(next.Open, func(o schedule.Run) bool { return next.ID(o.Occurrence) == run })
		if r.schedule != id || r.number > next.Taken || open || next.Untracked {
			continue
		}
		if state, live := s.isLive(run); live {
			fault = fmt.Sprintf("forgotten: %s does not know its run %s, which was requeued and is %s", next.Name, run, state)
		}
	}
	return fault
}

// expired writes down that a task is a dead letter as it has expired.
func (s *sim) expired(id string) {
	s.client("expiry").ask(history.Event{Op: history.Delete, Task: id})(history.Event{}, nil)
	s.sometimes("a task expires")
	s.binds("expiry")
}

// lookExpired looks for tasks that have expired, and are no dead letters. The watchdog finds them where no worker
// comes: it looks at 250 at a time.
func (s *sim) lookExpired(sh store.Shard, due []store.Entry, was map[string]time.Time) {
	for _, e := range due {
		if at := s.dead.expires[e.ID]; at != 0 && at < s.now(sh) {
			s.uncaused(was, time.Duration(2+len(due)/250)*s.plan.watchdog+15*time.Second+s.unheard(), "%s has expired, and is ready in %v", e.ID, sh)
		}
	}
}

// leavesDead looks for dead letters of runs that others replaced: there is nothing to be seen of them.
func (s *sim) leavesDead(sh store.Shard, t *store.Snapshot) {
	if t.State != store.StateDead || t.Reason != store.ReasonCancelled || t.RunOf == nil || t.RunOf.Recipient != "" {
		return
	}
	if s.plan.reshards > 0 && !s.stays(sh) {
		s.excused("a run of before a reshard was asked to end by a step that was made anew")
	} else {
		s.brokenBy("replaced runs", "left behind: a dead letter of %s, which was cancelled as another run of its schedule came", t.ID)
	}
}

// expiring is when a task expires that is due at some time, as a producer asks for.
func (s *sim) expiring(id string, due store.Millis, after time.Duration) {
	if after > 0 && s.dead.expires[id] == 0 {
		s.dead.expires[id] = due.Add(after)
	}
}

func (s *sim) drawExpiry() time.Duration {
	if !s.plan.expiring || !s.chance(0.3) {
		return 0
	}
	return s.between(10*time.Millisecond, 30*time.Second).Truncate(time.Millisecond)
}

func newSimDead() simDead {
	return simDead{expires: make(map[string]store.Millis), requeued: make(map[string]simRequeued)}
}

package cells

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ddq-io/ddq/actors/audience"
	"github.com/ddq-io/ddq/actors/audience/access"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/timer/timetable"
)

// slowCells counts the calls of looks, each of which takes a while as on a busy store.
type slowCells struct {
	cellStoreOf
	each  time.Duration
	calls atomic.Int64
}

func (s *slowCells) call() {
	s.calls.Add(1)
	time.Sleep(s.each)
}

func (s *slowCells) Commit(ctx context.Context, shard store.Shard, f *store.Fence, commits []store.Commit) (store.Stamp, []store.CommitResult, error) {
	s.call()
	return s.cellStoreOf.Commit(ctx, shard, f, commits)
}

func (s *slowCells) Cells(ctx context.Context, shard store.Shard, ids []store.CellID) ([]store.Cell, error) {
	s.call()
	return s.cellStoreOf.Cells(ctx, shard, ids)
}

func (s *slowCells) Wakes(ctx context.Context, shard store.Shard, q store.WakeQuery) (store.Stamp, []store.Wake, error) {
	s.call()
	return s.cellStoreOf.Wakes(ctx, shard, q)
}

func (s *slowCells) Parcels(ctx context.Context, shard store.Shard, box store.Box, after int64, limit int) ([]store.Parcel, error) {
	s.call()
	return s.cellStoreOf.Parcels(ctx, shard, box, after, limit)
}

// walkRun is one run of an audience, and what it came to.
type walkRun struct {
	recipients, shards int
	window, grain      time.Duration
	each               time.Duration // that a call of the store takes
	untracked          bool          // the ends of its tasks are not told

	at           store.Millis // when it begins
	looks, tasks int
	calls        int64
	late         time.Duration // the most that a task was made behind its place
	behind       time.Duration // the same of those due once the run goes on
	over         time.Duration // from the last place to the end of the run
}

// goingOn is when a run has taken what is due as it begins.
const goingOn = 5 * time.Second

// play has a shard look at a run as often as it asks for, while workers end each task when it
// is due.
func (w *walkRun) play(r *lookRig) {
	r.Helper()
	w.fill(r)
	w.order(r)
	slow := &slowCells{cellStoreOf: r.db, each: w.each}
	r.Looker.Store = slow
	due := make(map[store.Millis][]string)
	for begun := false; ; begun = true {
		out := r.look()
		if w.looks++; out.Err != nil || out.Stuck {
			r.Fatalf("look %d: %+v", w.looks, out)
		}
		w.note(r, out, due)
		if begun && len(r.schedule("all").Open) == 0 {
			break
		}
		if w.wait(r, out, due); time.Since(w.at.Time()) > w.window+10*time.Minute {
			r.Fatalf("%d tasks after %d looks, and no end", w.tasks, w.looks)
		}
	}
	w.calls, w.over = slow.calls.Load(), time.Since(w.at.Time())-w.window
}

// order puts the schedule of the run, and waits until that begins.
func (w *walkRun) order(r *lookRig) {
	r.Helper()
	r.putWith("all", func(s *schedule.Spec) {
		s.Timetable = timetable.Spec{Entries: []timetable.Entry{{Cron: "0 * * * *"}}}
		s.Audience = &schedule.Target{Name: "users", Window: w.window, Grain: w.grain, Quiet: uint8(audience.Defer), Untracked: w.untracked}
	})
	at := r.Now().Time().Truncate(time.Hour).Add(time.Hour)
	w.at = store.Millis(at.UnixMilli())
	time.Sleep(time.Until(at))
}

// fill makes the audience.
func (w *walkRun) fill(r *lookRig) {
	r.Helper()
	a := &audience.Audience{Name: "users", Shards: w.shards, Life: 7}
	by := access.Access{Store: audienceStore{r.db, r.db}}
	if ok, err := by.Commit(r.Context(), audience.Catalog(), a.Commit()); err != nil || !ok {
		r.Fatal(ok, err)
	}
	changes := make([][]audience.Change, w.shards)
	for i := range w.recipients {
		id := fmt.Sprint("user-", i)
		n, _ := audience.Locate(id, w.shards)
		changes[n] = append(changes[n], audience.Change{ID: id, Put: &audience.Recipient{ID: id}})
	}
	for n := range changes {
		err := by.Change(r.Context(), a, n, func(d *audience.Directory) (store.Commit, error) {
			v, err := by.View(r.Context(), a, n, d, nil)
			if err != nil {
				return store.Commit{}, err
			}
			c, _ := v.Apply(changes[n], audience.Limits{Recipients: int64(w.recipients)})
			return c, nil
		})
		if err != nil {
			r.Fatal(err)
		}
	}
}

// note notes the tasks that a look made, and how late.
func (w *walkRun) note(r *lookRig, out *Outcome, due map[store.Millis][]string) {
	for _, made := range out.Made {
		for _, e := range made.Fresh {
			w.tasks++
			late := r.Now().Sub(e.Due)
			if w.late = max(w.late, late); e.Due >= w.at.Add(goingOn) {
				w.behind = max(w.behind, late)
			}
			due[e.Due] = append(due[e.Due], e.ID)
		}
	}
}

// work ends what is due, which tells the walk.
func (w *walkRun) work(r *lookRig, due map[store.Millis][]string) (any bool) {
	r.Helper()
	for at, ids := range due {
		if at > r.Now() {
			continue
		}
		delete(due, at)
		any = true
		for from := 0; from < len(ids); from += 1000 {
			var c store.Commit
			for _, id := range ids[from:min(from+1000, len(ids))] {
				c.Removes = append(c.Removes, store.Remove{ID: id})
			}
			r.commit(c)
		}
	}
	return any
}

// wait waits until the shard looks again: there is more to do, a cell wakes, or tasks end.
func (w *walkRun) wait(r *lookRig, out *Outcome, due map[store.Millis][]string) {
	rests, wake := r.Now().Add(out.Rest), out.Next
	if tidy := r.Now().Add(out.Tidy); out.Tidy > 0 && (wake == 0 || tidy < wake) {
		wake = tidy
	}
	told := out.Progress.Heard > out.Progress.Taken
	for !out.Again && (wake == 0 || wake > r.Now()) {
		if told = w.work(r, due) || told; told && r.Now() >= rests {
			return
		}
		next := r.Now().Add(time.Minute)
		for at := range due {
			next = min(next, at)
		}
		for _, at := range []store.Millis{wake, rests} {
			if at > r.Now() {
				next = min(next, at)
			}
		}
		time.Sleep(time.Until(next.Time()))
	}
	w.work(r, due)
}

// TestAWalkKeepsUpOnABusyStore bounds how late tasks are made, and what that takes. What is
// due as the run begins cannot be in time.
func TestAWalkKeepsUpOnABusyStore(t *testing.T) {
	for name, c := range map[string]struct {
		run         walkRun
		late        time.Duration
		looks       int
		callsOfTask float64
	}{
		"many recipients": {
			walkRun{recipients: 100_000, shards: 64, window: 30 * time.Second, grain: time.Second, each: 10 * time.Millisecond},
			1500 * time.Millisecond, 100, 0.02,
		},
		"few recipients in many shards": {
			walkRun{recipients: 2_000, shards: 256, window: time.Minute, grain: time.Second, each: 10 * time.Millisecond},
			1500 * time.Millisecond, 100, 2.2,
		},
		"places without grain": {
			walkRun{recipients: 5_000, shards: 4, window: 5 * time.Second, each: 100 * time.Microsecond},
			20 * time.Millisecond, 300, 0.35,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(r *lookRig) {
				w := c.run
				w.play(r)
				t.Logf("%d looks, %d calls, %v late at the begin", w.looks, w.calls, w.late)
				if w.tasks != w.recipients {
					t.Errorf("%d tasks for %d recipients", w.tasks, w.recipients)
				}
				if w.late > c.late || w.behind > 0 {
					t.Errorf("tasks are %v late at the begin, and %v later on; want %v at most, and 0", w.late, w.behind, c.late)
				}
				if of := float64(w.calls) / float64(w.tasks); w.looks > c.looks || of > c.callsOfTask {
					t.Errorf("%d looks, and %.3f calls a task; want %d and %.3f at most", w.looks, of, c.looks, c.callsOfTask)
				}
				if w.over > time.Second {
					t.Errorf("the run ends %v behind its window", w.over)
				}
			})
		})
	}
}

// walkCommits are the commits of a walk, every other of which fails: as a whole, or after it
// was made.
type walkCommits struct {
	cellStoreOf
	mu   sync.Mutex     // a walk commits to several shards at a time
	n    int            // guarded by mu
	made map[string]int // tasks, by how often they were; guarded by mu
}

func (s *walkCommits) Commit(ctx context.Context, shard store.Shard, f *store.Fence, commits []store.Commit) (store.Stamp, []store.CommitResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n++; s.n%4 == 1 {
		return store.Stamp{}, nil, errBroken
	}
	stamp, results, err := s.cellStoreOf.Commit(ctx, shard, f, commits)
	if err != nil {
		return stamp, results, err
	}
	for i := range commits {
		for _, t := range commits[i].Adds {
			if results[i].Status == store.OK {
				s.made[t.ID]++
			}
		}
	}
	if s.n%4 == 3 {
		return store.Stamp{}, nil, errBroken
	}
	return stamp, results, nil
}

// end ends all tasks, so that nothing is left that one made again could be known by.
func (s *walkCommits) end(r *lookRig) {
	r.Helper()
	var c store.Commit
	for id := range s.made {
		c.Removes = append(c.Removes, store.Remove{ID: id})
	}
	r.commit(c)
}

// TestAWalkWhoseCommitsFailMakesNoTaskTwice: where a walk is, and the tasks that it made, are
// one commit.
func TestAWalkWhoseCommitsFailMakesNoTaskTwice(t *testing.T) {
	inBubble(t, func(r *lookRig) {
		w := walkRun{recipients: 1000, shards: 4, window: 20 * time.Second, grain: time.Second}
		w.fill(r)
		w.order(r)
		commits := &walkCommits{cellStoreOf: r.db, made: make(map[string]int)}
		r.Looker.Store = commits
		for range 200 {
			if out := r.look(); out.Err != nil && !errors.Is(out.Err, errBroken) {
				t.Fatal(out.Err)
			}
			commits.end(r)
			time.Sleep(200 * time.Millisecond)
		}
		for id, n := range commits.made {
			if n != 1 {
				t.Errorf("%s was made %d times", id, n)
			}
		}
		if len(commits.made) != w.recipients || len(r.schedule("all").Open) > 0 {
			t.Errorf("%d tasks for %d recipients; open: %v", len(commits.made), w.recipients, r.schedule("all").Open)
		}
	})
}

// pausedCells stops its owner before it notes anything of an audience, once.
type pausedCells struct {
	cellStoreOf
	at    store.Shard
	pause func()
}

func (s *pausedCells) Commit(ctx context.Context, shard store.Shard, f *store.Fence, commits []store.Commit) (store.Stamp, []store.CommitResult, error) {
	if shard.Topic == s.at.Topic && shard.N == s.at.N && s.pause != nil { // of a shard one commit is made at a time
		pause := s.pause
		s.pause = nil
		pause()
	}
	return s.cellStoreOf.Commit(ctx, shard, f, commits)
}

// TestAnOwnerOfBeforeLeavesNoRun pauses an owner that is about to note that a run begins, until
// another one has gone through the run. What the first one notes then is of a run that is over.
func TestAnOwnerOfBeforeLeavesNoRun(t *testing.T) {
	inBubble(t, func(r *lookRig) {
		w := &walkRun{recipients: 20, shards: 4, window: time.Minute, grain: time.Second}
		w.fill(r)
		w.order(r)
		a := &audience.Audience{Name: "users", Shards: w.shards, Life: 7}
		paused := &pausedCells{cellStoreOf: r.db, at: a.Shard(1)}
		first, topic, fence := r.Looker, r.topic, r.fence
		paused.pause = func() {
			second := first.Shard
			second.Store = r.db
			r.Looker, r.progress = NewLooker(second), Progress{}
			r.claim("another")
			for due := make(map[store.Millis][]string); len(r.schedule("all").Open) > 0; {
				out := r.mustLook()
				w.note(r, out, due)
				w.wait(r, out, due)
			}
		}
		first.Store = paused
		for range 3 {
			if paused.pause == nil {
				break
			}
			first.Look(r.Context(), Start{Fence: fence, Topic: topic, Progress: Progress{}, Cells: 1})
		}
		if paused.pause != nil {
			r.Fatal("no run began")
		}
		for n := range a.Shards {
			d, err := access.Access{Store: audienceStore{r.db, r.db}}.Directory(r.Context(), a, n)
			if err != nil || len(d.Runs) != 0 {
				r.Errorf("shard %d has the runs %+v, %v", n, d.Runs, err)
			}
		}
	})
}

// mustLook makes a look that cannot fail.
func (r *lookRig) mustLook() *Outcome {
	r.Helper()
	out := r.look()
	if out.Err != nil || out.Stuck {
		r.Fatalf("%+v", out)
	}
	return out
}

// claim has another node own the shard.
func (r *lookRig) claim(node string) {
	r.Helper()
	if err := r.db.Release(r.Context(), r.ID, r.fence); err != nil {
		r.Fatal(err)
	}
	session := store.Session{Node: node, Start: store.NewToken(), TTL: 24 * time.Hour, Begin: true}
	if _, err := r.db.RenewSession(r.Context(), session); err != nil {
		r.Fatal(err)
	}
	_, fence, err := r.db.Claim(r.Context(), r.ID, session)
	if err != nil {
		r.Fatal(err)
	}
	r.fence = fence
}

// TestARunThatBeginsHasItsAudienceStay: one who deletes it may have looked for runs just before.
func TestARunThatBeginsHasItsAudienceStay(t *testing.T) {
	inBubble(t, func(r *lookRig) {
		w := walkRun{recipients: 10, shards: 2, window: time.Minute, grain: time.Second}
		w.fill(r)
		w.order(r)
		by := access.Access{Store: audienceStore{r.db, r.db}}
		version, err := by.Leave(t.Context(), "users")
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			r.mustLook()
		}
		if d, err := by.Directory(t.Context(), &audience.Audience{Name: "users", Shards: 2, Life: 7}, 0); err != nil || len(d.Runs) != 1 {
			t.Fatalf("the run has not begun: %+v, %v", d, err)
		}
		if ended, err := by.End(t.Context(), "users", version); ended || err != nil {
			t.Errorf("its audience ends: %t, %v", ended, err)
		}
	})
}

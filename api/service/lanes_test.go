package service_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
)

// inLane returns a task of a priority and fairness key.
func inLane(id string, delay time.Duration, priority int, key string) service.NewTask {
	task := servicetest.After("mail", id, delay)
	task.Task.MaxRetries = -1
	if priority != 0 || key != "" {
		task.Task.Traits = &store.Traits{Priority: priority, FairnessKey: key}
	}
	return task
}

func enqueueAll(t *testing.T, s *service.Service, tasks []service.NewTask) {
	t.Helper()
	for len(tasks) > 0 {
		n := min(len(tasks), 1000)
		out, err := s.Tasks.Enqueue(t.Context(), tasks[:n])
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range out {
			if o.Err != nil {
				t.Fatal(o.Err)
			}
		}
		tasks = tasks[n:]
	}
	synctest.Wait()
}

// smallBudgets make a backlog of what fits into a test.
func smallBudgets() actors.Config {
	return actors.Config{ReadyBudget: 100, WheelBudget: 200, Topic: store.Topic{Shards: 1}}
}

const backlogTasks = 3000

func backlogOf(name string, priority int, key string) (tasks []service.NewTask) {
	for i := range backlogTasks {
		tasks = append(tasks, inLane(fmt.Sprintf("%s%05d", name, i), 0, priority, key))
	}
	return tasks
}

// A late task of a high priority goes before a backlog that does not fit into memory:
// told to the owner, due later, or found by an owner that starts with the backlog.
// How much of a backlog is looked at in a turn does not count, as hibiken/asynq#632 asks.
func TestPriorityOvertakesABacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New()
		s := servicetest.Start(t, smallBudgets(), st)
		enqueueAll(t, s, backlogOf("bulk", 0, ""))
		time.Sleep(time.Minute)
		enqueueAll(t, s, []service.NewTask{inLane("now", 0, 5, ""), inLane("later", 10*time.Second, 9, "")})
		w := servicetest.Subscribe(t, s, "mail", 1)
		if got := w.Ids(); len(got) != 1 || got[0] != "now" {
			t.Fatalf("first came %v, want the task of priority 5", got)
		}
		time.Sleep(9 * time.Second)
		w.Sub.Grant(1)
		if got := w.Ids(); len(got) != 1 || !strings.HasPrefix(got[0], "bulk") {
			t.Fatalf("then came %v, want one of the backlog", got)
		}
		time.Sleep(time.Second + 2*time.Millisecond)
		w.Sub.Grant(1)
		if got := w.Ids(); len(got) != 1 || got[0] != "later" {
			t.Fatalf("when it was due came %v, want the task of priority 9", got)
		}
		enqueueAll(t, s, []service.NewTask{inLane("next", 0, 1, "")})
		s.Node().Stop(t.Context())

		s = servicetest.Start(t, smallBudgets(), st)
		time.Sleep(time.Second) // the backlog is loaded
		w = servicetest.Subscribe(t, s, "mail", 1)
		if got := w.Ids(); len(got) != 1 || got[0] != "next" {
			t.Fatalf("after a restart came %v, want the task of priority 1", got)
		}
		s.Node().Stop(t.Context())
		time.Sleep(5 * time.Second)
	})
}

// All of a backlog of many lanes comes, once each, though none of it fits into memory.
func TestBacklogOfLanesComesWhole(t *testing.T) {
	servicetest.Bubble(t, smallBudgets(), func(t *testing.T, s *service.Service) {
		var tasks []service.NewTask
		for i := range backlogTasks {
			tasks = append(tasks, inLane(fmt.Sprintf("t%05d", i), time.Duration(i%40)*time.Second, i%3, strings.Repeat("k", i%7)))
		}
		enqueueAll(t, s, tasks)
		w := servicetest.Subscribe(t, s, "mail", 50)
		seen := map[string]bool{}
		for since := time.Now(); len(seen) < backlogTasks; {
			got := w.Ids()
			for _, id := range got {
				if seen[id] {
					t.Fatalf("%s delivered twice", id)
				}
				seen[id] = true
			}
			w.Sub.Grant(len(got))
			if len(got) == 0 {
				time.Sleep(100 * time.Millisecond)
			}
			if time.Since(since) > 2*time.Minute {
				t.Fatalf("stuck after %d of %d", len(seen), backlogTasks)
			}
		}
	})
}

// One tenant's backlog does not delay another's few tasks, wherever they stand in
// the order of due times.
func TestFairnessBehindABacklog(t *testing.T) {
	servicetest.Bubble(t, smallBudgets(), func(t *testing.T, s *service.Service) {
		enqueueAll(t, s, backlogOf("bulk", 0, "big"))
		time.Sleep(time.Minute)
		var few []service.NewTask
		for i := range 10 {
			few = append(few, inLane(fmt.Sprint("few", i), 0, 0, "small"))
		}
		enqueueAll(t, s, few)
		w := servicetest.Subscribe(t, s, "mail", 1)
		got := 0
		for n := range 25 {
			for _, id := range w.Ids() {
				if strings.HasPrefix(id, "few") {
					got++
				} else if n > 2 && got == 0 {
					t.Fatalf("%d deliveries, and none of the small tenant", n+1)
				}
			}
			w.Sub.Grant(1)
		}
		if got != 10 {
			t.Errorf("%d of the small tenant's 10 tasks came within 25 deliveries", got)
		}
	})
}

// Under a stream of tasks of the highest priority that takes all there is of workers,
// the lowest come too: one in ten.
func TestLowestPriorityDoesNotStarve(t *testing.T) {
	servicetest.Bubble(t, smallBudgets(), func(t *testing.T, s *service.Service) {
		enqueueAll(t, s, backlogOf("bulk", 0, ""))
		enqueueAll(t, s, backlogOf("top", 9, ""))
		w := servicetest.Subscribe(t, s, "mail", 10)
		low, n := 0, 0
		for n < 1000 {
			got := w.Ids()
			for _, id := range got {
				if strings.HasPrefix(id, "bulk") {
					low++
				}
			}
			n += len(got)
			w.Sub.Grant(len(got))
		}
		if low < n/10-10 || low > n/10+10 {
			t.Errorf("%d of %d deliveries were of the lowest priority, want a tenth", low, n)
		}
	})
}

// deafStore does not answer so many reads of lanes.
type deafStore struct {
	store.Store
	deaf atomic.Int32
}

func (d *deafStore) Window(ctx context.Context, s store.Shard, w store.WindowQuery) (store.Stamp, []store.Entry, error) {
	if w.Lane != nil && d.deaf.Add(-1) >= 0 {
		return store.Stamp{}, nil, store.ErrUnavailable
	}
	return d.Store.Window(ctx, s, w)
}

// A lane that could not be read is read again.
func TestLaneIsReadAgainAfterAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &deafStore{Store: memstore.New()}
		s := servicetest.Start(t, smallBudgets(), st)
		enqueueAll(t, s, backlogOf("top", 9, ""))
		st.deaf.Store(5)
		w := servicetest.Subscribe(t, s, "mail", 500)
		seen := 0
		for until := time.Now().Add(time.Minute); seen < backlogTasks && time.Now().Before(until); time.Sleep(100 * time.Millisecond) {
			n := len(w.Ids())
			seen += n
			w.Sub.Grant(n)
		}
		if seen != backlogTasks {
			t.Errorf("%d of %d tasks came", seen, backlogTasks)
		}
		s.Node().Stop(t.Context())
		time.Sleep(5 * time.Second)
	})
}

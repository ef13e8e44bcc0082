package actors

import (
	"fmt"
	"testing"
	"time"

	"github.com/ddq-io/ddq/store"
)

// The clocks of three nodes and of the store are up to fifteen seconds apart: tasks
// are due by the store's, whichever node takes them, owns them or delivers them,
// and leases and holds last as long as they should.
func TestClocksThatDiffer(t *testing.T) {
	for _, ahead := range []time.Duration{0, 5 * time.Second, -5 * time.Second} {
		t.Run(fmt.Sprint("store ahead by ", ahead), func(t *testing.T) {
			fleetBubble(t, nil, func(t *testing.T, f *testFleet) {
				f.store.SetClock(ahead)
				f.off = map[string]time.Duration{"a": 5 * time.Second, "b": -5 * time.Second, "c": 0}
				for name := range f.off {
					f.join(name)
				}
				w := f.work(f.nodes["a"], "mail", 5000)
				w.skew = ahead
				owners := map[string]bool{}
				for _, owner := range f.owners("mail") {
					owners[owner] = true
				}
				if len(owners) != 3 {
					t.Errorf("owners are %v", owners)
				}
				for name, at := range f.nodes {
					w.enqueue(at, "mail", "delay-"+name, 200, 2*time.Second)
					w.enqueueAt(at, "due-"+name, 200, time.Now().Add(ahead), 2*time.Second)
				}
				w.run(2 * time.Second)
				w.done(5 * time.Millisecond)

				for name, at := range f.nodes { // again, while an owner dies
					w.enqueue(at, "mail", "again-"+name, 200, 2*time.Second)
				}
				w.run(500 * time.Millisecond)
				f.kill(f.nodes["b"])
				w.run(4 * time.Second)
				w.done(3 * time.Second)
			})
		})
	}
}

// enqueueAt stores n tasks, due evenly over a while from a moment of the store's clock.
func (w *ledger) enqueueAt(at *testNode, prefix string, n int, from time.Time, over time.Duration) {
	w.t.Helper()
	tasks := make([]NewTask, n)
	for i := range tasks {
		tasks[i] = NewTask{
			Topic: "mail",
			Task:  store.Task{ID: fmt.Sprintf("%s-%d", prefix, i), MaxRetries: -1},
			When:  When{At: ceilMillis(from.Add(over * time.Duration(i+1) / time.Duration(n)))},
		}
	}
	w.store(at, tasks)
}

package servicetest

import (
	"fmt"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/store"
)

// Work subscribes at a node and keeps books of what is enqueued with it.
func (f *Fleet) Work(at *Node, topic string, credit int) *Ledger {
	f.Helper()
	w := &Ledger{Stream: Subscribe(f.T, at.Sys, topic, credit), Due: map[string]store.Millis{}, Seen: map[string]int{}, Last: map[string]subscription.Delivery{}}
	time.Sleep(200 * time.Millisecond) // until every node has claimed its shards
	synctest.Wait()
	return w
}

// Enqueue stores n tasks, due evenly over a while from now.
func (w *Ledger) Enqueue(at *Node, topic, prefix string, n int, over time.Duration) {
	w.T.Helper()
	tasks := make([]service.NewTask, n)
	for i := range tasks {
		tasks[i] = After(topic, fmt.Sprintf("%s-%d", prefix, i), over*time.Duration(i+1)/time.Duration(n))
		tasks[i].Task.MaxRetries = -1
	}
	w.store(at, tasks)
}

// store enqueues tasks and opens their books.
func (w *Ledger) store(at *Node, tasks []service.NewTask) {
	w.T.Helper()
	results, err := at.Sys.Tasks.Enqueue(w.T.Context(), tasks)
	if err != nil {
		w.T.Fatal(err)
	}
	for _, r := range results {
		if r.Err != nil {
			w.T.Fatal(r.Err)
		}
		w.Due[r.ID] = r.Due
	}
}

// Run acks what comes, and grants again, for a while.
func (w *Ledger) Run(d time.Duration) {
	w.T.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Millisecond) {
		w.TakeIn()
	}
}

func (w *Ledger) TakeIn() {
	w.T.Helper()
	got := w.Take()
	for _, d := range got {
		id := d.Task.ID
		w.Last[id] = d
		if w.Seen[id]++; d.Task.Attempt != w.Seen[id] {
			w.T.Errorf("%s: attempt %d at delivery %d", id, d.Task.Attempt, w.Seen[id])
		}
		late := time.Since(d.Task.Due.Time()) + w.Skew
		if late < 0 {
			w.T.Errorf("%s: early by %v", id, -late)
		}
		w.Late = max(w.Late, late)
		w.Settle(subscription.SettleAck, d)
	}
	for _, s := range w.TakeSettled() {
		if s.Err != nil {
			w.T.Errorf("%s: ack: %v", s.ID, s.Err)
		}
		delete(w.Due, s.ID)
	}
	if len(got) > 0 {
		_ = w.Sub.Grant(len(got))
	}
}

// Done fails unless everything was delivered, once, no later than late.
func (w *Ledger) Done(late time.Duration) {
	w.T.Helper()
	w.Run(100 * time.Millisecond)
	if len(w.Due) > 0 {
		w.T.Errorf("%d tasks are missing", len(w.Due))
	}
	for id, n := range w.Seen {
		if n != 1 {
			w.T.Errorf("%s was delivered %d times", id, n)
		}
	}
	if w.Late > late {
		w.T.Errorf("late by %v, want %v at most", w.Late, late)
	}
	w.Late = 0
}

// Epochs is how often shards of a topic were claimed.
func (f *Fleet) Epochs(topic string) (sum int64) {
	f.Helper()
	for _, st := range f.stats(topic) {
		sum += st.Epoch
	}
	return sum
}

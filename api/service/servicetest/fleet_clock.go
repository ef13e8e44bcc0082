package servicetest

import (
	"fmt"
	"time"

	"github.com/ddq-io/ddq/actors/clock"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/store"
)

// EnqueueAt stores n tasks, due evenly over a while from a moment of the store's clock.
func (w *Ledger) EnqueueAt(at *Node, prefix string, n int, from time.Time, over time.Duration) {
	w.T.Helper()
	tasks := make([]service.NewTask, n)
	for i := range tasks {
		tasks[i] = service.NewTask{
			Topic: "mail",
			Task:  store.Task{ID: fmt.Sprintf("%s-%d", prefix, i), MaxRetries: -1},
			When:  service.When{At: clock.CeilMillis(from.Add(over * time.Duration(i+1) / time.Duration(n)))},
		}
	}
	w.store(at, tasks)
}

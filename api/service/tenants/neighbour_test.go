package tenants_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/scope"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/api/service/tenants"
)

// A namespace that floods two nodes, at its quotas, makes no task of another one late, and has none of them refused.
func TestAFloodAtItsQuotasLeavesOthersAlone(t *testing.T) {
	fleetOfTwo(t, &tenants.Quotas{EnqueuePerSecond: 100, BytesPerSecond: 5000, MaxPending: 500, MaxTopics: 2}, func(f *two) {
		quiet := scope.With(f.Context(), "quiet")
		worker := servicetest.Subscribe(f.T, f.b, "quiet/mail", 1000)
		defer worker.Sub.Unsubscribe(nil)
		stored, refused, due := 0, map[string]int{}, map[string]time.Time{}
		calls := f.Nodes["a"].Store.LimitCalls.Load()
		for tick := range 300 { // 3 s
			for i := range 20 {
				switch reason := f.enqueue(f.a, f.acme(), fmt.Sprint("acme/t", i%3), 10+i); reason {
				case "":
					stored++
				default:
					refused[reason]++
				}
			}
			id := fmt.Sprint("q", tick)
			due[id] = time.Now().Add(50 * time.Millisecond)
			f.mustEnqueue(f.a, quiet, id)
			time.Sleep(10 * time.Millisecond)
		}
		servicetest.Idle(time.Second)
		if stored > 400 || stored < 250 {
			f.Errorf("the flood stored %d tasks in 3 s after a rest, want up to 400", stored)
		}
		if refused["RATE_LIMITED"] == 0 || refused["QUOTA"] == 0 {
			f.Errorf("refused: %v", refused)
		}
		if calls = f.Nodes["a"].Store.LimitCalls.Load() - calls; calls > 1000 {
			f.Errorf("6,000 tries cost %d calls of the store about rates", calls)
		}
		got, at := worker.Take(), worker.At
		if len(got) != len(due) {
			f.Errorf("%d tasks of the other namespace came, want %d", len(got), len(due))
		}
		for i, d := range got {
			if late := at[i].Sub(due[d.Task.ID]); late < 0 || late > 20*time.Millisecond {
				f.Errorf("%s is %v late", d.Task.ID, late)
			}
		}
	})
}

// mustEnqueue stores a task of another namespace, due in 50 ms.
func (f *two) mustEnqueue(at *service.Service, ctx context.Context, id string) {
	f.Helper()
	task := servicetest.After("quiet/mail", id, 50*time.Millisecond)
	task.Task.MaxRetries = -1
	out, err := at.Tasks.Enqueue(ctx, []service.NewTask{task})
	if err != nil || out[0].Err != nil {
		f.Fatalf("%s: %v, %v", id, err, out)
	}
}

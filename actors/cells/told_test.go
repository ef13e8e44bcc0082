package cells

import (
	"context"
	"testing"
	"time"

	"github.com/ddq-io/ddq/actors/runtime"
	"github.com/ddq-io/ddq/actors/workflow"
	"github.com/ddq-io/ddq/actors/workflow/graph"
	"github.com/ddq-io/ddq/store"
)

// countingCells counts the calls of a look.
type countingCells struct {
	cellStoreOf
	calls map[string]int
}

func (c *countingCells) Commit(ctx context.Context, s store.Shard, f *store.Fence, commits []store.Commit) (store.Stamp, []store.CommitResult, error) {
	c.calls["commit"]++
	return c.cellStoreOf.Commit(ctx, s, f, commits)
}

func (c *countingCells) Wakes(ctx context.Context, s store.Shard, q store.WakeQuery) (store.Stamp, []store.Wake, error) {
	c.calls["wakes"]++
	return c.cellStoreOf.Wakes(ctx, s, q)
}

func (c *countingCells) Parcels(ctx context.Context, s store.Shard, box store.Box, after int64, limit int) ([]store.Parcel, error) {
	c.calls["parcels"]++
	return c.cellStoreOf.Parcels(ctx, s, box, after, limit)
}

func (c *countingCells) Told(ctx context.Context, s store.Shard, q store.ToldQuery) ([]store.Parcel, []store.Cell, error) {
	c.calls["told"]++
	return c.cellStoreOf.Told(ctx, s, q)
}

func (c *countingCells) Cells(ctx context.Context, s store.Shard, ids []store.CellID) ([]store.Cell, error) {
	c.calls["cells"]++
	return c.cellStoreOf.Cells(ctx, s, ids)
}

// chain puts a workflow of steps that wait for each other, and returns the task of the first one.
func (r *lookRig) chain(names ...string) string {
	r.Helper()
	d := &graph.Definition{}
	for i, name := range names {
		step := graph.Step{Name: name, Task: &graph.Template{Task: store.Task{MaxRetries: -1}}}
		if i > 0 {
			step.After = []graph.After{{Step: names[i-1]}}
		}
		d.Steps = append(d.Steps, step)
	}
	w, out := workflow.Submit("w", 7, d, workflow.Env{Now: r.Now(), Topic: "mail"})
	c, err := workflow.Commit(nil, w, &out, workflow.Context{Topic: r.topic, Now: r.Now()})
	if err != nil {
		r.Fatal(err)
	}
	r.commit(c)
	return out.Make[0].ID
}

// told makes a look that has no other cause than parcels, and returns the tasks that it made and its calls.
func (r *lookRig) told() (*Outcome, []string, map[string]int) {
	r.Helper()
	counting := &countingCells{cellStoreOf: r.failing, calls: make(map[string]int)}
	r.Store = counting
	defer func() { r.Store = r.failing }()
	out := r.Look(r.Context(), Start{Fence: r.fence, Topic: r.topic, Told: true, Progress: r.progress, Cells: 1})
	if out.Err != nil {
		r.Fatal(out.Err)
	}
	r.progress = out.Progress
	return out, runs(out), counting.calls
}

func TestALookAtWhatWorkflowsAreToldIsBrief(t *testing.T) {
	inBubble(t, func(r *lookRig) {
		r.Definitions, r.Workflows, r.Flows = runtime.NewDefinitions(), runtime.NewWorkflows(), &r.metrics.Workflows
		task := r.chain("a", "b", "c", "d")
		r.look()
		for range 2 {
			r.ack(task)
			out, made, calls := r.told()
			if len(made) != 1 || calls["wakes"] != 0 || calls["parcels"] != 0 || calls["told"] != 1 || calls["commit"] != 1 || out.Again || out.Next != 0 {
				t.Fatalf("%+v made %v in %v", out, made, calls)
			}
			task = made[0]
		}
		time.Sleep(wholeEvery)
		r.ack(task)
		_, made, calls := r.told()
		if len(made) != 1 || calls["wakes"] == 0 {
			t.Fatalf("after a second a look made %v in %v", made, calls)
		}
		r.ack(made[0])
		if out, _, calls := r.told(); calls["wakes"] != 0 || out.Next <= r.Now() {
			t.Errorf("the end is forgotten at %d, found in %v", out.Next, calls)
		}
		if out := r.look(); out.Err != nil || r.parcels() != 0 {
			t.Errorf("%d parcels are left: %v", r.parcels(), out.Err)
		}
	})
}

// TestABriefLookSeesWhatOthersHavePut has somebody else change when a workflow wakes, and say so.
func TestABriefLookSeesWhatOthersHavePut(t *testing.T) {
	inBubble(t, func(r *lookRig) {
		r.Definitions, r.Workflows, r.Flows = runtime.NewDefinitions(), runtime.NewWorkflows(), &r.metrics.Workflows
		r.chain("a")
		r.look()
		soon := r.Now().Add(time.Minute)
		header := workflow.CellID("w")
		cells, err := r.db.Cells(r.Context(), r.ID, []store.CellID{header})
		if err != nil {
			t.Fatal(err)
		}
		put := store.Put{Cell: cells[0], If: cells[0].Version}
		put.Wake = soon
		r.commit(store.Commit{Puts: []store.Put{put}, Send: []store.Parcel{{To: header, Body: []byte{}}}})
		out, _, calls := r.told()
		if calls["wakes"] == 0 && (out.Next == 0 || out.Next > soon) {
			t.Errorf("it wakes at %d, and the next look is at %d", soon, out.Next)
		}
	})
}

// parcels are how many lie in the in-box.
func (r *lookRig) parcels() int {
	r.Helper()
	found, err := r.db.Parcels(r.Context(), r.ID, store.InBox, 0, 100)
	if err != nil {
		r.Fatal(err)
	}
	return len(found)
}

package access_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ddq-io/ddq/actors/workflow"
	"github.com/ddq-io/ddq/actors/workflow/access"
	"github.com/ddq-io/ddq/actors/workflow/graph"
	"github.com/ddq-io/ddq/actors/workflow/refusal"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
)

// meddler lets somebody else be quicker, and loses answers of commits that were made.
type meddler struct {
	*memstore.Store
	before func() // called once, before a commit
	lose   int
}

var errBroken = errors.New("broken")

func (m *meddler) Commit(ctx context.Context, s store.Shard, f *store.Fence, commits []store.Commit) (store.Stamp, []store.CommitResult, error) {
	if before := m.before; before != nil {
		m.before = nil
		before()
	}
	stamp, results, err := m.Store.Commit(ctx, s, f, commits)
	if err == nil && m.lose > 0 {
		m.lose--
		return store.Stamp{}, nil, errBroken
	}
	return stamp, results, err
}

// teller writes down what it is to tell, and repeats calls whose answers are lost.
type teller struct {
	alone
	told []store.Commit
}

func (n *teller) Resolve(_ context.Context, call func() error) (repeated bool, err error) {
	for err = call(); errors.Is(err, errBroken); err = call() {
		repeated = true
	}
	return repeated, err
}

func (n *teller) Committed(_ context.Context, _ store.Shard, c *store.Commit, _ store.Stamp) {
	n.told = append(n.told, *c)
}

// rig is the workflows of the topic mail.
type rig struct {
	*testing.T
	access.Access
	db    *meddler
	node  *teller
	topic *store.Topic
}

func newRig(t *testing.T) *rig {
	db, node := &meddler{Store: memstore.New()}, &teller{}
	return &rig{T: t, Access: access.Access{Store: db, Node: node}, db: db, node: node, topic: &store.Topic{Name: "mail", Shards: 1, Life: 1}}
}

// tasks is a workflow of tasks without conditions, in a topic each.
func tasks(topics ...string) *graph.Definition {
	d := &graph.Definition{}
	for i, topic := range topics {
		d.Steps = append(d.Steps, graph.Step{Name: fmt.Sprint("s", i), Task: &graph.Template{Topic: topic, Task: store.Task{MaxRetries: -1}}})
	}
	return d
}

func (r *rig) submit(id string, d *graph.Definition) access.Submitted {
	r.Helper()
	done, err := r.Submit(r.Context(), r.topic, id, d)
	if err != nil {
		r.Fatal(err)
	}
	return done
}

func (r *rig) wantReason(what string, err error, want string) {
	r.Helper()
	var e *refusal.Error
	if !errors.As(err, &e) || e.Reason != want {
		r.Errorf("%s: %v, want %s", what, err, want)
	}
}

// A submit makes the tasks of the topic in its commit, and sends the others. The same again, with the topic
// named or not, changes nothing.
func TestSubmitIsOneCommit(t *testing.T) {
	r := newRig(t)
	r.submit("w", tasks("", "audit", "mail"))
	if len(r.node.told) != 1 || len(r.node.told[0].Adds) != 2 {
		t.Fatalf("told %+v", r.node.told)
	}
	sends := 0
	for _, p := range r.node.told[0].Send {
		if p.Topic == "audit" {
			sends++
		}
	}
	if sends != 1 {
		t.Errorf("sent %+v", r.node.told[0].Send)
	}
	if again := r.submit("w", tasks("mail", "audit", "")); !again.Deduplicated || len(r.node.told) != 1 {
		t.Errorf("the same again: %+v", again)
	}
	_, err := r.Submit(t.Context(), r.topic, "w", tasks(""))
	r.wantReason("another one", err, refusal.IDConflict)
	_, err = r.Submit(t.Context(), r.topic, strings.Repeat("i", 252), tasks("audit"))
	r.wantReason("an address too long", err, refusal.WorkflowTooLarge)
}

// A commit whose answer is lost is one that was made.
func TestALostAnswerIsFound(t *testing.T) {
	r := newRig(t)
	r.db.lose = 2
	if done := r.submit("w", tasks("")); done.Deduplicated || done.State != workflow.Running {
		t.Errorf("it is %+v", done)
	}
	r.db.lose = 1
	if s, err := r.Change(t.Context(), r.topic, "w", workflow.Pause{By: "ada"}); err != nil || s.State != workflow.Paused {
		t.Errorf("the pause is %+v, %v", s, err)
	}
}

// A change that meets another one is made on what that left. What cannot be any more is refused as such.
func TestAChangeIsMadeOnWhatIsThere(t *testing.T) {
	r := newRig(t)
	r.submit("w", tasks(""))
	r.db.before = func() {
		if _, err := r.Change(t.Context(), r.topic, "w", workflow.Pause{By: "ada", Note: "first"}); err != nil {
			t.Error(err)
		}
	}
	if s, err := r.Change(t.Context(), r.topic, "w", workflow.Cancel{Note: "second"}); err != nil || s.Note != "second" || s.State != workflow.Cancelling {
		t.Errorf("it is %+v, %v", s, err)
	}
	last := r.node.told[len(r.node.told)-1]
	if len(last.Removes) != 1 || len(last.Cancels) != 1 {
		t.Errorf("the cancel asks %+v", last)
	}
	_, err := r.Change(t.Context(), r.topic, "x", workflow.Cancel{})
	r.wantReason("one that is not there", err, refusal.NoWorkflow)
	_, err = r.Change(t.Context(), r.topic, "w/sub", workflow.Cancel{})
	r.wantReason("a child", err, refusal.ChildWorkflow)
	r.wantReason("delete of an open one", r.Delete(t.Context(), r.topic, "w"), refusal.WorkflowOpen)
}

// A workflow is found where it began, also when its topic has other shards, and ends there.
func TestAWorkflowStaysWhereItBegan(t *testing.T) {
	r := newRig(t)
	r.submit("w", tasks(""))
	r.topic = &store.Topic{Name: "mail", Life: 1, First: 1, Shards: 3, Former: [store.MaxFormer]store.Span{{Shards: 1}}}
	if again := r.submit("w", tasks("")); !again.Deduplicated {
		t.Errorf("the same again: %+v", again)
	}
	if s, err := r.Change(t.Context(), r.topic, "w", workflow.Pause{}); err != nil || s.State != workflow.Paused {
		t.Errorf("%+v, %v", s, err)
	}
	if err := r.Signal(t.Context(), r.topic, "w", workflow.Signal{Name: "go"}); err != nil {
		t.Error(err)
	}
	parcels, err := r.db.Parcels(t.Context(), store.Shard{Topic: "mail"}, store.InBox, 0, 10)
	if err != nil || len(parcels) == 0 {
		t.Errorf("in its shard lies %+v, %v", parcels, err)
	}
}

// What a signal has to say, and how many there are, is bounded before it is left.
func TestSignalsAreBounded(t *testing.T) {
	r := newRig(t)
	r.submit("w", tasks(""))
	for reason, s := range map[string]workflow.Signal{
		refusal.BadName:        {Name: "a b"},
		refusal.SignalTooLarge: {Name: "go", Payload: make([]byte, workflow.MaxSignal+1)},
	} {
		r.wantReason(reason, r.Signal(t.Context(), r.topic, "w", s), reason)
	}
	r.wantReason("to nobody", r.Signal(t.Context(), r.topic, "x", workflow.Signal{Name: "go"}), refusal.NoWorkflow)
}

// A wait ends with the workflow, or with its time.
func TestWaitReturnsWhatThereIs(t *testing.T) {
	r := newRig(t)
	r.submit("w", tasks(""))
	if s, err := r.Wait(t.Context(), r.topic, "w", time.Millisecond); err != nil || s.State != workflow.Running {
		t.Errorf("%+v, %v", s, err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Wait(gone, r.topic, "w", time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if found, _, err := r.List(t.Context(), store.Shard{Topic: "mail"}, workflow.OpenList, access.Filter{State: workflow.Paused}, store.Wake{}, 10); err != nil || len(found) != 0 {
		t.Errorf("of the paused are listed %+v, %v", found, err)
	}
	if found, _, err := r.List(t.Context(), store.Shard{Topic: "mail"}, workflow.OpenList, access.Filter{}, store.Wake{}, 10); err != nil || len(found) != 1 || found[0].ID != "w" {
		t.Errorf("listed are %+v, %v", found, err)
	}
}

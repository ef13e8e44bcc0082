package actors_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ddq-io/ddq/actors/workflow"
	"github.com/ddq-io/ddq/actors/workflow/access"
	"github.com/ddq-io/ddq/actors/workflow/cell"
	"github.com/ddq-io/ddq/actors/workflow/graph"
	history "github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/store"
)

// A run may have workflows, which are submitted while the producers are at it. The ledger judges
// their tasks; here it is looked at whether each try of a step has one task, made when what it
// waits for is over, and whether each workflow ends.

// simFlow is a workflow and what was committed of it.
type simFlow struct {
	shard     store.Shard
	tasks     map[string]string // step, copy and try -> id of its task
	begun     map[string]string // by what their parents know them: children
	paused    bool
	cancelled bool

	timeout time.Duration // from the moment on at which it was submitted; 0: none
	since   store.Millis
}

// drawWorkflows draws how many workflows there are, from a source of its own like drawIdle.
func (s *sim) drawWorkflows(p *simPlan) int {
	rng := rand.New(rand.NewPCG(s.seed, 13))
	if rng.Float64() < 0.6 || p.rewind > 0 || p.drops > 0 {
		return 0
	}
	return 1 + rng.IntN(6)
}

// submitWorkflows submits the workflows of the plan, at some time each.
func (s *sim) submitWorkflows() {
	rng := rand.New(rand.NewPCG(s.seed, 14))
	for i := range s.plan.workflows {
		id, d := fmt.Sprintf("flow%d", i), simGraph(rng, 7, true)
		life := rng.Uint64()
		s.timeOut(i, d)
		s.sendAway(i, id, d)
		s.after(s.plan.active+time.Second, func() { s.pauseFlow(id, false) })
		s.after(time.Duration(rng.Int64N(int64(s.plan.active))).Truncate(time.Millisecond), func() { s.submitWorkflow(id, life, d) })
	}
}

// drawAway draws how many shards another topic has, where workflows have steps and children, from a
// source of its own like drawIdle.
func (s *sim) drawAway(p *simPlan) int {
	rng := rand.New(rand.NewPCG(s.seed, 15))
	if p.workflows == 0 || rng.IntN(3) == 0 {
		return 0
	}
	return 1 + rng.IntN(3)
}

// sendAway has steps and children of a workflow be in the other topic, those of a child there perhaps in
// the first, and has what runs be cancelled when it fails, or all of it by a user.
func (s *sim) sendAway(i int, id string, d *graph.Definition) {
	if s.plan.away == 0 {
		return
	}
	rng := rand.New(rand.NewPCG(s.seed, 16+uint64(i)))
	if rng.IntN(3) == 0 {
		d.Failure = graph.CancelRunning
	}
	simTopics(rng, d)
	*d = *d.In(simTopic)
	if rng.IntN(3) == 0 {
		s.after(time.Duration(rng.Int64N(int64(s.plan.active))).Truncate(time.Millisecond), func() { s.cancelFlow(id) })
	}
}

// simTopics draws topics for what a workflow is made of.
func simTopics(rng *rand.Rand, d *graph.Definition) {
	draw := func() string { return []string{"", simTopic, simAway, simAway}[rng.IntN(4)] }
	for i := range d.Steps {
		st := &d.Steps[i]
		for _, t := range [...]**graph.Template{&st.Task, &st.Undo} {
			if *t != nil {
				there := **t
				there.Topic, *t = draw(), &there
			}
		}
		if st.Child != nil {
			st.Child.Topic = draw()
			simTopics(rng, &st.Child.Definition)
		}
	}
}

// simGraph draws a graph whose steps fail, wait and are children.
func simGraph(rng *rand.Rand, most int, children bool) *graph.Definition {
	d := &graph.Definition{Failure: graph.Failure(2 * rng.IntN(2)), Undo: rng.IntN(2) == 0}
	for i := range 1 + rng.IntN(most) {
		s := graph.Step{Name: fmt.Sprintf("s%d", i), IgnoreFailure: rng.IntN(3) == 0}
		for j := range i {
			if rng.IntN(3) == 0 {
				s.After = append(s.After, graph.After{Step: fmt.Sprintf("s%d", j), On: graph.On(max(0, rng.IntN(5)-2))})
			}
		}
		if len(s.After) > 1 && rng.IntN(3) == 0 {
			s.Need = 1
		}
		task := &graph.Template{Task: store.Task{Payload: []byte("step"), MaxRetries: rng.IntN(3)}}
		switch rng.IntN(6) {
		case 0:
			s.Wait = &graph.Wait{Delay: time.Duration(1+rng.IntN(20_000)) * time.Millisecond}
		case 1:
			n := rng.IntN(4)
			s.Copies, s.AtATime, s.Task = &n, rng.IntN(3), task
		case 2:
			if children {
				s.Child = &graph.Child{Definition: *simGraph(rng, 3, false)}
				break
			}
			fallthrough
		default:
			s.Task = task
			if rng.IntN(2) == 0 {
				s.Undo = task
			}
		}
		d.Steps = append(d.Steps, s)
	}
	return d
}

func (s *sim) submitWorkflow(id string, life uint64, d *graph.Definition) {
	topic, err := s.mem.GetTopic(simContext, simTopic)
	if err != nil {
		panic(err)
	}
	sh := workflow.Shards(&topic, id)[0]
	now := s.now(sh)
	// The owner makes the tasks, as nobody would tell it of others.
	c, err := workflow.Commit(nil, workflow.New(id, life, d, now), &workflow.Effects{Wake: now}, workflow.Context{Topic: &topic, Now: now})
	if err != nil {
		panic(err)
	}
	workflow.Nudge(&c, now)
	s.flows[id] = &simFlow{shard: sh, tasks: make(map[string]string), begun: make(map[string]string), timeout: d.Timeout, since: now}
	switch results := s.commit(sh, nil, []store.Commit{c}); {
	case len(results) == 0 || results[0].Status == store.OK:
	case results[0].Status == store.Closed: // the topic has other shards by now, as somebody who asks again is told
		delete(s.flows, id)
		s.after(time.Second, func() { s.submitWorkflow(id, life, d) })
	default:
		panic(fmt.Sprintf("%s is submitted: %+v", id, results[0]))
	}
}

// meddleWithFlows is meddleWith for workflows, of which fewer reads are made.
func (s *sim) meddleWithFlows(ids []store.CellID) {
	for _, id := range ids {
		flow := s.flows[id.Key()]
		if flow == nil || id.Kind() != store.CellWorkflow || time.Since(s.start) > s.plan.active || !s.chance(0.3) {
			continue
		}
		s.after(s.between(0, 5*time.Millisecond), func() { s.pauseFlow(id.Key(), !flow.paused) })
		if !flow.paused {
			s.after(s.between(10*time.Millisecond, 10*time.Second), func() { s.pauseFlow(id.Key(), false) })
		}
	}
}

// noDefinitions knows none.
type noDefinitions struct{}

func (noDefinitions) Known(uint64) *graph.Definition  { return nil }
func (noDefinitions) Learn(uint64, *graph.Definition) {}

// pauseFlow has a workflow be paused, or go on.
func (s *sim) pauseFlow(id string, paused bool) {
	event := workflow.Event(workflow.Pause{By: "sim"})
	if !paused {
		event = workflow.Resume{}
	}
	if s.changeFlow(id, event) {
		s.flows[id].paused = paused
	}
}

func (s *sim) cancelFlow(id string) {
	if s.flows[id] != nil && s.changeFlow(id, workflow.Cancel{}) {
		s.flows[id].paused, s.flows[id].cancelled = false, true
	}
}

// changeFlow makes a change of a user, which is answered at once. It reports false for a workflow that
// has ended.
func (s *sim) changeFlow(id string, event workflow.Event) bool {
	flow := s.flows[id]
	flow.shard, _ = s.home(workflow.CellID(id), flow.shard)
	cells, err := s.on(flow.shard).Cells(simContext, flow.shard, []store.CellID{workflow.CellID(id)})
	if err != nil || cells[0].Version == 0 {
		return false
	}
	loaded, err := access.Load(simContext, s.on(flow.shard), flow.shard, cells, noDefinitions{})
	if err != nil || loaded[0].Err != nil {
		panic(fmt.Sprint(err, loaded[0].Err)) // nobody changes it meanwhile
	}
	topic, err := s.mem.GetTopic(simContext, simTopic)
	if err != nil {
		panic(err)
	}
	now := s.now(flow.shard)
	w, out, refused := workflow.Apply(loaded[0].Workflow, []workflow.Event{event}, workflow.Env{Now: now, Topic: simTopic})
	if refused != nil || event == workflow.Event(workflow.Cancel{}) && len(out.Make) > 0 {
		return false // it has ended, or the first undo would be made, of which nobody would tell the owner
	}
	if event == workflow.Event(workflow.Resume{}) { // the owner makes the tasks
		serial := w.Serial
		w, out = loaded[0].Workflow, workflow.Effects{Wake: now, Orders: out.Orders}
		w.IsPaused, w.Serial = false, serial
	}
	c, err := workflow.Commit(loaded[0].Stored, w, &out, workflow.Context{Topic: &topic, Now: now})
	if err != nil {
		panic(err)
	}
	workflow.Nudge(&c, now)
	switch results := s.commit(flow.shard, nil, []store.Commit{c}); {
	case len(results) == 0 || results[0].Status == store.OK:
		return true
	case results[0].Status == store.Closed: // it is about to move
		return false
	default:
		panic(fmt.Sprintf("a change of %s: %+v", id, results[0]))
	}
}

// madeStep writes down the task of a step, and looks whether it may be there.
func (s *sim) madeStep(t *store.Task) {
	of := t.StepOf
	flow := s.flows[rootFlow(of.Workflow)]
	try := fmt.Sprintf("%s/%s#%d try %d undo %t", of.Workflow, of.Name, of.Copy, of.Try, of.Undo)
	if flow.tasks[try] != "" {
		s.broken("redone: %s has two tasks", try)
	}
	if home := s.flows[of.Workflow] != nil && of.Topic == ""; home && flow.paused { // others may be on their way
		s.broken("strayed: %s is made, and its workflow is paused", try)
	} else if home && flow.cancelled && !of.Undo {
		s.broken("zombie: %s is made, and its workflow was cancelled", try)
	}
	flow.tasks[try] = t.ID
	for _, in := range of.Inputs {
		before := flow.tasks[fmt.Sprintf("%s/%s#%d try %d undo false", of.Workflow, in.Step, in.Copy, 1)]
		if before == "" {
			continue // a wait, a child, or skipped
		}
		if state, live := s.isLive(before); live {
			s.broken("untimely: %s is made, and %s of what it waits for is %s", try, in.Step, state)
		}
	}
	s.client("workflows").ask(history.Event{Op: history.Enqueue, Task: t.ID, Due: int64(t.Due), Sum: string(t.Payload), Attempts: t.MaxRetries + 1})(
		history.Event{Due: int64(t.Due)}, nil)
}

// beganChildren writes down children that a commit begins, each of which is the only one that its parent
// knows by that.
func (s *sim) beganChildren(sh store.Shard, c *store.Commit) {
	for _, put := range c.Puts {
		if put.ID.Kind() != store.CellWorkflow || put.If != 0 || len(put.Body) == 0 || s.flows[put.ID.Key()] != nil {
			continue
		}
		var child cell.Workflow
		if err := child.UnmarshalVT(put.Body); err != nil || child.Parent == nil {
			s.broken("%s begins, and is nobody's child: %v", put.ID.Key(), err)
			continue
		}
		parent, flow := child.Parent, s.flows[rootFlow(put.ID.Key())]
		if was := flow.begun[parent.Task]; was != "" {
			s.broken("redone: %s begins in %v, and %s has", put.ID.Key(), sh, was)
		}
		if flow.cancelled && parent.Id == rootFlow(parent.Id) && parent.Topic == "" {
			s.broken("zombie: %s begins, and its workflow was cancelled", put.ID.Key())
		}
		flow.begun[parent.Task] = put.ID.Key()
	}
}

func rootFlow(id string) string {
	for i := range len(id) {
		if id[i] == '/' {
			return id[:i]
		}
	}
	return id
}

// stateOfFlow is that of a workflow; 0: it is not there.
func (s *sim) stateOfFlow(id string) workflow.State {
	flow := s.flows[id]
	flow.shard, _ = s.home(workflow.CellID(id), flow.shard)
	cells, err := s.on(flow.shard).Cells(simContext, flow.shard, []store.CellID{workflow.CellID(id)})
	if err != nil {
		panic(err) // memstore fails only when it is closed
	}
	if cells[0].Version == 0 {
		return 0
	}
	stored, err := workflow.Read(cells[0])
	if err != nil {
		s.broken("%s cannot be read: %v", id, err)
		return 0
	}
	status := stored.Status(simTopic, 0)
	return status.State
}

// openFlows are the workflows that have not ended, children among them.
func (s *sim) openFlows() (ids []string) {
	for _, sh := range s.shards() {
		cells, err := s.on(sh).Listed(simContext, sh, workflow.OpenList, store.Wake{}, 1000)
		if err != nil {
			panic(err) // memstore fails only when it is closed
		}
		for _, c := range cells {
			ids = append(ids, c.ID.Key())
		}
	}
	return ids
}

// flowsOver reports whether all workflows have ended.
func (s *sim) flowsOver() bool {
	for i := range s.plan.workflows {
		id := fmt.Sprintf("flow%d", i)
		if s.plan.reshards > 0 && s.flows[id] != nil && s.stateOfFlow(id) == 0 { // it is on its way to another shard
			return false
		}
	}
	return len(s.openFlows()) == 0
}

// auditFlows looks whether each workflow has ended.
func (s *sim) auditFlows() {
	for i := range s.plan.workflows {
		id := fmt.Sprintf("flow%d", i)
		if s.flows[id] == nil {
			s.broken("%s was not submitted", id)
		} else if state := s.stateOfFlow(id); state.Open() {
			s.broken("stranded: %s is %s", id, state)
		} else if state == 0 && s.plan.reshards > 0 {
			s.broken("stranded: %s is gone", id)
		}
	}
	for _, id := range s.openFlows() {
		if s.flows[id] == nil {
			s.broken("stranded: the child %s has not ended", id)
		}
	}
}

package cells

import (
	"context"

	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/actors/workflow"
	"github.com/ddq-io/ddq/actors/workflow/access"
	"github.com/ddq-io/ddq/store"
)

// flow is a workflow to look at: it woke, or parcels are for it.
type flow struct {
	header  store.Cell
	parcels []store.Parcel
	lost    []workflow.Event // ends that were not told
	avoid   map[string]bool  // ids of tasks and children that are others'
}

// flowStep is what becomes of one.
type flowStep struct {
	*flow
	stored *workflow.Stored
	before *workflow.Workflow
	after  *workflow.Workflow
	taken  int64 // the last parcel that it had taken
	out    workflow.Effects
	commit store.Commit
	told   bool // of what it makes
}

// takeFlows takes all workflows further, with all parcels that are there for each: that is
// one commit for each. Those for which that fails are looked at anew, some times.
func (l *look) takeFlows(ctx context.Context) error {
	for failed := 0; len(l.flows) > 0; {
		before := len(l.flows)
		steps, err := l.stepFlows(ctx)
		if err != nil {
			return err
		}
		if err := l.commitFlows(ctx, steps); err != nil {
			return err
		}
		if len(l.flows) < before {
			continue
		}
		if failed++; failed == commitRounds {
			l.out.Stuck = true
			return nil
		}
	}
	return nil
}

// stepFlows steps workflows, as many as make a commit of the usual size together. Those of
// which nothing changes are done with.
func (l *look) stepFlows(ctx context.Context) (steps []flowStep, err error) {
	flows, headers := l.thereAre(l.flows)
	loaded, err := flowMemory{l}.load(ctx, headers)
	if err != nil {
		return nil, err
	}
	steps = make([]flowStep, 0, len(flows))
	var left []*flow
	bytes := 0
	for i, f := range flows {
		if bytes > commitBytes {
			left = append(left, f)
			continue
		}
		step, err := l.stepFlow(ctx, f, &loaded[i])
		switch {
		case err != nil:
			return nil, err
		case len(step.commit.Puts) == 0:
			l.settled(f.header.ID)
		default:
			steps = append(steps, step)
			bytes += commitSize(&step.commit)
		}
	}
	l.flows = left
	return steps, nil
}

// thereAre leaves out workflows that are gone. What is told to them is dropped.
func (l *look) thereAre(all []*flow) (flows []*flow, headers []store.Cell) {
	for _, f := range all {
		if f.header.Version == 0 {
			l.Metrics.Dropped.Add(float64(len(f.parcels)))
			l.settled(f.header.ID)
			continue
		}
		flows, headers = append(flows, f), append(headers, f.header)
	}
	return flows, headers
}

// stepFlow steps one workflow over what there is for it; a commit without puts when nothing
// changes.
func (l *look) stepFlow(ctx context.Context, f *flow, at *access.Loaded) (flowStep, error) {
	step := flowStep{flow: f}
	if at.Err != nil {
		return l.unreadable(ctx, f, at.Err)
	}
	now := l.Now()
	step.stored, step.before, step.taken = at.Stored, at.Workflow, at.Workflow.Taken
	step.after, step.out = workflow.Take(at.Workflow, f.parcels, f.lost, workflow.Env{Now: now, Topic: l.ID.Topic, Retention: l.Topic.Workflows.Retention, Avoid: f.avoid})
	values, err := access.Values(ctx, l.Store, l.ID, step.after, workflow.Wants(step.after, &step.out))
	if err != nil {
		return step, err
	}
	c, err := workflow.Commit(at.Stored, step.after, &step.out, workflow.Context{Topic: l.Topic, Now: now, Values: values})
	if err != nil {
		return l.unreadable(ctx, f, err)
	}
	if !workflow.Changes(&c, f.header) {
		c = store.Commit{}
	} else {
		c.Take = l.Progress.Taken // these are with their cells: so a full store sees that it carries on
	}
	step.commit = c
	return step, nil
}

// unreadable puts a workflow aside that cannot be read, unless that is because it changed
// while it was.
func (l *look) unreadable(ctx context.Context, f *flow, why error) (flowStep, error) {
	again, err := l.Store.Cells(ctx, l.ID, []store.CellID{f.header.ID})
	if err != nil {
		return flowStep{}, err
	}
	if again[0].Version != f.header.Version {
		l.out.Again = true
		return flowStep{flow: f}, nil
	}
	l.Metrics.Corrupt.Inc()
	l.Log.Error("the cell of a workflow cannot be read", "topic", l.ID.Topic, "shard", l.ID.N, "cell", f.header.ID.Key(), "err", why)
	return flowStep{flow: f, commit: workflow.PutAside(f.header)}, nil
}

// commitFlows commits steps, and leaves the workflows for which that failed.
func (l *look) commitFlows(ctx context.Context, steps []flowStep) error {
	if len(steps) == 0 {
		return nil
	}
	commits := make([]store.Commit, len(steps))
	for i := range steps {
		commits[i] = steps[i].commit
		if len(steps) <= hurried && l.Made != nil && len(commits[i].Adds) > 0 {
			commits[i].Made = func(at store.Stamp) { l.Made(steps[i].made(at)) }
		}
	}
	stamp, results, err := l.commitAll(ctx, l.ID, &l.Fence, commits)
	if err != nil {
		return err
	}
	made := Runs{Seq: stamp.Seq}
	for i := range steps {
		s, r := &steps[i], &results[i]
		l.Metrics.CountCommit("workflow", r.Status)
		switch {
		case r.Status == store.OK:
			if !s.told {
				made.fresh(&s.commit)
			}
			l.acceptFlow(ctx, s)
			continue
		case r.Status == store.Stale && workflow.Landed(&s.commit, r):
			made.known(&s.commit)
			l.acceptFlow(ctx, s)
			continue
		case r.Status == store.Stale && r.Cell.ID == s.header.ID:
			s.header = r.Cell
		case r.Status == store.Stale:
			s.avoids(r.Cell.ID.Key())
		case r.Status == store.Conflict:
			s.avoids(r.ID)
		}
		l.flows = append(l.flows, s.flow)
	}
	l.out.Made = append(l.out.Made, made)
	return nil
}

// hurried is how many steps a look tells of one by one, before they are durable: with more of them the
// wait for that is shared.
const hurried = 8

// made is what is told of a step as soon as its tasks are there: they are held while what made them
// becomes durable, and the hold is durable only behind that.
func (s *flowStep) made(at store.Stamp) *Runs {
	made := Runs{Seq: at.Seq}
	made.fresh(&s.commit)
	s.told = true
	return &made
}

// avoids records that an id is another's.
func (f *flow) avoids(id string) {
	if f.avoid == nil {
		f.avoid = make(map[string]bool)
	}
	f.avoid[id] = true
}

// acceptFlow records a commit that was made.
func (l *look) acceptFlow(ctx context.Context, s *flowStep) {
	l.settled(s.header.ID)
	flowMemory{l}.remember(s)
	l.changed = true
	if s.commit.Take > 0 {
		l.forgotten()
	}
	l.first.notePuts(&s.commit)
	l.out.Cancelled = append(l.out.Cancelled, fleet.RunningHolds(ctx, l.Tasks, l.ID, s.commit.Cancels)...)
	l.out.Sent = s.commit.SentTo(l.out.Sent, l.ID.For(l.Topic.Life))
	l.countFlow(s)
}

// countFlow counts what became of a workflow and its steps.
func (l *look) countFlow(s *flowStep) {
	if s.after == nil {
		return // it was put aside
	}
	now := l.Now()
	for i := range s.parcels {
		if p := &s.parcels[i]; p.Number > s.taken && p.Ended != nil {
			l.Flows.CountTransition(now.Sub(p.At))
		}
	}
	for outcome, n := range workflow.EndedSince(s.before, s.after) {
		l.Flows.CountSteps(l.ID.Topic, outcome.String(), n)
		if outcome == workflow.UnitUndoFailed {
			l.Flows.UndoFailed.Add(float64(n))
			l.Log.Warn("undo failed", "topic", l.ID.Topic, "shard", l.ID.N, "workflow", s.after.ID)
		}
	}
	if !s.out.Ended {
		return
	}
	l.Flows.CountEnded(l.ID.Topic, s.after.Def.Name, s.after.Phase.String(), s.after.Ended.Time().Sub(s.after.Started.Time()))
	if s.after.Phase == workflow.Failed {
		l.Log.Warn("workflow failed", "topic", l.ID.Topic, "shard", l.ID.N, "workflow", s.after.ID, "cause", s.after.Cause.String(), "step", s.after.Failed)
	}
}

// splitFlows takes workflows from looks.
func splitFlows(looks []schedule.Look) (flows []*flow, others []schedule.Look) {
	for _, look := range looks {
		if look.Cell.ID.Kind() == store.CellWorkflow {
			flows = append(flows, &flow{header: look.Cell, parcels: look.Parcels})
		} else {
			others = append(others, look)
		}
	}
	return flows, others
}

package workflows

import (
	"context"
	"time"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/workflow"
	"github.com/ddq-io/ddq/store"
)

const (
	watchEvery = 100 * time.Millisecond // how often a workflow is looked at that changes
	watchIdle  = time.Second            // and one that has not for long
)

// Watch follows a workflow until that has ended. It is used by one goroutine.
type Watch struct {
	s         *Workflows
	topic, id string
	seen      int64 // the version that the watcher knows; 0: none
	known     map[unit]face
	pause     time.Duration // before the next look; 0: none was made
	over      bool
}

type unit struct {
	name string
	copy int
}

// face is what may change of a step.
type face struct {
	state        workflow.UnitState
	try, size    int
	why          workflow.Why
	task, errors string
	begun, ended store.Millis
}

func faceOf(u *workflow.StepStatus) face {
	return face{u.State, u.Try, u.ResultSize, u.Why, u.Task, u.Error, u.Begun, u.Ended}
}

// Watch begins to follow a workflow, of which the watcher knows a version; 0: none.
func (s *Workflows) Watch(topic, id string, version int64) *Watch {
	return &Watch{s: s, topic: topic, id: id, seen: version, known: make(map[unit]face)}
}

// Frame is a workflow as it stands, and its steps that changed since the frame before.
type Frame struct {
	Status workflow.Status
	Steps  []workflow.StepStatus
}

// Next returns what is there at once when it is called first, and later waits for the next change.
// There is no more when the end of the workflow was told.
func (w *Watch) Next(ctx context.Context) (f Frame, more bool, err error) {
	for !w.over {
		first := w.pause == 0
		if err := w.rest(ctx); err != nil {
			return f, false, err
		}
		status, _, err := w.s.Get(ctx, w.topic, w.id, false)
		if err != nil {
			return f, false, err
		}
		w.topic = status.Topic
		if first || status.Version != w.seen {
			f, err = w.look(ctx)
			return f, err == nil, err
		}
	}
	return f, false, nil
}

// rest lets time pass between looks, more of it the longer nothing has changed.
func (w *Watch) rest(ctx context.Context) *problem.Error {
	if w.pause == 0 {
		w.pause = watchEvery
		return nil
	}
	pause := time.NewTimer(w.pause)
	defer pause.Stop()
	select {
	case <-pause.C:
		w.pause = min(w.pause*3/2, watchIdle)
		return nil
	case <-ctx.Done():
		return problem.FromStore(ctx.Err())
	}
}

// look reads the workflow, and finds the steps that are not as they were.
func (w *Watch) look(ctx context.Context) (Frame, error) {
	status, steps, err := w.s.Get(ctx, w.topic, w.id, true)
	if err != nil {
		return Frame{}, err
	}
	f := Frame{Status: status}
	told := len(w.known) == 0 && status.Version == w.seen // before this stream
	for i := range steps {
		at, now := unit{steps[i].Name, steps[i].Copy}, faceOf(&steps[i])
		was, there := w.known[at]
		if w.known[at] = now; !told && (!there || was != now) {
			f.Steps = append(f.Steps, steps[i])
		}
	}
	w.seen, w.over, w.pause = status.Version, !status.State.Open(), watchEvery
	return f, nil
}

package worker

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// The most that one ack adds to a workflow.
const (
	MaxGrow      = 1000    // steps
	MaxGrowBytes = 1 << 20 // of all of it
)

// ErrNoStep is of a task that has no workflow to add to, or to wait in.
var ErrNoStep = errors.New("the task is no step of a workflow")

// Grow adds steps to the workflow that the task is a step of, with the ack, or not at all. They are
// called "parent.name", may wait for each other and for nothing else, and begin when the task is
// done; a step that waits for this one with Condition.Grown waits for them, too. It counts when the
// handler returns nil after it. What no workflow takes is said by the server then, and fails the
// attempt. It fails for a task that is no step, and for more than MaxGrow steps or MaxGrowBytes
// together. It is the handler's to call, before it returns, from one goroutine at a time.
func (t Task) Grow(steps ...client.Step) error {
	more, err := t.wireSteps(steps)
	if err != nil {
		return err
	}
	return t.GrowWire(&ddqv1.Growth{Steps: more})
}

// wireSteps are steps as they are sent, with payloads as the codec makes them.
func (t Task) wireSteps(steps []client.Step) (more []*ddqv1.Step, err error) {
	if t.ending != nil {
		if steps, err = client.EncodedSteps(t.ending.ctx, t.ending.codec, t.Topic, steps); err != nil {
			return nil, err
		}
	}
	more = make([]*ddqv1.Step, len(steps))
	for i := range steps {
		if more[i], err = steps[i].Wire(); err != nil {
			return nil, err
		}
	}
	return more, nil
}

// Skip leaves steps of the workflow out, with the ack, if they are not made yet. Otherwise it is
// as Grow.
func (t Task) Skip(steps ...string) error { return t.GrowWire(&ddqv1.Growth{Skip: steps}) }

// Again has the workflow begin anew with this input, under the same id, when it is done. The last
// call counts. Otherwise it is as Grow.
func (t Task) Again(input []byte) error {
	return t.GrowWire(&ddqv1.Growth{Again: append([]byte{}, input...)})
}

// GrowWire is Grow, Skip and Again in the form of the wire, such as of what a command wrote. That may
// suspend the step, as Call does.
func (t Task) GrowWire(more *ddqv1.Growth) error {
	switch {
	case t.Step == nil:
		return ErrNoStep
	case t.ending == nil:
		return nil
	}
	all := t.ending.grow
	if all == nil {
		all = &ddqv1.Growth{}
	}
	steps, bytes := len(all.Steps)+len(more.GetSteps()), int(t.ending.grown)+proto.Size(more)
	switch {
	case steps > MaxGrow:
		return fmt.Errorf("%d steps to be added to the workflow; at most %d are allowed", steps, MaxGrow)
	case bytes > MaxGrowBytes:
		return fmt.Errorf("what is to be added to the workflow has %d bytes; at most %d are allowed", bytes, MaxGrowBytes)
	}
	all.Steps, all.Skip = append(all.Steps, more.GetSteps()...), append(all.Skip, more.GetSkip()...)
	if more != nil && more.Again != nil {
		all.Again = more.Again
	}
	all.Suspend = all.Suspend || more.GetSuspend()
	t.ending.grow, t.ending.grown, t.ending.items = all, int32(bytes), int32(itemsOf(all))
	return nil
}

// itemsOf counts the items of a growth that may be many.
func itemsOf(g *ddqv1.Growth) (n int) {
	n = len(g.GetSteps()) + len(g.GetSkip())
	for _, s := range g.GetSteps() {
		n += len(s.GetAfter()) + len(s.GetTask().GetAttributes())
	}
	return n
}

// endingOf is the ending of a task that is suspended by a growth, in place of what else it asked for.
func endingOf(suspend *ddqv1.Growth, asked *ending) ending {
	return ending{grow: suspend, grown: int32(proto.Size(suspend)), items: int32(itemsOf(suspend)), trace: asked.trace, of: asked.of}
}

// Growth returns what Grow, Skip and Again were given, for tests of handlers; nil for nothing.
func (t Task) Growth() *ddqv1.Growth {
	if t.ending == nil {
		return nil
	}
	return t.ending.grow
}

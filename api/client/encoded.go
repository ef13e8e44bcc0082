package client

import (
	"cmp"
	"context"
	"slices"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// Encoded returns t with its payload as codec encodes it. A client and a worker that have a Codec do so
// themselves. A task that is encoded stays as it is, and so does any with a nil codec.
func (t Task) Encoded(ctx context.Context, codec Codec) (Task, error) {
	if codec == nil || t.encoded {
		return t, nil
	}
	if t.Topic == "" {
		return t, invalid("topic", "a payload is encoded for its topic, which is not given")
	}
	payload, fingerprint, err := codec.Encode(ctx, t.Topic, t.Payload)
	if err != nil {
		return t, unencoded(err)
	}
	t.Payload, t.fingerprint, t.encoded = payload, fingerprint, true
	return t, nil
}

// Encoded returns s with the payload of its task, or those of its workflow, as codec encodes them. A
// schedule that was read is encoded as far as it was put so. It is another one each time: put it once,
// not at every start.
func (s Schedule) Encoded(ctx context.Context, codec Codec) (Schedule, error) {
	if s.Workflow != nil {
		flow := *s.Workflow
		flow.Topic = cmp.Or(flow.Topic, s.Topic)
		flow, err := flow.Encoded(ctx, codec)
		flow.Topic = s.Workflow.Topic
		s.Workflow = &flow
		return s, err
	}
	err := encodeTemplate(ctx, codec, &s.Task, s.Topic)
	return s, err
}

// Encoded returns w with the payloads of its steps as codec encodes them. It is another workflow each
// time: a Submit that is to be repeated has the one that was encoded first.
func (w Workflow) Encoded(ctx context.Context, codec Codec) (Workflow, error) {
	var err error
	w.Steps, err = EncodedSteps(ctx, codec, w.Topic, w.Steps)
	return w, err
}

// EncodedSteps returns the steps of a workflow of a topic with their payloads as codec encodes them.
func EncodedSteps(ctx context.Context, codec Codec, topic string, steps []Step) ([]Step, error) {
	if codec == nil {
		return steps, nil
	}
	steps = slices.Clone(steps)
	for i := range steps {
		if err := steps[i].encode(ctx, codec, topic); err != nil {
			return nil, err
		}
	}
	return steps, nil
}

func (s *Step) encode(ctx context.Context, codec Codec, topic string) error {
	if s.Undo != nil {
		undo := *s.Undo
		s.Undo = &undo
		if err := encodeTemplate(ctx, codec, s.Undo, topic); err != nil {
			return err
		}
	}
	switch {
	case s.Child != nil:
		child := *s.Child
		s.Child = &child
		var err error
		child.Steps, err = EncodedSteps(ctx, codec, cmp.Or(child.Topic, topic), child.Steps)
		return err
	case s.waits():
		return nil
	}
	return encodeTemplate(ctx, codec, &s.Task, topic)
}

// encodeTemplate encodes a task that leaves its topic to what it is part of.
func encodeTemplate(ctx context.Context, codec Codec, t *Task, topic string) error {
	own := t.Topic
	t.Topic = cmp.Or(own, topic)
	encoded, err := t.Encoded(ctx, codec)
	*t = encoded
	t.Topic = own
	if codec != nil {
		t.fingerprint = nil // what is made of templates is never compared
	}
	return err
}

func unencoded(err error) *Error {
	e := invalid("payload", "payload cannot be encoded: "+err.Error())
	e.cause = err
	return e
}

// encode is Encoded with the client's codec; without one it is the task itself.
func (c *Tasks) encode(ctx context.Context, t *Task) (*Task, error) {
	if c.cfg.Codec == nil {
		return t, nil
	}
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	encoded, err := t.Encoded(ctx, c.cfg.Codec)
	return &encoded, err
}

// encodeEdit encodes the payload of a change.
func (c *Tasks) encodeEdit(ctx context.Context, topic string, to *Change) error {
	if c.cfg.Codec == nil || to.Payload == nil {
		return nil
	}
	t, err := c.encode(ctx, &Task{Topic: topic, Payload: to.Payload})
	to.Payload = t.Payload
	return err
}

// PayloadOf returns the payload of a task that was read, decoded where the client has a Codec.
func (c *Tasks) PayloadOf(ctx context.Context, s Snapshot) ([]byte, error) {
	if c.cfg.Codec == nil {
		return s.Payload, nil
	}
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	return c.cfg.Codec.Decode(ctx, s.Topic, s.Payload)
}

// checkTemplate refuses a template that a client with a Codec would send as it is by mistake.
func (c *caller) checkTemplate(field string, t *Task) *Error {
	if c.cfg.Codec == nil || t.encoded {
		return nil
	}
	return invalid(field, "the client has a codec, which does not encode what schedules and workflows are made of: use Schedule.Encoded or Workflow.Encoded")
}

// scheduleWire is a schedule as it is sent.
func (c *caller) scheduleWire(s *Schedule) (*ddqv1.Schedule, *Error) {
	e := c.checkTemplate("task.payload", &s.Task)
	if s.Workflow != nil {
		e = c.checkSteps(s.Workflow.Steps)
	}
	if e != nil {
		return nil, e
	}
	return s.wire()
}

// checkSteps is checkTemplate for the tasks of steps.
func (c *caller) checkSteps(steps []Step) *Error {
	if c.cfg.Codec == nil {
		return nil
	}
	for i := range steps {
		if e := c.checkStep(&steps[i]); e != nil {
			return e
		}
	}
	return nil
}

func (c *caller) checkStep(s *Step) *Error {
	if s.Undo != nil {
		if e := c.checkTemplate("steps."+s.Name+".undo.payload", s.Undo); e != nil {
			return e
		}
	}
	switch {
	case s.Child != nil:
		return c.checkSteps(s.Child.Steps)
	case s.waits():
		return nil
	}
	return c.checkTemplate("steps."+s.Name+".task.payload", &s.Task)
}

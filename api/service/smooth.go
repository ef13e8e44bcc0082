package service

import (
	"math"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/store"
)

// smooth moves the due time of a task to where it is needed least.
func smooth(node *actors.Node, t *NewTask, topic *store.Topic, now store.Millis) *problem.Error {
	if err := t.checkSlack(t.Task.Due, topic, now); err != nil {
		return err
	}
	latest := t.latest(t.Task.Due)
	earliest := min(max(t.Task.Due, now), latest)
	if ref, open := node.Topics().Opened(topic.Name); open {
		t.Task.Due = intakeOf(ref).Smooth.Place(earliest, latest, node.Random())
	}
	return nil
}

// checkSlack checks how much later than its due time a task may run.
func (t *NewTask) checkSlack(earliest store.Millis, topic *store.Topic, now store.Millis) *problem.Error {
	switch {
	case t.Slack < 0:
		return problem.BadField("slack", "BAD_DELAY", "slack must not be negative")
	case t.Latest != 0 && t.Latest < earliest:
		return problem.BadField("latest_time", "BAD_TIME", "latest_time must not be before the due time")
	case t.latest(earliest)-now > store.Millis(topic.MaxDelay.Milliseconds()):
		field := "slack"
		if t.Latest != 0 {
			field = "latest_time"
		}
		return &problem.Error{Kind: problem.OutOfRange, Reason: "DELAY_TOO_LONG", Field: field,
			Message: field + " is farther ahead than the topic's max delay of " + topic.MaxDelay.String()}
	}
	return nil
}

// latest is when the task may run at the latest.
func (t *NewTask) latest(earliest store.Millis) store.Millis {
	if t.Latest != 0 {
		return t.Latest
	}
	return earliest.Add(min(t.Slack, math.MaxInt64-time.Millisecond))
}

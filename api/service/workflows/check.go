package workflows

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/workflow/graph"
	"github.com/ddq-io/ddq/api/service/text"
	"github.com/ddq-io/ddq/store"
)

const (
	maxBy     = 128
	maxNote   = 1024
	maxSignal = 128 // bytes of the id of a signal
)

// Submit asks for a workflow.
type Submit struct {
	Topic string
	ID    string // empty: a UUIDv7
	graph.Definition
}

// check refuses a workflow that can never be.
func (n *Submit) check(tasks Tasks) *problem.Error {
	if err := actors.CheckTopicName("topic", n.Topic); err != nil {
		return err
	}
	if n.ID != "" {
		if err := graph.CheckID(n.ID); err != nil {
			return errorOf(err)
		}
	}
	if err := n.Definition.Check(); err != nil {
		return errorOf(err)
	}
	return checkTemplates(tasks, "", &n.Definition, n.Topic)
}

// contents checks what a task brings, as an enqueue does.
type contents interface {
	Check(t *store.Task, expireAfter time.Duration) *problem.Error
}

func checkTemplates(tasks contents, at string, d *graph.Definition, home string) *problem.Error {
	return eachTemplate(at, d, home, func(field, topic string, t *graph.Template) *problem.Error {
		return checkTemplate(tasks, field, t)
	})
}

// CheckRun refuses a workflow that a schedule can never start, the ids of which have so many bytes.
// at is before the names of its fields.
func CheckRun(tasks contents, at string, d *graph.Definition, home string, id int) *problem.Error {
	if err := d.Check(); err != nil {
		return within(at, errorOf(err))
	}
	if err := d.CheckSize(home, strings.Repeat("x", id)); err != nil {
		return within(at, errorOf(err))
	}
	return checkTemplates(tasks, at, d, home)
}

// Opener returns a topic by name; nil for one that is not there, and is not to be created.
type Opener func(name string) (*store.Topic, *problem.Error)

// FitsRun refuses a workflow of a topic whose topics take not all of its tasks. at is before the names
// of its fields.
func FitsRun(at string, d *graph.Definition, home *store.Topic, open Opener) *problem.Error {
	opened := map[string]*store.Topic{home.Name: home}
	return eachTemplate(at, d, home.Name, func(field, topic string, t *graph.Template) *problem.Error {
		if opened[topic] == nil {
			to, err := open(topic)
			if err != nil {
				return err
			}
			if to == nil {
				return nil // it refuses nothing yet
			}
			opened[topic] = to
		}
		return fits(field, opened[topic], t)
	})
}

// eachTemplate calls f for what every task of a workflow is made of, with the field that it is in
// and the topic that the tasks go to.
func eachTemplate(at string, d *graph.Definition, home string, f func(field, topic string, t *graph.Template) *problem.Error) *problem.Error {
	for i := range d.Steps {
		if err := eachOfStep(fmt.Sprintf("%ssteps[%d].", at, i), &d.Steps[i], home, f); err != nil {
			return err
		}
	}
	return nil
}

func eachOfStep(at string, s *graph.Step, home string, f func(field, topic string, t *graph.Template) *problem.Error) *problem.Error {
	for _, part := range [...]struct {
		field string
		*graph.Template
	}{{at + "task.", s.Task}, {at + "undo.", s.Undo}} {
		if part.Template == nil {
			continue
		}
		if err := f(part.field, cmp.Or(part.Topic, home), part.Template); err != nil {
			return err
		}
	}
	if s.Child == nil {
		return nil
	}
	if s.Child.Topic != "" {
		if err := actors.CheckTopicName(at+"child.topic", s.Child.Topic); err != nil {
			return err
		}
	}
	return eachTemplate(at+"child.", &s.Child.Definition, cmp.Or(s.Child.Topic, home), f)
}

// checkTemplate refuses what no topic takes.
func checkTemplate(tasks contents, field string, t *graph.Template) *problem.Error {
	if t.Topic != "" {
		if err := actors.CheckTopicName(field+"topic", t.Topic); err != nil {
			return err
		}
	}
	if t.Delay < 0 || t.Delay > graph.MaxTime {
		return problem.BadField(field+"delay", "BAD_DELAY", "%sdelay must be 0 to %v", field, graph.MaxTime)
	}
	return within(field, tasks.Check(&t.Task, t.ExpireAfter))
}

// within puts the field of an error behind that of what it is in.
func within(field string, err *problem.Error) *problem.Error {
	if err == nil {
		return nil
	}
	inner := *err
	inner.Field = field + err.Field
	return &inner
}

// fits refuses a template that the topic takes no task of.
func fits(field string, topic *store.Topic, t *graph.Template) *problem.Error {
	if size := len(t.Task.Payload); size > topic.MaxPayload {
		return problem.BadField(field+"payload", "PAYLOAD_TOO_LARGE", "payload has %d bytes; at most %d are allowed", size, topic.MaxPayload)
	}
	if t.Delay > topic.MaxDelay {
		return &problem.Error{Kind: problem.OutOfRange, Reason: "DELAY_TOO_LONG", Field: field + "delay",
			Message: "due farther ahead than the topic's max delay of " + topic.MaxDelay.String()}
	}
	return nil
}

// checkText allows printable text.
func checkText(field, note string, most int) *problem.Error {
	return text.CheckNote(field, note, most, "BAD_NAME")
}

// checkID allows ids of workflows and of children.
func checkID(id string) *problem.Error { return text.CheckName("id", id, graph.MaxChildID) }

package graph

import (
	"slices"

	"github.com/ddq-io/ddq/actors/workflow/refusal"
	"github.com/ddq-io/ddq/store"
)

// CheckSize refuses a definition for a topic that no cell has room for.
func (d *Definition) CheckSize(topic, id string) *refusal.Error {
	body, err := d.Encode()
	switch {
	case err != nil:
		return refusal.New(refusal.BadWorkflow, "", "the workflow cannot be stored: %v", err)
	case len(body) > MaxDefinition:
		return refusal.New(refusal.WorkflowTooLarge, "steps", "the workflow has %d bytes; at most %d are allowed", len(body), MaxDefinition)
	case d.longestID(len(id)) > MaxChildID:
		return refusal.New(refusal.WorkflowTooLarge, "steps", "the names of children in children are longer than %d bytes together", MaxChildID)
	case !AddressesFit(d.Steps, len(topic), len(id), 0):
		return refusal.New(refusal.WorkflowTooLarge, "id", "with steps in other topics, the topic and the id have at most %d bytes together, and the names of children", store.MaxCellKey-1)
	}
	return nil
}

// longestID is how long the id of a child in it may be.
func (d *Definition) longestID(id int) int { return max(id, d.longestChild(id)) }

func (d *Definition) longestChild(id int) (longest int) {
	for i := range d.Steps {
		if s := &d.Steps[i]; s.Child != nil {
			longest = max(longest, s.Child.longestID(id+1+len(s.Name)+serialDigits))
		}
	}
	return longest
}

// ChildrenFit reports whether the ids of the children among steps are short enough, and the
// children not too deep in each other, below what has an id of that many bytes and is that deep.
func ChildrenFit(steps []Step, id, depth int) bool {
	for i := range steps {
		s := &steps[i]
		if s.Child == nil {
			continue
		}
		if s.Child.longestID(id+1+len(s.Name)+serialDigits) > MaxChildID || depth+s.Child.depth() > MaxDepth {
			return false
		}
	}
	return true
}

// AddressesFit reports whether the tasks of steps in other topics can name their workflow: in a
// topic and with an id of so many bytes, and so many between the latter and the name of a child.
func AddressesFit(steps []Step, topic, id, between int) bool {
	for i := range steps {
		s := &steps[i]
		if s.reachesOut() && topic+1+id > store.MaxCellKey {
			return false
		}
		if s.Child == nil {
			continue
		}
		home := topic
		if s.Child.Topic != "" {
			home = len(s.Child.Topic)
		}
		if !AddressesFit(s.Child.Steps, home, id+between+1+len(s.Name)+serialDigits, 0) {
			return false
		}
	}
	return true
}

// serialDigits is how much of the id of a child tells it from others of its name, with a colon.
const serialDigits = 8

// Same reports whether two authors decided the same.
func (d *Definition) Same(other *Definition) bool {
	a, err := d.Encode()
	if err != nil {
		return false
	}
	b, err := other.Encode()
	return err == nil && string(a) == string(b)
}

// In is the definition for a topic: what names that topic names none.
func (d *Definition) In(topic string) *Definition {
	c := *d
	c.Steps = slices.Clone(d.Steps)
	for i := range c.Steps {
		s := &c.Steps[i]
		s.Task, s.Undo = s.Task.in(topic), s.Undo.in(topic)
		if s.Child != nil {
			child := Child{Topic: s.Child.Topic}
			home := topic
			if child.Topic == topic {
				child.Topic = ""
			} else if child.Topic != "" {
				home = child.Topic
			}
			child.Definition = *s.Child.In(home)
			s.Child = &child
		}
	}
	return &c
}

func (t *Template) in(topic string) *Template {
	if t == nil || t.Topic != topic {
		return t
	}
	c := *t
	c.Topic = ""
	return &c
}

// To are steps for a topic: what names none names that one.
func To(steps []Step, topic string) []Step {
	steps = slices.Clone(steps)
	for i := range steps {
		s := &steps[i]
		s.Task, s.Undo = s.Task.to(topic), s.Undo.to(topic)
		if s.Child != nil && s.Child.Topic == "" {
			s.Child = &Child{Topic: topic, Definition: s.Child.Definition}
		}
	}
	return steps
}

func (t *Template) to(topic string) *Template {
	if t == nil || t.Topic != "" {
		return t
	}
	c := *t
	c.Topic = topic
	return &c
}

// reachesOut reports whether a task of a step is in another topic.
func (s *Step) reachesOut() bool {
	return s.Task != nil && s.Task.Topic != "" || s.Undo != nil && s.Undo.Topic != ""
}

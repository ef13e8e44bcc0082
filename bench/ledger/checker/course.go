package checker

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ddq-io/ddq/bench/ledger"
)

// course is all that is known about one workflow.
type course struct {
	topic, id string
	events    []*ledger.Event
	submits   []*op
	signals   []*op
	cancels   []*op
	turns     []*op // pauses and resumes
	redos     []*op // retries and skips
	tasks     []*story
	found     *ledger.Event
}

// course returns the one of a workflow. Those of its children have ids of their own.
func (h *History) course(topic, id string) *course {
	key := topic + "/" + id
	c := h.workflows[key]
	if c == nil {
		c = &course{topic: topic, id: id}
		h.workflows[key] = c
	}
	return c
}

// add takes an event about the workflow itself.
func (c *course) add(e *ledger.Event, calls map[uint64]*op) {
	c.events = append(c.events, e)
	switch {
	case e.Kind == ledger.Found:
		c.found = e
	case e.Op == ledger.Submit:
		record(&c.submits, e, calls)
	case e.Op == ledger.Signal:
		record(&c.signals, e, calls)
	case e.Op == ledger.CancelWorkflow:
		record(&c.cancels, e, calls)
	case e.Op == ledger.PauseWorkflow || e.Op == ledger.ResumeWorkflow:
		record(&c.turns, e, calls)
	case e.Op == ledger.RetryWorkflow || e.Op == ledger.SkipStep:
		record(&c.redos, e, calls)
	}
}

// calls are all about the workflow.
func (c *course) calls() []*op {
	return slices.Concat(c.submits, c.signals, c.cancels, c.turns, c.redos)
}

// sort puts everything in order.
func (c *course) sort() {
	slices.SortStableFunc(c.events, func(a, b *ledger.Event) int { return cmp.Compare(a.Mono, b.Mono) })
	slices.SortFunc(c.tasks, func(a, b *story) int { return cmp.Or(cmp.Compare(a.begin(), b.begin()), cmp.Compare(a.id, b.id)) })
}

// courseOf is the course that made a task: of a child in another topic, the one of its step where its root is.
func (h *History) courseOf(m *ledger.Making, topic string) *course {
	topic = cmp.Or(m.Topic, topic)
	root, step, isChild := strings.Cut(m.Workflow, "/")
	for _, c := range h.workflows {
		if isChild && c.id == root && c.topic != topic && len(c.submits) > 0 {
			name, _, _ := strings.Cut(step, ":")
			return h.course(c.topic, root+"/"+name)
		}
	}
	return h.course(topic, m.Workflow)
}

// graph is the graph of a workflow, nil when nobody submitted it. That of a child is in its
// parent's.
func (h *History) graph(topic, id string) *ledger.Workflow {
	parts := strings.Split(id, "/")
	root := h.workflows[topic+"/"+parts[0]]
	if root == nil || len(root.submits) == 0 {
		return nil
	}
	graph := root.submits[0].Workflow
	for _, name := range parts[1:] {
		step := graph.Step(name)
		if step == nil || step.Child == nil {
			return nil
		}
		graph = step.Child
	}
	return graph
}

// root is the course of the workflow that was submitted, of which this one is a part.
func (h *History) root(c *course) *course {
	id, _, _ := strings.Cut(c.id, "/")
	return h.course(c.topic, id)
}

// adoptStep gives a task to the workflow that made it: after that was first submitted, and
// before the task was first seen. The workflow may end it, too, where anything is cancelled.
func (h *History) adoptStep(s *story) {
	c := h.courseOf(s.making, s.topic)
	c.tasks = append(c.tasks, s)
	root, since := h.root(c), h.from
	if len(root.submits) > 0 {
		since = root.submits[0].Mono
	}
	s.enqueuedBy(&ledger.Event{Kind: ledger.Call, Op: ledger.Enqueue, Topic: s.topic, Task: s.id, Mono: since})
	if graph := h.graph(c.topic, c.id); len(root.cancels) > 0 || graph != nil && graph.Cancels {
		ask := &ledger.Event{Kind: ledger.Call, Op: ledger.Cancel, Topic: s.topic, Task: s.id, Mono: since, Final: true}
		s.cancels = append(s.cancels, &op{Event: ask, result: ledger.Unknown, to: never})
	}
}

// enqueuedBy gives a task an enqueue that nobody wrote down, because ddq made the task: before
// it was first seen.
func (s *story) enqueuedBy(made *ledger.Event) {
	first, due := s.events[0], int64(0)
	for _, e := range s.events {
		if e.Mono < first.Mono {
			first = e
		}
	}
	if first.Kind == ledger.Delivered && first.Attempt == 1 {
		due = first.Due
	}
	made.Due, made.Sum = due, first.Sum
	answer := &ledger.Event{Kind: ledger.Answer, Op: ledger.Enqueue, Topic: s.topic, Task: s.id, Mono: first.Mono, Due: due, Result: ledger.OK}
	s.enqueues = append(s.enqueues, &op{Event: made, answer: answer, result: ledger.OK, to: first.Mono})
}

// adoptNext gives the tasks that acks enqueued those acks, by what both have: the sum of the
// payload, which no other task has.
func (h *History) adoptNext() {
	for _, s := range h.stories {
		for _, o := range s.settles {
			for _, sum := range o.Next {
				h.acks[sum] = append(h.acks[sum], o)
			}
		}
	}
	for _, s := range h.stories {
		if s.making != nil || s.cause == "" {
			continue
		}
		sum := s.events[0].Sum
		for _, e := range s.events {
			if e.Sum != "" {
				sum = e.Sum
			}
		}
		h.next[sum] = append(h.next[sum], s)
		if i := slices.IndexFunc(h.acks[sum], (*op).may); i >= 0 {
			s.enqueuedBy(&ledger.Event{Kind: ledger.Call, Op: ledger.Enqueue, Topic: s.topic, Task: s.id, Mono: h.acks[sum][i].Mono})
		}
	}
}

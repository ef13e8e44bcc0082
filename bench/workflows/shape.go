package workflows

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/ddq-io/ddq/api/client"
	sdk "github.com/ddq-io/ddq/api/worker"
)

// The shapes of workflows.
const (
	shapeChain  = "chain"
	shapeSaga   = "saga"
	shapeHop    = "hop"
	shapeFanout = "fanout"
	shapeGrow   = "grow"
	shapeWait   = "wait"
	shapeTopics = "topics"
)

// What is no workflow.
const (
	shapeFollow  = "follow"
	shapeJournal = "journal"
)

var shapes = []string{shapeChain, shapeSaga, shapeHop, shapeTopics, shapeFanout, shapeGrow, shapeWait, shapeFollow, shapeJournal}

// flowShape is what workflows of one kind are made of.
type flowShape struct {
	name      string
	away      string          // another topic, in which steps are; empty: none
	workflow  client.Workflow // without ID; Topic is the name
	workflows int
	open      int // at a time
	rate      int // handlers a second, of all workflows; 0: as many as it goes
	tasks     int // of each, undos counted
	kill      bool
	against   bool // as many plain tasks

	// needs is the handler that has to have ended n times before that of a step begins; n is 0 for
	// none. An undo is called as its step, and " undo".
	needs func(handler string) (before string, n int)
	// handle is what the handler of a step does.
	handle func(t *sdk.Task) error
}

// nothing is what a handler does.
func nothing(*sdk.Task) error { return nil }

// shape is the one of a name in shapes.
func (o *options) shape(name string) flowShape {
	s := flowShape{name: name, workflows: o.Rounds, open: 1, handle: nothing}
	switch name {
	case shapeChain, shapeHop:
		s.chain(o.Steps)
	case shapeTopics:
		s.chain(o.Steps)
		s.away = name + "-away"
		for i := 1; i < len(s.workflow.Steps); i += 2 {
			s.workflow.Steps[i].Task.Topic = s.away
		}
	case shapeSaga:
		s.saga()
	case shapeFanout:
		s.fanout(o.Copies)
	case shapeGrow:
		s.grow(o.Copies)
	case shapeWait:
		s.wait()
	}
	switch name {
	case shapeChain, shapeSaga:
		s.workflows, s.open, s.rate, s.kill, s.against = o.Workflows, o.Open, o.Rate, o.Kill, name == shapeChain
	case shapeWait:
		s.workflows = o.Workflows
	}
	s.workflow.Topic, s.workflow.Name = name, name
	return s
}

func (s *flowShape) chain(steps int) {
	for i := range steps {
		step := client.Step{Name: "s" + strconv.Itoa(i)}
		if i > 0 {
			step.After = client.After("s" + strconv.Itoa(i-1))
		}
		s.workflow.Steps = append(s.workflow.Steps, step)
	}
	s.tasks = steps
	s.needs = func(handler string) (string, int) {
		i, err := strconv.Atoi(handler[1:])
		if err != nil || i == 0 {
			return "", 0
		}
		return "s" + strconv.Itoa(i-1), 1
	}
}

// errRefused is how the last step of a saga ends.
var errRefused = errors.New("refused")

func (s *flowShape) saga() {
	s.workflow.Undo = true
	s.workflow.Steps = []client.Step{
		{Name: "charge", Undo: &client.Task{}},
		{Name: "reserve", Undo: &client.Task{}, After: client.After("charge")},
		{Name: "ship", After: client.After("reserve")},
	}
	s.tasks = 5
	before := map[string]string{"reserve": "charge", "ship": "reserve", "reserve undo": "ship", "charge undo": "reserve undo"}
	s.needs = func(handler string) (string, int) { return before[handler], min(1, len(before[handler])) }
	s.handle = func(t *sdk.Task) error {
		if t.Step.Name == "ship" {
			return sdk.Permanent(errRefused)
		}
		return nil
	}
}

func (s *flowShape) fanout(copies int) {
	s.workflow.Steps = []client.Step{{Name: "part", Copies: &copies}, {Name: "join", After: client.After("part")}}
	s.tasks = copies + 1
	s.needs = func(handler string) (string, int) {
		if handler == "join" {
			return "part", copies
		}
		return "", 0
	}
}

func (s *flowShape) grow(steps int) {
	s.workflow.Steps = []client.Step{{Name: "root"}}
	s.tasks = steps + 1
	more := make([]client.Step, steps)
	for i := range more {
		more[i].Name = fmt.Sprintf("part%d", i)
	}
	s.needs = func(handler string) (string, int) {
		if strings.HasPrefix(handler, "root.") {
			return "root", 1
		}
		return "", 0
	}
	s.handle = func(t *sdk.Task) error {
		if t.Step.Name == "root" {
			return t.Grow(more...)
		}
		return nil
	}
}

// wait is of workflows whose first step waits for a signal.
func (s *flowShape) wait() {
	s.workflow.Steps = []client.Step{
		{Name: "approved", Wait: client.Wait{Signal: "go"}},
		{Name: "charge", After: client.After("approved")},
		{Name: "ship", After: client.After("charge")},
	}
	s.tasks = 2
	s.needs = func(handler string) (string, int) {
		if handler == "ship" {
			return "charge", 1
		}
		return "", 0
	}
}

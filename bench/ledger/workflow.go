package ledger

// Workflow is the graph that a workflow is submitted with, as far as the rules look at it.
type Workflow struct {
	Steps []Step `json:"steps"`
	Undo  bool   `json:"undo,omitempty"`
	// Cancels says that ddq itself may cancel tasks of it: when one fails, or a wait is over.
	Cancels bool `json:"cancels,omitempty"`
}

// Step is one of a workflow, or one that an ack adds.
type Step struct {
	Name    string      `json:"name"`
	Topic   string      `json:"topic,omitempty"` // of its task or child; empty: that of the workflow
	After   []Condition `json:"after,omitempty"`
	Need    int         `json:"need,omitempty"` // 0: all
	Copies  *int        `json:"copies,omitempty"`
	Undo    bool        `json:"undo,omitempty"`
	Signal  string      `json:"signal,omitempty"` // that it waits for
	DelayMS int64       `json:"delay_ms,omitempty"`
	// OtherwiseMS is after what time the wait for a signal is over without one.
	OtherwiseMS int64     `json:"otherwise_ms,omitempty"`
	Child       *Workflow `json:"child,omitempty"`
}

// Condition is what a step waits for.
type Condition struct {
	Step  string `json:"step"`
	On    string `json:"on,omitempty"` // empty: done
	Grown bool   `json:"grown,omitempty"`
}

// What a step waits for of another one, beside that it is done.
const (
	OnFailed = "failed"
	OnEnded  = "ended"
)

// Making is which making of which step a task is.
type Making struct {
	Workflow string  `json:"workflow"`
	Topic    string  `json:"topic,omitempty"` // of the workflow; empty: that of the task
	Step     string  `json:"step"`
	Copy     int     `json:"copy,omitempty"`
	Try      int     `json:"try"`
	Starts   int     `json:"starts"`
	Undo     bool    `json:"undo,omitempty"`
	Inputs   []Input `json:"inputs,omitempty"` // in deliveries
}

// Input is what a task was told of a step before it.
type Input struct {
	Step  string `json:"step"`
	Copy  int    `json:"copy,omitempty"`
	State string `json:"state"`
	Sum   string `json:"sum"` // of its result
}

// StepStanding is how a step stands at the end.
type StepStanding struct {
	Step  string `json:"step"`
	Copy  int    `json:"copy,omitempty"`
	State string `json:"state"`
	Try   int    `json:"try,omitempty"`
}

// Step returns a step of the graph by its name.
func (w *Workflow) Step(name string) *Step {
	for i := range w.Steps {
		if w.Steps[i].Name == name {
			return &w.Steps[i]
		}
	}
	return nil
}

// IsTask reports whether the step is neither a wait nor a workflow of its own.
func (s *Step) IsTask() bool { return s.Signal == "" && s.DelayMS == 0 && s.Child == nil }

// Numbers are those of its copies: 0 alone for a step without.
func (s *Step) Numbers() []int {
	if s.Copies == nil {
		return []int{0}
	}
	all := make([]int, *s.Copies)
	for i := range all {
		all[i] = i + 1
	}
	return all
}

// FirstNumber is the number of a first copy, which there is if there is any.
func (s *Step) FirstNumber() int {
	if all := s.Numbers(); len(all) > 0 {
		return all[0]
	}
	return 0
}

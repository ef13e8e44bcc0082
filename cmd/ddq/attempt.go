package main

import (
	"cmp"
	"fmt"
	"time"

	"github.com/ddq-io/ddq/api/client"
)

// attemptView is one delivery of a task.
type attemptView struct {
	Number    int    `json:"number"`
	Outcome   string `json:"outcome"`
	Worker    string `json:"worker,omitempty"`
	Node      string `json:"node,omitempty"`
	StartedAt string `json:"started_at,omitempty"`
	EndedAt   string `json:"ended_at,omitempty"`
	Error     string `json:"error,omitempty"`

	took time.Duration // 0: it runs, or when it began is not known
}

func viewAttempts(attempts []client.Attempt) []attemptView {
	views := make([]attemptView, len(attempts))
	for i, a := range attempts {
		views[i] = attemptView{
			Number:    a.Number,
			Outcome:   a.Outcome.String(),
			Worker:    a.Worker,
			Node:      a.Node,
			StartedAt: clock(a.Started),
			EndedAt:   clock(a.Ended),
			Error:     a.Error,
		}
		if !a.Started.IsZero() && !a.Ended.IsZero() {
			views[i].took = a.Ended.Sub(a.Started)
		}
	}
	return views
}

// text is an attempt for people, on one line.
func (a attemptView) text() string {
	text := a.Outcome
	if a.EndedAt != "" {
		text += " " + a.EndedAt
	}
	if a.took > 0 {
		text += fmt.Sprintf(" after %v", a.took)
	}
	text += fmt.Sprintf(" by %s on %s", printable(cmp.Or(a.Worker, "?")), printable(cmp.Or(a.Node, "?")))
	if a.Error != "" {
		text += ": " + printable(a.Error)
	}
	return text
}

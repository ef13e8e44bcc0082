package workflows

import (
	"fmt"

	"github.com/ddq-io/ddq/bench/lateness"
	"github.com/ddq-io/ddq/bench/result"
)

// flowLine is the result of one shape.
type flowLine struct {
	Shape     string `json:"shape"`
	Store     string `json:"store"`
	Workflows int    `json:"workflows"`
	Open      int    `json:"open"`                 // at a time
	Rate      int    `json:"rate_per_s,omitempty"` // steps that were asked for
	Steps     int    `json:"steps"`                // of each, undos counted
	Signalled int    `json:"signalled,omitempty"`  // of those that wait

	Seconds       float64              `json:"seconds"` // from the first submit to the last handler's end
	WorkflowsPerS float64              `json:"workflows_per_s"`
	StepsPerS     float64              `json:"steps_per_s"`
	FirstMS       lateness.Percentiles `json:"first_ms"` // from the submit, or the signal, to the first handler
	HopMS         lateness.Percentiles `json:"hop_ms"`   // from the end of the last handler that a step waited for to its own
	WholeMS       lateness.Percentiles `json:"whole_ms"` // the same to the last handler

	CPU         result.Roles `json:"cpu_s"`
	CPUPerStep  float64      `json:"cpu_us_per_step"`
	CPUPerTask  float64      `json:"cpu_us_per_task,omitempty"` // of as many tasks that are no steps, by the same workers
	StoreBytes  float64      `json:"store_bytes_per_workflow,omitempty"`
	ServerBytes float64      `json:"server_bytes_per_workflow,omitempty"`
	FreshBytes  float64      `json:"fresh_server_bytes_per_workflow,omitempty"` // once it has been started again

	Repeat     int    `json:"repeat"`      // handlers that began again, with a higher attempt: legal
	Redone     int    `json:"redone"`      // that began again under one attempt, or for another task of one try
	Untimely   int    `json:"untimely"`    // that began before what they wait for had ended
	NeverEnded int    `json:"never_ended"` // workflows
	Machine    string `json:"machine"`
}

// violation is what the shape broke; nil when nothing.
func (l *flowLine) violation() error {
	if l.Redone+l.Untimely+l.NeverEnded == 0 {
		return nil
	}
	return fmt.Errorf("workflows %s: %d redone, %d untimely, %d never ended", l.Shape, l.Redone, l.Untimely, l.NeverEnded)
}

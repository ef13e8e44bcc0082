package cli

import (
	"slices"
	"testing"

	"github.com/ddq-io/ddq/api/worker"
)

func TestCommandsLearnWhichStepATaskIs(t *testing.T) {
	for _, c := range []struct {
		step *worker.Step
		want []string
	}{
		{nil, nil},
		{&worker.Step{Workflow: "w", Name: "split", Try: 1}, []string{"DDQ_WORKFLOW=w", "DDQ_STEP=split", "DDQ_STEP_TRY=1"}},
		{&worker.Step{Workflow: "w", Name: "page", Try: 2, Copy: 3, Undo: true}, []string{"DDQ_WORKFLOW=w", "DDQ_STEP=page", "DDQ_STEP_TRY=2", "DDQ_STEP_COPY=3", "DDQ_STEP_UNDO=1"}},
	} {
		if got := stepVars(c.step); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.step, got, c.want)
		}
	}
}

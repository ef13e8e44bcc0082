package cli

import (
	"strconv"

	"github.com/ddq-io/ddq/api/worker"
)

// stepVars is what a command learns of the step of a workflow that its task is; nothing of all
// other tasks.
func stepVars(s *worker.Step) []string {
	if s == nil {
		return nil
	}
	vars := []string{"DDQ_WORKFLOW=" + s.Workflow, "DDQ_STEP=" + s.Name, "DDQ_STEP_TRY=" + strconv.Itoa(s.Try)}
	if s.Copy > 0 {
		vars = append(vars, "DDQ_STEP_COPY="+strconv.Itoa(s.Copy))
	}
	if s.Undo {
		vars = append(vars, "DDQ_STEP_UNDO=1")
	}
	return vars
}

package schedules

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/cmd/cli/terminal"
	"github.com/ddq-io/ddq/cmd/cli/workflowfile"
)

// takeWorkflow takes the workflow out of a schedule of a file; nil: it has none.
func takeWorkflow(fields map[string]any) (*ddqv1.Workflow, error) {
	given, there := fields["workflow"]
	if !there {
		return nil, nil
	}
	delete(fields, "workflow")
	flow, ok := given.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("field %q: want steps, not %v", "workflow", given)
	}
	return workflowfile.Of(flow)
}

// giveWorkflow makes the runs of a schedule workflows.
func giveWorkflow(s *client.Schedule, flow *ddqv1.Workflow) error {
	switch {
	case flow == nil:
		return nil
	case flow.GetTopic() != "" && flow.GetTopic() != s.Topic:
		return fmt.Errorf("field %q: the workflow is in the topic of the schedule", "workflow")
	case flow.GetId() != "":
		return fmt.Errorf("field %q: the id of the workflow is made of the name of the schedule and the time", "workflow")
	case len(s.Task.Payload) > 0:
		return errors.New("payload: the runs of this schedule are workflows, whose steps have payloads")
	}
	flow.Topic = ""
	s.Workflow = client.WorkflowOf(flow)
	return nil
}

// readFlow reads the file of the workflow that a schedule starts.
func readFlow(s *client.Schedule, name string, text []byte) error {
	file, err := workflowfile.Read(text)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return giveWorkflow(s, file.Workflow)
}

// viewWorkflow is a workflow as the API has it, with the defaults that the server fills in.
func viewWorkflow(w *client.Workflow) json.RawMessage {
	if w == nil {
		return nil
	}
	out, err := w.Wire()
	if err != nil {
		return nil
	}
	fillIn(out)
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(out)
	if err != nil {
		return nil
	}
	var compact bytes.Buffer // the library puts in other spaces each time
	if err := json.Compact(&compact, text); err != nil {
		return nil
	}
	return compact.Bytes()
}

func fillIn(w *ddqv1.Workflow) {
	if w.Failure == 0 {
		w.Failure = ddqv1.FailurePolicy_FAILURE_POLICY_FINISH_RUNNING
	}
	for _, s := range w.Steps {
		for _, a := range s.After {
			if a.On == 0 {
				a.On = ddqv1.On_ON_DONE
			}
		}
		if child := s.GetChild(); child != nil {
			fillIn(child)
		}
	}
}

// what says what the runs of a schedule are.
func what(s *client.ScheduleStatus) string {
	if s.Workflow != nil {
		return "workflow"
	}
	return "task"
}

// runRow is what a run brings.
func runRow(s *client.ScheduleStatus) table.Row {
	if s.Workflow == nil {
		return table.Row{"payload", terminal.BytesText(s.Task.Payload)}
	}
	names := make([]string, len(s.Workflow.Steps))
	for i := range names {
		names[i] = s.Workflow.Steps[i].Name
	}
	return table.Row{"workflow", terminal.Shorten(strings.Join(names, ", "), 200)}
}

// runName says by its id what a run is: those of workflows have the name of the schedule in front.
func runName(id string) string {
	if strings.Contains(id, "/") {
		return "workflow " + id
	}
	return "task " + id
}

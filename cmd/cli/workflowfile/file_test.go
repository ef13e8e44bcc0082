package workflowfile

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/ddqv1"
)

const order = `topic: orders
failure: carry-on
timeout: 24h
input: hello
labels: {team: sales}
steps:
  - name: charge
    task:
      payload: 42 EUR
      visibility_timeout: 90s
      attributes: {kind: card}
    undo:
  - name: approve
    wait: {signal: approve, timeout: 1h, otherwise: nobody}
  - name: ship
    after: [charge, {step: approve, on: ended}]
`

func TestFile(t *testing.T) {
	w, err := Read([]byte(order))
	if err != nil {
		t.Fatal(err)
	}
	charge, approve, ship := w.Steps[0], w.Steps[1], w.Steps[2]
	if w.Failure != ddqv1.FailurePolicy_FAILURE_POLICY_CARRY_ON || w.TimeoutMs != (24*time.Hour).Milliseconds() || string(w.Input) != "hello" || w.Labels[0].Value != "sales" {
		t.Errorf("workflow: %v", w.Workflow)
	}
	if string(charge.GetTask().Payload) != "42 EUR" || charge.GetTask().VisibilityTimeoutMs != 90_000 || charge.GetTask().Attributes[0].Key != "kind" || charge.Undo == nil {
		t.Errorf("charge: %v", charge)
	}
	if approve.GetWait().GetSignal() != "approve" || approve.GetWait().TimeoutMs != 3_600_000 || string(approve.GetWait().Otherwise) != "nobody" {
		t.Errorf("approve: %v", approve)
	}
	if len(ship.After) != 2 || ship.After[0].Step != "charge" || ship.After[1].On != ddqv1.On_ON_ENDED {
		t.Errorf("ship: %v", ship)
	}
}

func TestMistakesAreNamedWithTheirLine(t *testing.T) {
	for _, c := range []struct{ was, is, want string }{
		{"    undo:", "    undone:", `line 12: unknown field "undone"`},
		{"timeout: 24h", "timeout: 24 hours", "line 3: "},
		{"carry-on", "give-up", "line 2: "},
		{"payload: 42 EUR", "paylod: 42 EUR", `line 9: unknown field "paylod"`},
		{"steps:", "steps: [", "not YAML: "},
	} {
		_, err := Read([]byte(strings.Replace(order, c.was, c.is, 1)))
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.is, err, c.want)
		}
	}
	w, err := Read([]byte(order))
	if err != nil {
		t.Fatal(err)
	}
	var refused *client.Error
	if err := w.Refused(&client.Error{Field: "steps[2].after[0]", Message: "steps[2].after[0]: there is no step"}); !errors.As(err, &refused) || !strings.HasPrefix(refused.Message, "line 15: ") {
		t.Errorf("got %v", err)
	}
}

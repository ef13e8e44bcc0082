package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTasksOfSteps are their workflow's: the command line says which call to make, and has --force.
func TestTasksOfSteps(t *testing.T) {
	ddq := onMemory(t)
	file := filepath.Join(t.TempDir(), "order.yaml")
	const order = `topic: orders
steps:
  - name: charge
    task: {topic: bank, delay: 3600s}
`
	if err := os.WriteFile(file, []byte(order), 0o600); err != nil {
		t.Fatal(err)
	}
	ddq(exitOK, "workflow", "submit", "-f", file, "--id", "order-17")
	var task struct{ ID string }
	await(t, "the task of the step, which comes by parcel", func() bool {
		if got := ddq(exitOK, "task", "list", "--topic", "bank", "-o", "json"); got.out != "" {
			if err := json.Unmarshal([]byte(got.out), &task); err != nil {
				t.Fatalf("%v: %s", err, got.out)
			}
		}
		return task.ID != ""
	})
	id := task.ID
	if got := ddq(exitFailed, "task", "delete", id); !strings.Contains(got.err, "STEP_OF_WORKFLOW") || !strings.Contains(got.err, "CancelWorkflow") {
		t.Errorf("delete: %s", got.err)
	}
	if got := ddq(exitOK, "topic", "purge", "bank", "--yes"); !strings.Contains(got.out, "0 tasks deleted, 1 of workflows skipped") {
		t.Errorf("purge: %s%s", got.out, got.err)
	}
	ddq(exitUsage, "task", "delete", "--topic", "bank", "--state", "scheduled", "--yes", "--force")
	ddq(exitOK, "task", "delete", id, "--force")
	if got := ddq(exitOK, "workflow", "watch", "order-17"); !strings.Contains(got.out+got.err, "failed") {
		t.Errorf("watch: %s%s", got.out, got.err)
	}
}

// TestStepsThatWaitSayForWhat has a command suspend its step, and looks at it.
func TestStepsThatWaitSayForWhat(t *testing.T) {
	ddq := onMemory(t)
	file := filepath.Join(t.TempDir(), "order.yaml")
	if err := os.WriteFile(file, []byte("topic: orders\nsteps:\n  - name: order\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ddq(exitOK, "workflow", "submit", "-f", file, "--id", "order-17")
	const asks = `{"grow":{"suspend":true,"steps":[{"name":"approve","wait":{"signal":"approve","timeout":"24h"},"ignore_failure":true}]}}`
	ddq(exitOK, "work", "--topic", "orders", "--count", "1", "--exec", "echo '"+asks+"' >&3")
	var got outcome
	await(t, "a suspended step, whose end is told by parcel", func() bool {
		got = ddq(exitOK, "workflow", "steps", "order-17")
		return strings.Contains(got.out, "suspended")
	})
	for _, want := range []string{"suspended: order.approve", "waits for signal approve"} {
		if !strings.Contains(got.out, want) {
			t.Errorf("no %q in\n%s", want, got.out)
		}
	}
	if got := ddq(exitOK, "workflow", "get", "order-17", "--graph"); !strings.Contains(got.out, "2 made") || !strings.Contains(got.out, "order.approve") {
		t.Errorf("get: %s", got.out)
	}
	ddq(exitOK, "workflow", "signal", "order-17", "approve", "--payload", "by ada")
	ddq(exitOK, "work", "--topic", "orders", "--count", "1", "--result", "--exec", "echo shipped")
	if got := ddq(exitOK, "workflow", "watch", "order-17"); !strings.Contains(got.out+got.err, "done") {
		t.Errorf("watch: %s%s", got.out, got.err)
	}
	if got := ddq(exitOK, "workflow", "results", "order-17", "order.approve"); !strings.Contains(got.out, "by ada") {
		t.Errorf("results: %s", got.out)
	}
}

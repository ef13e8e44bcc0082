package workflows

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	sdk "github.com/ddq-io/ddq/api/worker"
	"github.com/ddq-io/ddq/bench/binary"
)

// small are options for a quick look.
func small() *options {
	return &options{Store: "embedded", Shapes: shapes, Workflows: 4, Open: 2, Steps: 3, Copies: 2, Rounds: 1, Tasks: 1, Names: 2, Marks: 2, Workers: 1}
}

func TestWorkflowBooksFindWhatIsBroken(t *testing.T) {
	shape := small().shape(shapeChain)
	step := func(name, id string, try, attempt int) sdk.Task {
		return sdk.Task{ID: id, Attempt: attempt, Step: &sdk.Step{Workflow: "w", Name: name, Try: try}}
	}
	for what, c := range map[string]struct {
		then sdk.Task
		want flowLine
	}{
		"the next step":               {step("s1", "b", 1, 1), flowLine{}},
		"the step behind the next":    {step("s2", "b", 1, 1), flowLine{Untimely: 1}},
		"a second attempt":            {step("s0", "a", 1, 2), flowLine{Repeat: 1}},
		"the same attempt":            {step("s0", "a", 1, 1), flowLine{Redone: 1}},
		"another task of the try":     {step("s0", "b", 1, 1), flowLine{Redone: 1}},
		"another task of another try": {step("s0", "b", 2, 1), flowLine{Repeat: 1}},
		"a step of somebody else":     {sdk.Task{ID: "x", Attempt: 1, Step: &sdk.Step{Workflow: "other", Name: "s1"}}, flowLine{}},
	} {
		b, line, now := newFlowBooks(&shape), flowLine{}, time.Unix(1000, 0)
		f := b.open("w", now)
		first := step("s0", "a", 1, 1)
		b.begin(&first, now)
		b.end(&first, now)
		b.begin(&c.then, now)
		b.read(&line, now)
		if line.Repeat != c.want.Repeat || line.Redone != c.want.Redone || line.Untimely != c.want.Untimely {
			t.Errorf("%s: %+v", what, line)
		}
		if (line.violation() != nil) != (c.want.Redone+c.want.Untimely > 0) {
			t.Errorf("%s: %v", what, line.violation())
		}
		if f.left != 2 || b.ends() != 1 {
			t.Errorf("%s: %d handlers left, %d ended", what, f.left, b.ends())
		}
	}
}

func TestWorkflowBooksTellTheWays(t *testing.T) {
	shape, now := small().shape(shapeFanout), time.Unix(1000, 0)
	b, line := newFlowBooks(&shape), flowLine{}
	f := b.open("w", now)
	for i, ms := range []int{3, 5} {
		part := sdk.Task{ID: "a", Attempt: 1, Step: &sdk.Step{Workflow: "w", Name: "part", Copy: i + 1, Try: 1}}
		b.begin(&part, now.Add(time.Duration(ms)*time.Millisecond))
		b.end(&part, now.Add(time.Duration(ms+1)*time.Millisecond))
	}
	join := sdk.Task{ID: "j", Attempt: 1, Step: &sdk.Step{Workflow: "w", Name: "join", Try: 1}}
	b.begin(&join, now.Add(10*time.Millisecond))
	b.end(&join, now.Add(10*time.Millisecond))
	b.read(&line, now)
	if line.FirstMS.Max < 2.9 || line.FirstMS.Max > 3.1 || line.HopMS.Max < 3.9 || line.HopMS.Max > 4.1 || line.WholeMS.Max < 9.9 || line.WholeMS.Max > 10.1 {
		t.Errorf("first %v, hop %v, whole %v", line.FirstMS, line.HopMS, line.WholeMS)
	}
	select {
	case <-f.done:
	default:
		t.Error("the workflow is not done")
	}
}

func TestShapesOfWorkflowsAreKnown(t *testing.T) {
	o := small()
	if err := o.complete(); err != nil {
		t.Error(err)
	}
	o.Shapes = []string{"chain", "circle"}
	if err := o.complete(); err == nil || !strings.Contains(err.Error(), "circle") {
		t.Errorf("a shape that is none is answered with %v", err)
	}
}

// TestWorkflowsOnRealServer plays every shape, some of them over a kill.
func TestWorkflowsOnRealServer(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs the server")
	}
	bin, err := binary.Build(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var out, log bytes.Buffer
	cmd := NewCommand()
	cmd.SetArgs([]string{"--server-bin", bin, "--workflows", "60", "--open", "20", "--steps", "3", "--copies", "20", "--rounds", "2", "--tasks", "200", "--names", "4", "--checkpoints", "400", "--settle", "0s", "--kill"})
	cmd.SetOut(&out)
	cmd.SetErr(&log)
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatalf("%v\n%s%s", err, out.String(), log.String())
	}
	seen := 0
	for text := range strings.Lines(out.String()) {
		var about struct{ Shape string }
		if err := json.Unmarshal([]byte(text), &about); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if whole, err := isWhole(about.Shape, []byte(text)); err != nil || !whole {
			t.Errorf("incomplete line: %s (%v)", text, err)
		}
		seen++
	}
	if seen != len(shapes) {
		t.Errorf("%d lines of %d shapes", seen, len(shapes))
	}
}

// isWhole reports whether a line of a shape has every figure.
func isWhole(shape string, text []byte) (bool, error) {
	switch shape {
	case shapeFollow:
		var l followLine
		err := json.Unmarshal(text, &l)
		return err == nil && l.Ack.EndToEndPerS > 0 && l.Apart.CPUPerTask > 0 && l.CPUOfApart > 0, err
	case shapeJournal:
		var l journalLine
		err := json.Unmarshal(text, &l)
		return l.Checkpoints == 400 && l.CheckpointsPerS > 0 && l.CPUPerCheckpoint > 0 && l.OnceMS.Max > 0, err
	}
	var l flowLine
	err := json.Unmarshal(text, &l)
	steps := shape == shapeWait && l.Signalled == 60 && l.FreshBytes != 0 || l.StepsPerS > 0 && l.CPUPerStep > 0
	return l.Workflows > 0 && l.WorkflowsPerS > 0 && l.FirstMS.Max > 0 && steps, err
}

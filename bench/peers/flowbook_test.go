package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/ddq-io/ddq/bench/result"
)

func TestFlowBookTellsWhatBecameOfWorkflows(t *testing.T) {
	chain := flowShape{kind: kindChain, size: 3, flows: 2}
	fanout := flowShape{kind: kindFanout, size: 2, flows: 1}
	for what, c := range map[string]struct {
		shape                    *flowShape
		lines                    []string
		tasks, never, early, rep int
		hop                      float64 // the longest, ms
	}{
		"a chain of which one has ended": {
			&chain, []string{"ran w-0 0 1000 2000", "ran w-0 1 5000 6000", "ran w-0 2 7000 8000", "ran w-1 0 1000 2000"}, 6, 1, 0, 0, 3,
		},
		"lines of two processes come in any order": {
			&chain, []string{"ran w-0 2 7000 8000", "ran w-0 1 5000 6000", "ran w-0 0 1000 2000"}, 6, 1, 0, 0, 3,
		},
		"a handler that runs again": {&chain, []string{"ran w-0 0 1000 2000", "ran w-0 0 9000 9500"}, 6, 2, 0, 1, 0},
		"a step that does not wait": {&chain, []string{"ran w-0 0 1000 2000", "ran w-0 1 1500 6000"}, 6, 2, 1, 0, 0.001},
		"a fan-out":                 {&fanout, []string{"ran w-0 0 1000 2000", "ran w-0 1 1000 4000", "ran w-0 2 9000 9500"}, 3, 0, 0, 0, 5},
		"a join that does not wait": {&fanout, []string{"ran w-0 0 1000 2000", "ran w-0 2 3000 3500"}, 3, 1, 1, 0, 0.001},
		"what is not of this book":  {&fanout, []string{"ran v-0 0 1000 2000", "ran w-0 9 1000 2000", "ran w-0 -1 1000 2000"}, 3, 1, 0, 0, 0},
	} {
		b := newFlowBook(c.shape, "w", c.shape.flows)
		for _, line := range c.lines {
			if err := b.note(line, time.Now()); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		var line result.Line
		b.read(time.UnixMicro(0), &line)
		if line.Tasks != c.tasks || line.NeverEnded != c.never || line.Early != c.early || line.Repeat != c.rep {
			t.Errorf("%s: %d tasks, %d never ended, %d early, %d repeated", what, line.Tasks, line.NeverEnded, line.Early, line.Repeat)
		}
		if got := line.LateMS.Max; got < c.hop*0.99 || got > c.hop*1.01 {
			t.Errorf("%s: the longest hop is %v ms, not %v", what, got, c.hop)
		}
		if ended := c.shape.flows - c.never; len(b.ended) != ended {
			t.Errorf("%s: %d workflows are told to have ended, not %d", what, len(b.ended), ended)
		}
	}
}

func TestFlowBookKnowsTheMiddle(t *testing.T) {
	b := newFlowBook(&flowShape{kind: kindChain, size: 2, flows: 2}, "w", 2)
	for i := range 4 {
		select {
		case <-b.half:
			if i < 2 {
				t.Errorf("half of 4 handlers have ended after %d", i)
			}
		default:
			if i >= 2 {
				t.Errorf("half of 4 handlers have not ended after %d", i)
			}
		}
		if err := b.note(fmt.Sprintf("ran w-%d %d 1 2", i/2, i%2), time.Now()); err != nil {
			t.Error(err)
		}
	}
	if err := b.note("step 3", time.Now()); err == nil {
		t.Error("a line of nobody is noted")
	}
}

func TestHandlersOfDDQAreNumbered(t *testing.T) {
	for _, s := range []flowShape{{kind: kindChain, size: 4}, {kind: kindFanout, size: 4}} {
		w := s.workflow()
		if len(w.Steps) != map[string]int{kindChain: 4, kindFanout: 2}[s.kind] {
			t.Errorf("%s: %d steps", s.kind, len(w.Steps))
		}
		if last := w.Steps[len(w.Steps)-1]; last.Name != fmt.Sprint(s.handlers()-1) || len(last.After) != 1 {
			t.Errorf("%s: the last step is %q, behind %v", s.kind, last.Name, last.After)
		}
	}
}

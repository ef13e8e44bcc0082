package main

import (
	"os"
	"testing"
)

// TestPatchesFitTheSource finds a patch that was left behind by a change of the
// product when the change is made.
func TestPatchesFitTheSource(t *testing.T) {
	all, err := load(".", nil)
	if err != nil {
		t.Fatal(err)
	}
	l, err := newLab("../..")
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	for _, m := range all {
		t.Run(m.name, func(t *testing.T) {
			if err := l.patch(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(m.overlay); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAMutantIsToSayWhatItBreaks(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/a.patch", []byte("promise: P1\n\ndiff --git a/x b/x\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := load(dir, nil); err == nil {
		t.Error("a patch without a round was taken")
	}
	if _, err := load(dir, []string{"b"}); err == nil {
		t.Error("an unknown name was taken")
	}
}

// TestAPatchThatDoesNotFitIsAnError takes the source away from under a patch.
func TestAPatchThatDoesNotFitIsAnError(t *testing.T) {
	all, err := load(".", []string{"watchdog-off"})
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	if err := os.MkdirAll(root+"/actors", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(root+"/actors/recover.go", []byte("package actors\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	l, err := newLab(root)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	if err := l.patch(t.Context(), all[0]); err == nil {
		t.Error("it was applied")
	}
}

func TestAMutantHasOneWayToBeCaught(t *testing.T) {
	for head, good := range map[string]bool{
		"round: --faults kill\n":                             true,
		"sim: 4\n":                                           true,
		"test: ./store/limit -run ^TestX$\n":                 true,
		"sim: 4\ntest: ./store/limit -run ^TestX$\n":         false,
		"round: --faults kill\ntest: ./store/limit -run X\n": false,
	} {
		dir := t.TempDir()
		if err := os.WriteFile(dir+"/a.patch", []byte("promise: P1\n"+head+"\ndiff --git a/x b/x\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := load(dir, nil); (err == nil) != good {
			t.Errorf("%q: %v", head, err)
		}
	}
}

func TestWhoCaughtAMutant(t *testing.T) {
	tested, played := &mutant{test: []string{"./x"}}, &mutant{sim: 4}
	for _, c := range []struct {
		m         *mutant
		out, want string
	}{
		{tested, "--- FAIL: TestX (0.01s)\n    x_test.go:1: no\nFAIL\n", "test, TestX"},
		{tested, "FAIL\tddq/x [build failed]\n", ""},
		{tested, "panic: test timed out after 10m0s\n", ""},
		{played, "    sim_test.go:1: seed 3 breaks promises: P3\n", "simulation, seed 3"},
		{played, "--- FAIL: TestSimulation\n", ""},
	} {
		if got := c.m.verdict(c.out); got != c.want {
			t.Errorf("of %q: %q, want %q", c.out, got, c.want)
		}
	}
}

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

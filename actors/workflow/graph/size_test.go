package graph

import (
	"strings"
	"testing"

	"github.com/ddq-io/ddq/store"
)

// TestAddressesAreThoseOfTasksElsewhere measures each task in another topic by the topic that its
// workflow, or the child that it is of, is in.
func TestAddressesAreThoseOfTasksElsewhere(t *testing.T) {
	long, id := strings.Repeat("t", 128), strings.Repeat("i", 127)
	step := func(topic string) Step { return Step{Name: "a", Task: &Template{Topic: topic}} }
	child := func(topic string, s Step) Step {
		return Step{Name: "c", Child: &Child{Topic: topic, Definition: Definition{Steps: []Step{s}}}}
	}
	for what, c := range map[string]struct {
		step Step
		fits bool
	}{
		"a task at home":                       {step(""), true},
		"a task elsewhere":                     {step("audit"), false},
		"an undo elsewhere":                    {Step{Name: "a", Task: &Template{}, Undo: &Template{Topic: "audit"}}, false},
		"a task elsewhere of a child":          {child("", step("audit")), false},
		"a child elsewhere":                    {child("audit", step("")), true},
		"a task at home of a child elsewhere":  {child("audit", step(long)), true},
		"a task of a child with a long name":   {child(strings.Repeat("u", 128), step("audit")), false},
		"the same of a child within that":      {child("audit", child(long, step("audit"))), false},
		"a child elsewhere of one elsewhere":   {child("audit", child("mail", step(long))), true},
		"a task elsewhere of a child of those": {child("audit", child("", step(long))), true},
	} {
		if fits := AddressesFit([]Step{c.step}, len(long), len(id), 0); fits != c.fits {
			t.Errorf("%s fits: %t", what, fits)
		}
	}
	if len(long)+1+len(id) <= store.MaxCellKey {
		t.Error("it is short enough")
	}
}

// TestToIsForWhatNamesNoTopic leaves the others, and what is in a child, which is where that is.
func TestToIsForWhatNamesNoTopic(t *testing.T) {
	inner := Step{Name: "x", Task: &Template{}}
	steps := To([]Step{
		{Name: "a", Task: &Template{}, Undo: &Template{Topic: "undo"}},
		{Name: "b", Child: &Child{Definition: Definition{Steps: []Step{inner}}}},
		{Name: "c", Child: &Child{Topic: "mail", Definition: Definition{Steps: []Step{inner}}}},
	}, "audit")
	if steps[0].Task.Topic != "audit" || steps[0].Undo.Topic != "undo" || steps[1].Child.Topic != "audit" || steps[2].Child.Topic != "mail" {
		t.Errorf("they are %+v", steps)
	}
	for _, s := range steps[1:] {
		if s.Child.Steps[0].Task.Topic != "" {
			t.Errorf("the step of child %s is in %q", s.Name, s.Child.Steps[0].Task.Topic)
		}
	}
}

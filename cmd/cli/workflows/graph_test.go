package workflows

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ddq-io/ddq/api/client"
)

func TestGraph(t *testing.T) {
	steps := []client.StepStatus{
		{Name: "ship", After: []string{"charge", "page"}, State: client.StepWaiting},
		{Name: "charge", State: client.StepDone},
		{Name: "page", Copy: 1, State: client.StepDone},
		{Name: "page", Copy: 2, State: client.StepMade},
	}
	var layers, dot strings.Builder
	if err := errors.Join(writeLayers(&layers, steps), writeDot(&dot, "w", steps)); err != nil {
		t.Fatal(err)
	}
	if want := "charge [done]   page [1 done, 1 made]\n  │\nship [waiting]\n"; layers.String() != want {
		t.Errorf("got\n%swant\n%s", layers.String(), want)
	}
	if !strings.Contains(dot.String(), `"charge" -> "ship";`) {
		t.Errorf("got\n%s", dot.String())
	}
}

// TestGraphOfManyAlike names the first and the last of many steps that differ in nothing but their names.
func TestGraphOfManyAlike(t *testing.T) {
	steps := []client.StepStatus{{Name: "start", State: client.StepDone}}
	for i := range 50 {
		s := client.StepStatus{Name: fmt.Sprint("page", i), After: []string{"start"}, State: client.StepDone}
		if i == 40 {
			s.State = client.StepFailed
		}
		steps = append(steps, s)
	}
	var layers strings.Builder
	if err := writeLayers(&layers, steps); err != nil {
		t.Fatal(err)
	}
	want := "start [done]\n  │\npage0 to page39 [40 done]   page40 [failed]   page41 [done]   page42 [done]   page43 [done]   page44 [done]   " +
		"page45 [done]   page46 [done]   page47 [done]   page48 [done]   page49 [done]\n"
	if layers.String() != want {
		t.Errorf("got\n%swant\n%s", layers.String(), want)
	}
}

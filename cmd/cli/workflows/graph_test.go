package workflows

import (
	"errors"
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

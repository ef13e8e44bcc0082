//go:build linux

package sdk_test

import (
	"encoding/json"
	"os"
	"regexp"
	"testing"
)

// Tasks are written by hand in Python, where they are generated otherwise: a field of the
// API that they lack fails here.
func TestPythonHasEveryFieldOfATask(t *testing.T) {
	text, err := os.ReadFile("../openapi/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var description struct {
		Components struct {
			Schemas map[string]struct{ Properties map[string]any }
		}
	}
	if err := json.Unmarshal(text, &description); err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("python/ddq/_task.py")
	if err != nil {
		t.Fatal(err)
	}
	for field := range description.Components.Schemas["EnqueueRequest"].Properties {
		if !regexp.MustCompile(`(?m)^    ` + field + `: `).Match(source) {
			t.Errorf("NewTask of _task.py has no %s", field)
		}
	}
}

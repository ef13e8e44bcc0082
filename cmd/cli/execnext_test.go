//go:build unix

package cli

import (
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ddq-io/ddq/api/worker"
	"github.com/ddq-io/ddq/cmd/cli/shell"
)

func TestShellCommandWritesTasks(t *testing.T) {
	run := func(command string, refuse string) ([]string, error) {
		var lines []string
		s := &shell.Command{Text: command, Environ: os.Environ(), Out: io.Discard, Err: io.Discard, Next: func(line []byte) error {
			if string(line) == refuse {
				return errors.New("no")
			}
			lines = append(lines, string(line))
			return nil
		}}
		return lines, s.Run(t.Context(), nil, nil)
	}
	long := strings.Repeat("x", 300_000)
	for command, want := range map[string][]string{
		"true": nil, "echo a >&3; echo; echo >&3; printf 'b' >&3": {"a", "b"}, "printf '%0300000d' 0 | tr 0 x >&3": {long}, "sleep 5 >&2 & echo a >&3": {"a"},
	} {
		if got, err := run(command, "z"); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %.100q, %v", command, got, err)
		}
	}
	if _, err := run("echo a >&3; echo z >&3; echo b >&3", "z"); err == nil || err.Error() != "line 2 of file descriptor 3: no" {
		t.Errorf("a line that is refused: %v", err)
	}
	if _, err := run("echo z >&3; exit 3", "z"); err == nil || err.Error() != "exit status 3" {
		t.Errorf("a command that fails: %v", err)
	}
}

func TestLineIsATask(t *testing.T) {
	got, err := parseNext([]byte(`{"payload":"x","delay":"1m30s","attributes":{"a":"b"},"max_retries":0,"idempotency_key":"k"}`), "mail")
	if err != nil || got.Topic != "mail" || string(got.Payload) != "x" || got.Delay != 90*time.Second || got.Attributes["a"] != "b" ||
		got.MaxRetries == nil || *got.MaxRetries != 0 || got.Idempotency.Key != "k" {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err = parseNext([]byte(`{"topic":"audit","payload_base64":"AQI="}`), "mail"); err != nil || got.Topic != "audit" || string(got.Payload) != "\x01\x02" {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, bad := range []string{`{"pay":1}`, `x`, `{"delay":"soon"}`} {
		if _, err := parseNext([]byte(bad), "mail"); err == nil {
			t.Errorf("%s is a task", bad)
		}
	}
}

func TestLineGrowsAWorkflow(t *testing.T) {
	step := worker.NewTask(worker.Task{Topic: "crawl", Step: &worker.Step{Workflow: "w", Name: "split"}})
	for _, line := range []string{
		`{"grow":{"steps":[{"name":"a","task":{"payload":"x"}},{"name":"b","after":["a"],"wait":{"delay":"1m"}}],"skip":["c"]}}`,
		`{"grow":{"again":"next"}}`, `{"payload":"y"}`,
	} {
		if err := takeNext(step, []byte(line)); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
	g := step.Growth()
	if len(g.GetSteps()) != 2 || string(g.Steps[0].GetTask().GetPayload()) != "x" || g.Steps[1].After[0].Step != "a" || g.Steps[1].GetWait().GetDelayMs() != 60_000 ||
		g.Skip[0] != "c" || string(g.Again) != "next" || len(step.Enqueued()) != 1 {
		t.Errorf("got %v, and %d tasks", g, len(step.Enqueued()))
	}
	for _, bad := range []string{`{"grow":7}`, `{"grow":{"pages":[]}}`, `{"grow":{"steps":["a"]}}`, `{"grow":{"steps":[]},"payload":"x"}`} {
		if err := takeNext(step, []byte(bad)); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
	if err := takeNext(worker.NewTask(worker.Task{Topic: "mail"}), []byte(`{"grow":{"skip":["c"]}}`)); err == nil {
		t.Error("a task that is no step grows a workflow")
	}
}

// A line that is not UTF-8 is refused, as JSON would be read with other bytes in their place.
func TestNextLinesAreUTF8(t *testing.T) {
	for _, line := range []string{"{\"payload\":\"\xff\"}", "{\"attributes\":{\"k\":\"caf\xe9\"}}", "{\"grow\":{\"steps\":[{\"name\":\"\xff\"}]}}"} {
		if err := takeNext(worker.Task{Topic: "mail"}, []byte(line)); err == nil || !strings.Contains(err.Error(), "not UTF-8") {
			t.Errorf("%q: %v", line, err)
		}
	}
}

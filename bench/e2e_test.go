package bench

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/ddq-io/ddq/bench/binary"
	"github.com/ddq-io/ddq/bench/result"
)

// TestWorkloadsOnRealServer plays small workloads the way a user does: through
// the command, with a server binary, a worker process and the stores.
func TestWorkloadsOnRealServer(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs the server")
	}
	bin, err := binary.Build(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name  string
		args  []string
		check func(*testing.T, []result.Line)
	}{
		{"throughput", []string{"throughput", "--tasks", "3000"}, func(t *testing.T, lines []result.Line) {
			if len(lines) != 2 || lines[0].Mode != "batch" || lines[1].Mode != "single" {
				t.Fatalf("got %d lines, want one for batch and one for single", len(lines))
			}
			for _, l := range lines {
				if l.EnqueuePerS <= 0 || l.ProcessPerS <= 0 || l.EndToEndPerS <= 0 {
					t.Errorf("%s: rates are %v, %v and %v", l.Mode, l.EnqueuePerS, l.ProcessPerS, l.EndToEndPerS)
				}
			}
		}},
		{"throughput by REST", []string{"throughput", "--tasks", "3000", "--api", "rest"}, func(t *testing.T, lines []result.Line) {
			for _, l := range lines {
				if l.EndToEndPerS <= 0 || !strings.Contains(l.Settings, "REST") {
					t.Errorf("%s: %v a second with %s", l.Mode, l.EndToEndPerS, l.Settings)
				}
			}
		}},
		{"lateness on redis", []string{"lateness", "--store", "redis-everysec", "--tasks", "500", "--for", "1s"}, func(t *testing.T, lines []result.Line) {
			if l := lines[0]; l.Store != "redis-everysec" || l.LateMS.Max <= 0 || l.LateMS.P50 > l.LateMS.P99 {
				t.Errorf("got %+v on %s", l.LateMS, l.Store)
			}
		}},
		{"trickle", []string{"trickle", "--rate", "50,200", "--for", "1s"}, func(t *testing.T, lines []result.Line) {
			if len(lines) != 2 || lines[0].Rate != 50 || lines[1].Tasks != 200 {
				t.Fatalf("got %d lines, want one for each rate", len(lines))
			}
			for _, l := range lines {
				if l.CPU.Server <= 0 || l.LateMS.Max <= 0 {
					t.Errorf("%d a second: CPU %v, lateness %v", l.Rate, l.CPU, l.LateMS)
				}
			}
		}},
		{"policies", []string{"policies", "--tasks", "500"}, func(t *testing.T, lines []result.Line) {
			if len(lines) != 3 || lines[0].Policies != "none" || lines[1].Policies != "all" || lines[2].Policies != policyWatch {
				t.Fatalf("got %d lines: %+v", len(lines), lines)
			}
			for i, l := range lines {
				if l.RateOfPlain <= 0 || i == 0 && l.RateOfPlain != 1 {
					t.Errorf("%s: %v of the rate without", l.Policies, l.RateOfPlain)
				}
			}
		}},
		{"restart", []string{"restart", "--tasks", "2000", "--backlog", "3000"}, func(t *testing.T, lines []result.Line) {
			if l := lines[0]; l.FirstMS <= 0 || l.Backlog != 3000 {
				t.Errorf("first delivery after %v ms on a backlog of %d", l.FirstMS, l.Backlog)
			}
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if _, err := exec.LookPath("redis-server"); err != nil && strings.Contains(test.name, "redis") {
				t.Skip("redis-server is not installed")
			}
			test.check(t, runBench(t, bin, test.args...))
		})
	}
}

// runBench runs the command and reads its lines; a broken promise fails it.
func runBench(t *testing.T, bin string, args ...string) []result.Line {
	t.Helper()
	var out, log bytes.Buffer
	cmd := NewCommand(nil)
	cmd.SetArgs(append(args, "--server-bin", bin, "-o", "json"))
	cmd.SetOut(&out)
	cmd.SetErr(&log)
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatalf("bench %v: %v\n%s%s", args, err, out.String(), log.String())
	}
	var lines []result.Line
	for text := range strings.Lines(out.String()) {
		var l result.Line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if l.System != "ddq" || l.Schema != 1 || l.Tasks == 0 {
			t.Errorf("incomplete line: %s", text)
		}
		lines = append(lines, l)
	}
	if len(lines) == 0 {
		t.Fatal("no lines")
	}
	return lines
}

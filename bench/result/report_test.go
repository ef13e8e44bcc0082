package result

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ddq-io/ddq/bench/lateness"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

// sampleLines are made up, with every column filled somewhere.
func sampleLines() []Line {
	base := Line{
		Schema: 1, System: "ddq", Version: "v1", Store: "embedded", Seed: 7, Tasks: 20000, Payload: 200,
		Concurrency: 64, Producers: 64, Backlog: 1000, Machine: "2 cores, test CPU, go1, linux/amd64",
	}
	throughput := base
	throughput.Workload, throughput.Mode, throughput.Seconds = "throughput", "batch", 1.5
	throughput.EnqueuePerS, throughput.ProcessPerS, throughput.EndToEndPerS = 300000.4, 250000, 150000.6
	throughput.CPU, throughput.CPUPer100k, throughput.RSS = Roles{0.1, 0.2, 0}, 0.6, Roles{50, 100, 0}
	peer := throughput
	peer.System, peer.Store, peer.Settings, peer.EndToEndPerS = "asynq", "redis-everysec", "as shipped", 11000
	tuned, untouched := peer, peer
	tuned.Setup, tuned.Settings, tuned.EndToEndPerS = SetupTuned, "checks every 100ms", 12000
	untouched.Setup = SetupDefault
	late := base
	late.Workload, late.LateMS = "lateness", lateness.Percentiles{P50: 1.25, P90: 1.5, P99: 2, P999: 10.123, Max: 12}
	late.Early, late.Lost, late.Duplicate = 1, 2, 3
	restart := base
	restart.Workload, restart.FirstMS, restart.LastMS, restart.Repeat = "restart", 412.3, 900, 17
	backlog := base
	backlog.Workload, backlog.StoreBytes, backlog.ServerBytes = "backlog", 410.2, 1.3
	return []Line{throughput, peer, tuned, untouched, late, backlog, restart}
}

func TestTables(t *testing.T) {
	var got bytes.Buffer
	if err := WriteTables(&got, sampleLines()); err != nil {
		t.Fatal(err)
	}
	golden(t, "tables.txt", got.Bytes())
}

func TestJSONLine(t *testing.T) {
	var got bytes.Buffer
	for _, l := range sampleLines() {
		if err := WriteJSON(&got, l); err != nil {
			t.Fatal(err)
		}
	}
	golden(t, "lines.json", got.Bytes())
}

// TestJSONLineHasTheAgreedFields guards what readers of the lines depend on.
func TestJSONLineHasTheAgreedFields(t *testing.T) {
	var out bytes.Buffer
	if err := WriteJSON(&out, Line{}); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	for _, field := range strings.Fields(`schema system version workload store tasks payload concurrency producers
		backlog seconds enqueue_per_s process_per_s end_to_end_per_s late_ms.p50 late_ms.p90 late_ms.p99 late_ms.p999
		late_ms.max early lost duplicate cpu_s.client cpu_s.server cpu_s.store cpu_s_per_100k rss_mb.client rss_mb.server
		rss_mb.store store_bytes_per_task server_bytes_per_task first_ms last_ms machine`) {
		in, name, nested := got, field, false
		if outer, inner, ok := strings.Cut(field, "."); ok {
			in, nested = got[outer].(map[string]any)
			name = inner
			if !nested {
				t.Errorf("%s is no object", outer)
				continue
			}
		}
		if _, ok := in[name]; !ok {
			t.Errorf("field %s is missing", field)
		}
	}
}

func TestViolationNamesWhatWasBroken(t *testing.T) {
	if err := (Line{Repeat: 5}).Violation(); err != nil {
		t.Errorf("repeats are legal: %v", err)
	}
	for _, l := range []Line{{Lost: 1}, {Early: 1}, {Duplicate: 1}} {
		if l.Violation() == nil {
			t.Errorf("no violation in %+v", l)
		}
	}
}

func TestChartDrawsEveryDistribution(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lateness.svg")
	if err := WriteChart(path, []Line{{Workload: "throughput"}}); err == nil {
		t.Error("a chart without any lateness was written")
	}
	var lines []Line
	for _, system := range []string{"first", "second"} {
		l := Line{System: system, Workload: "lateness", Late: lateness.New()}
		for us := range int64(2000) {
			if err := l.Late.RecordValue(us + 1); err != nil {
				t.Fatal(err)
			}
		}
		lines = append(lines, l)
	}
	if err := WriteChart(path, lines); err != nil {
		t.Fatal(err)
	}
	svg, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<svg", "first", "second", "99.9%"} {
		if !bytes.Contains(svg, []byte(want)) {
			t.Errorf("%q is not in the chart", want)
		}
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *rewrite {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s: got\n%s\nwant\n%s", path, got, want)
	}
}

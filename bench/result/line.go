package result

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/ddq-io/ddq/bench/lateness"
)

// Line is the result of one workload: one JSON object. Times are milliseconds,
// CPU seconds over the measured window, rates tasks a second; 0 where a
// workload measures no such thing.
type Line struct {
	Schema      int    `json:"schema"`
	System      string `json:"system"`
	Version     string `json:"version"`
	Workload    string `json:"workload"`
	Mode        string `json:"mode,omitempty"` // how producers called: batch or single
	Store       string `json:"store"`
	Setup       string `json:"setup,omitempty"`     // default or tuned settings, where both are measured
	Settings    string `json:"settings,omitempty"`  // apart from the system's defaults
	InFlight    string `json:"in_flight,omitempty"` // of each worker, where settings are compared
	Policies    string `json:"policies,omitempty"`  // that tasks use, where these are compared
	Seed        int64  `json:"seed"`
	Tasks       int    `json:"tasks"`
	Payload     int    `json:"payload"`
	Concurrency int    `json:"concurrency"`
	Producers   int    `json:"producers"`
	Backlog     int    `json:"backlog"`
	Rate        int    `json:"rate_per_s,omitempty"` // single calls a second that were asked for

	Seconds      float64              `json:"seconds"` // length of the measured window
	EnqueuePerS  float64              `json:"enqueue_per_s"`
	ProcessPerS  float64              `json:"process_per_s"`
	EndToEndPerS float64              `json:"end_to_end_per_s"`
	LateMS       lateness.Percentiles `json:"late_ms"`
	Early        int                  `json:"early"`
	Lost         int                  `json:"lost"`
	Duplicate    int                  `json:"duplicate"`             // again, with no higher attempt
	Repeat       int                  `json:"repeat"`                // again, with a higher attempt: legal
	NeverEnded   int                  `json:"never_ended,omitempty"` // workflows
	CPU          Roles                `json:"cpu_s"`
	CPUPer100k   float64              `json:"cpu_s_per_100k"`
	RSS          Roles                `json:"rss_mb"`
	RateOfPlain  float64              `json:"rate_of_plain,omitempty"` // end to end, in parts of what it is without policies
	CPUOfPlain   Roles                `json:"cpu_of_plain,omitzero"`   // the same of each party's processor
	StoreBytes   float64              `json:"store_bytes_per_task"`
	ServerBytes  float64              `json:"server_bytes_per_task"`
	FirstMS      float64              `json:"first_ms"`
	LastMS       float64              `json:"last_ms"`
	Machine      string               `json:"machine"`

	Late *hdrhistogram.Histogram `json:"-"` // for the chart; nil when read from JSON
}

// The setups of a Line.
const (
	SetupDefault = "default" // every setting as the system ships it
	SetupTuned   = "tuned"   // set by hand for the workloads
)

// Roles is one figure for each party: the client is the harness with its
// producers and the worker process, the server the delay queue, the store what
// the server keeps tasks in when that is a process of its own.
type Roles struct {
	Client float64 `json:"client"`
	Server float64 `json:"server"`
	Store  float64 `json:"store"`
}

// Sum is that of all parties.
func (r Roles) Sum() float64 { return r.Client + r.Server + r.Store }

// Minus is what was added since another one.
func (r Roles) Minus(o Roles) Roles {
	return Roles{Round(r.Client-o.Client, 3), Round(r.Server-o.Server, 3), Round(r.Store-o.Store, 3)}
}

// Violation is what the run broke of ddq's promises, nil when nothing.
func (l Line) Violation() error {
	if l.Lost == 0 && l.Early == 0 && l.Duplicate == 0 {
		return nil
	}
	return fmt.Errorf("%s %s: %d lost, %d early, %d duplicate", l.System, l.Workload, l.Lost, l.Early, l.Duplicate)
}

// Against sets what a line comes to in parts of another one.
func (l Line) Against(plain *Line) Line {
	part := func(of, in float64) float64 {
		if in == 0 {
			return 0
		}
		return Round(of/in, 3)
	}
	l.RateOfPlain = part(l.EndToEndPerS, plain.EndToEndPerS)
	l.CPUOfPlain = Roles{part(l.CPU.Client, plain.CPU.Client), part(l.CPU.Server, plain.CPU.Server), part(l.CPU.Store, plain.CPU.Store)}
	return l
}

// Round keeps figures readable: what is cut is far below what can be measured.
func Round(x float64, digits int) float64 {
	scale := math.Pow10(digits)
	return math.Round(x*scale) / scale
}

// Machine says what the figures were made on.
func Machine() string {
	model := "unknown CPU"
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			model = strings.TrimSpace(value)
			break
		}
	}
	return fmt.Sprintf("%d cores, %s, %s, %s/%s", runtime.NumCPU(), model, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

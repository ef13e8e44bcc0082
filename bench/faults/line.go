package faults

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/ddq-io/ddq/bench/lateness"
	"github.com/ddq-io/ddq/bench/ledger/verdict"
)

// Line is what came of one round.
type Line struct {
	Schema  int              `json:"schema"`
	Fault   string           `json:"fault"`
	Store   string           `json:"store"`
	Nodes   int              `json:"nodes"`
	Seed    uint64           `json:"seed"`
	OK      bool             `json:"ok"`
	Summary string           `json:"summary"`
	Strikes int              `json:"strikes"`
	Seconds float64          `json:"seconds"`
	Ledger  string           `json:"ledger,omitempty"`  // where it was left
	Skipped string           `json:"skipped,omitempty"` // why it could not be played here
	Failed  string           `json:"failed,omitempty"`  // why it came to no verdict
	Verdict *verdict.Verdict `json:"verdict,omitempty"`
}

// write prints the line.
func (l Line) write(w io.Writer, output string) error {
	if output == "json" {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		return enc.Encode(l)
	}
	if l.Verdict == nil {
		_, err := fmt.Fprintf(w, "%-17s %-19s seed %-4d %s%s\n", l.Fault, l.Store, l.Seed, l.Summary, colon(l.Skipped+l.Failed))
		return err
	}
	calmly, broken, without := l.figures()
	v := l.Verdict
	_, err := fmt.Fprintf(w, "%-17s %-19s seed %-4d %-4s %3d strikes %7d tasks %7d deliveries %6d unknown; late p99 %.0f ms calm, %.0f ms broken, worst %.0f ms; no delivery for %.0f ms\n",
		l.Fault, l.Store, l.Seed, l.Summary, l.Strikes, v.Acknowledged, v.Deliveries, v.Unknown, calmly.P99, broken.P99, broken.Max, without)
	return err
}

// colon sets a reason off.
func colon(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}

// figures are the worst of all calm phases, of all others, and of the times without
// a delivery in those.
func (l Line) figures() (calmly, broken lateness.Percentiles, without float64) {
	for _, p := range l.Verdict.Phases {
		if p.Name == "calm" {
			calmly.P99, calmly.Max = max(calmly.P99, p.LateMS.P99), max(calmly.Max, p.LateMS.Max)
			continue
		}
		broken.P99, broken.Max = max(broken.P99, p.LateMS.P99), max(broken.Max, p.LateMS.Max)
		without = max(without, p.NoDeliveryMS)
	}
	return calmly, broken, without
}

package verdict

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
)

// Verdict is what came of checking a history.
type Verdict struct {
	Events       int               `json:"events"`
	Clients      int               `json:"clients"`
	Tasks        int               `json:"tasks"`
	Acknowledged int               `json:"acknowledged"`
	Deliveries   int               `json:"deliveries"`
	Dead         int               `json:"dead"` // in the dead letters at the end
	Calls        int               `json:"calls"`
	Unknown      int               `json:"unknown"`   // calls whose outcome nobody knows
	Refused      int               `json:"refused"`   // settlements and changes that came too late
	Ambiguous    int               `json:"ambiguous"` // tasks that may have lived twice
	Told         int               `json:"told"`      // changes of tasks, to watchers
	Audited      bool              `json:"audited"`
	Counts       map[Violation]int `json:"violations"`
	Offences     []Offence         `json:"offences,omitempty"`
	Phases       []Phase           `json:"phases"`

	// For the chart: when the history began, in Unix nanoseconds, its faults, and
	// lateness by the time at which tasks were due.
	Began  int64   `json:"began_unix_ns"`
	Faults []Band  `json:"faults"`
	Series []Point `json:"series"`
}

// OK reports whether every promise was kept, as far as the history can tell. One
// without tasks or without an audit cannot.
func (v *Verdict) OK() bool { return len(v.Offences) == 0 && v.Audited && v.Acknowledged > 0 }

// Count puts the offences into the order in which they began, and counts them by what they are.
func (v *Verdict) Count() {
	slices.SortFunc(v.Offences, func(a, b Offence) int {
		return cmp.Or(cmp.Compare(a.Timeline[0].Mono, b.Timeline[0].Mono), cmp.Compare(a.Task, b.Task), cmp.Compare(a.Why, b.Why))
	})
	for _, o := range v.Offences {
		v.Counts[o.Violation]++
	}
}

// Summary says what was violated, in one line.
func (v *Verdict) Summary() string {
	var parts []string
	for _, kind := range Violations() {
		if n := v.Counts[kind]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, kind))
		}
	}
	switch {
	case len(parts) > 0:
		return strings.Join(parts, ", ")
	case v.Acknowledged == 0:
		return "nothing was acknowledged"
	case !v.Audited:
		return "nobody looked at the end"
	}
	return "ok"
}

// WriteJSON writes the verdict as one object.
func (v *Verdict) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// WriteText writes the verdict for people, with the timelines of the first offenders.
func (v *Verdict) WriteText(w io.Writer, timelines int) error {
	if _, err := fmt.Fprintf(w, "%d tasks, %d acknowledged, %d deliveries, %d calls of which %d ended unknown, %d changes told; %d events of %d clients\n\n%s\n\n",
		v.Tasks, v.Acknowledged, v.Deliveries, v.Calls, v.Unknown, v.Told, v.Events, v.Clients, v.phaseTable()); err != nil {
		return err
	}
	for i, o := range v.Offences {
		if i == timelines {
			fmt.Fprintf(w, "%d more offenders, see --timelines\n", len(v.Offences)-i)
			break
		}
		fmt.Fprintf(w, "%s: %s/%s: %s\n%s\n", o.Violation, o.Topic, o.Task, o.Why, o.Lines())
	}
	_, err := fmt.Fprintln(w, v.Summary())
	return err
}

func (v *Verdict) phaseTable() string {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.AppendHeader(table.Row{"phase", "seconds", "tasks due", "p50 ms", "p99 ms", "p99.9 ms", "max ms", "no delivery ms", "no enqueue ms"})
	for _, p := range v.Phases {
		t.AppendRow(table.Row{p.Name, p.Seconds, p.Tasks, p.LateMS.P50, p.LateMS.P99, p.LateMS.P999, p.LateMS.Max, p.NoDeliveryMS, p.NoEnqueueMS})
	}
	return t.Render()
}

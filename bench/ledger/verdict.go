package ledger

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

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

// Band is the time of a fault, in seconds from the beginning.
type Band struct {
	From float64 `json:"from_s"`
	To   float64 `json:"to_s"`
}

// Point is the lateness of what became due in a step: seconds from the beginning, and
// milliseconds.
type Point struct {
	At  float64 `json:"at_s"`
	P50 float64 `json:"p50_ms"`
	Max float64 `json:"max_ms"`
}

// OK reports whether every promise was kept, as far as the history can tell. One
// without tasks or without an audit cannot.
func (v *Verdict) OK() bool { return len(v.Offences) == 0 && v.Audited && v.Acknowledged > 0 }

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

// Lines is the timeline, a line an event, in milliseconds from the first.
func (o Offence) Lines() string {
	var b strings.Builder
	for _, e := range o.Timeline {
		fmt.Fprintf(&b, "  %12.3f  %-10s %s\n", milliseconds(time.Duration(e.Mono-o.Timeline[0].Mono)), e.Client, e.describe())
	}
	return b.String()
}

// describe is what happened in a few words.
func (e *Event) describe() string {
	words := []string{string(e.Kind)}
	add := func(ok bool, format string, args ...any) {
		if ok {
			words = append(words, fmt.Sprintf(format, args...))
		}
	}
	add(e.Op != "", "%s", e.Op)
	add(e.Call != 0, "#%d", e.Call)
	add(e.Result != "", "%s", e.Result)
	add(e.Attempt != 0, "attempt %d", e.Attempt)
	add(e.Token != "", "hold %.8s", e.Token)
	add(e.Due != 0, "due %s", time.UnixMilli(e.Due).UTC().Format("15:04:05.000"))
	add(e.HoldMS != 0, "for %d ms", e.HoldMS)
	add(e.Conflict != "", "or %s", e.Conflict)
	add(e.ID != "", "task %s", e.ID)
	add(e.IfVersion != 0, "if version %d", e.IfVersion)
	add(e.Version != 0, "version %d", e.Version)
	add(e.Group != "", "of %s", e.Group)
	add(e.DelayMS != 0, "again in %d ms", e.DelayMS)
	add(e.State != "", "%s after %d of %d retries", e.State, e.Retries, e.MaxRetries)
	add(e.Outcome != "", "%s", e.Outcome)
	for _, a := range e.History {
		add(true, "[%d %s by %s from %d to %d]", a.Number, a.Outcome, a.Worker, a.Started, a.Ended)
	}
	if x := e.Change; x != nil {
		add(true, "%s at %d of shard %d", x.What, x.Position, x.Shard)
		add(x.Attempt != 0, "attempt %d", x.Attempt)
		add(x.Version != 0, "version %d", x.Version)
		add(x.Due != 0, "due %s", time.UnixMilli(x.Due).UTC().Format("15:04:05.000"))
		add(x.Reason != "" || x.Outcome != "", "%s %s", x.Reason, x.Outcome)
		add(x.Worker != "", "by %s", x.Worker)
		add(true, "made at %s", time.UnixMicro(x.At).UTC().Format("15:04:05.000000"))
	}
	add(e.Reason != "", "(%s)", e.Reason)
	add(true, "at %s", time.Unix(0, e.Wall).UTC().Format("15:04:05.000"))
	return strings.Join(words, " ")
}

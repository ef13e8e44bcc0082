package result

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// WriteJSON writes one line.
func WriteJSON(w io.Writer, l Line) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(l)
}

// WorkloadSchedules is of lines whose tasks are occurrences of schedules: those without a run are
// lost, and those with two are duplicates.
const WorkloadSchedules = "schedules"

// WorkloadWorkflows is of lines whose tasks are steps of workflows: those a second, how long after the
// last step that it waits for one begins, and workflows that never ended.
const WorkloadWorkflows = "workflows"

// workloads are in the order in which their tables are written.
var workloads = []string{"throughput", "lateness", "herd", "trickle", "backlog", "restart", "in-flight", "policies", WorkloadSchedules, WorkloadWorkflows}

// WriteTables writes a table for each workload, systems side by side: first with
// default settings, then tuned, where both were measured. A column in which no row
// has anything is left out.
func WriteTables(w io.Writer, lines []Line) error {
	for _, setup := range []string{"", SetupDefault, SetupTuned} {
		for _, workload := range workloads {
			if err := writeTable(w, workload, setup, lines); err != nil {
				return err
			}
		}
	}
	return writeNotes(w, lines)
}

// writeTable writes the table of one workload in one setup, nothing when it was not run.
func writeTable(w io.Writer, workload, setup string, lines []Line) error {
	rows := slices.DeleteFunc(slices.Clone(lines), func(l Line) bool { return l.Workload != workload || l.Setup != setup })
	if len(rows) == 0 {
		return nil
	}
	head := workload
	if setup != "" {
		head += ", " + setup + " settings"
	}
	_, err := fmt.Fprintf(w, "%s\n%s\n\n", head, render(rows))
	return err
}

// column is one figure of the table; cell returns "" for none.
type column struct {
	head string
	cell func(Line) string
}

var columns = []column{
	{"system", func(l Line) string { return l.System }},
	{"store", func(l Line) string { return l.Store }},
	{"mode", func(l Line) string { return l.Mode }},
	{"in flight", func(l Line) string { return l.InFlight }},
	{"policies", func(l Line) string { return l.Policies }},
	{"tasks", func(l Line) string { return strconv.Itoa(l.Tasks) }},
	{"rate/s", func(l Line) string { return number(float64(l.Rate), 0) }},
	{"backlog", func(l Line) string { return strconv.Itoa(l.Backlog) }},
	{"enqueue/s", func(l Line) string { return number(l.EnqueuePerS, 0) }},
	{"process/s", func(l Line) string { return number(l.ProcessPerS, 0) }},
	{"end to end/s", func(l Line) string { return number(l.EndToEndPerS, 0) }},
	{"first ms", func(l Line) string { return number(l.FirstMS, 1) }},
	{"p50 ms", func(l Line) string { return number(l.LateMS.P50, 2) }},
	{"p90 ms", func(l Line) string { return number(l.LateMS.P90, 2) }},
	{"p99 ms", func(l Line) string { return number(l.LateMS.P99, 2) }},
	{"p99.9 ms", func(l Line) string { return number(l.LateMS.P999, 2) }},
	{"max ms", func(l Line) string { return number(l.LateMS.Max, 2) }},
	{"last ms", func(l Line) string { return number(l.LastMS, 1) }},
	{"early", func(l Line) string { return strconv.Itoa(l.Early) }},
	{"lost", func(l Line) string { return strconv.Itoa(l.Lost) }},
	{"duplicate", func(l Line) string { return strconv.Itoa(l.Duplicate) }},
	{"never ended", func(l Line) string { return ofWorkflows(l, strconv.Itoa(l.NeverEnded)) }},
	{"repeat", func(l Line) string { return number(float64(l.Repeat), 0) }},
	{"store B/task", func(l Line) string { return number(l.StoreBytes, 0) }},
	{"server B/task", func(l Line) string { return number(l.ServerBytes, 0) }},
	{"cpu s client+server+store", func(l Line) string { return roles(l.CPU, 2) }},
	{"cpu s/100k", func(l Line) string { return number(l.CPUPer100k, 2) }},
	{"rate of none", func(l Line) string { return number(l.RateOfPlain, 2) }},
	{"cpu of none", func(l Line) string { return roles(l.CPUOfPlain, 2) }},
	{"rss MB", func(l Line) string { return roles(l.RSS, 0) }},
}

func render(rows []Line) string {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	head := table.Row{}
	cells := make([]table.Row, len(rows))
	var align []table.ColumnConfig
	for _, c := range columns {
		if !filled(c, rows) {
			continue
		}
		head = append(head, c.head)
		for i, l := range rows {
			cells[i] = append(cells[i], c.cell(l))
		}
		if len(head) > 3 {
			align = append(align, table.ColumnConfig{Number: len(head), Align: text.AlignRight})
		}
	}
	t.SetColumnConfigs(align)
	t.AppendHeader(head)
	t.AppendRows(cells)
	return t.Render()
}

func filled(c column, rows []Line) bool {
	for _, l := range rows {
		if c.cell(l) != "" {
			return true
		}
	}
	return false
}

// writeNotes says once what stands in every row.
func writeNotes(w io.Writer, lines []Line) error {
	said := map[string]bool{}
	for _, l := range lines {
		note := fmt.Sprintf("%s %s", l.System, l.Version)
		if l.Setup != "" {
			note += ", " + l.Setup + " settings"
		}
		if l.Settings != "" {
			note += ": " + l.Settings
		}
		load := fmt.Sprintf("payload %d B, concurrency %d, producers %d", l.Payload, l.Concurrency, l.Producers)
		if l.Workload == WorkloadSchedules || l.Workload == WorkloadWorkflows {
			load = fmt.Sprintf("%s: concurrency %d", l.Workload, l.Concurrency)
		}
		for _, s := range []string{note, load, l.Machine} {
			if said[s] {
				continue
			}
			said[s] = true
			if _, err := fmt.Fprintln(w, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// number is "" for a figure that was not measured.
func number(x float64, digits int) string {
	if x == 0 {
		return ""
	}
	return strconv.FormatFloat(x, 'f', digits, 64)
}

// ofWorkflows is "" for a line of another workload.
func ofWorkflows(l Line, text string) string {
	if l.Workload != WorkloadWorkflows {
		return ""
	}
	return text
}

func roles(r Roles, digits int) string {
	if r.Sum() == 0 {
		return ""
	}
	part := func(x float64) string { return strconv.FormatFloat(x, 'f', digits, 64) }
	return part(r.Client) + "+" + part(r.Server) + "+" + part(r.Store)
}

package faults

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/ddq-io/ddq/bench/ledger/chart"
)

// writeReport writes what came of all rounds into dir: a table, one object a line, and
// a picture.
func writeReport(dir string, lines []Line) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(dir, "rounds.jsonl"))
	if err != nil {
		return err
	}
	defer f.Close()
	t := table.NewWriter()
	t.AppendHeader(table.Row{"fault", "store", "seed", "verdict", "strikes", "tasks", "deliveries", "unknown calls", "calm p99 ms", "broken p99 ms", "worst ms", "no delivery ms"})
	var runs []chart.Run
	for _, l := range lines {
		if err := l.write(f, "json"); err != nil {
			return err
		}
		v := l.Verdict
		if v == nil {
			t.AppendRow(table.Row{l.Fault, l.Store, l.Seed, l.Summary + colon(l.Skipped+l.Failed)})
			continue
		}
		calmly, broken, without := l.figures()
		t.AppendRow(table.Row{l.Fault, l.Store, l.Seed, l.Summary, l.Strikes, v.Acknowledged, v.Deliveries, v.Unknown, calmly.P99, broken.P99, broken.Max, without})
		runs = append(runs, chart.Run{Name: l.Fault + ", " + l.Store, Verdict: v})
	}
	text := fmt.Sprintf("# Faults\n\nRounds one after the other. Red: the worst of each fifth of a second; blue: the middle; shaded: while something was broken.\n\n"+
		"![lateness over time](lateness.svg)\n\n%s\n", t.RenderMarkdown())
	if err := os.WriteFile(filepath.Join(dir, "report.md"), []byte(text), 0o644); err != nil {
		return err
	}
	if err := chart.Write(filepath.Join(dir, "lateness.svg"), runs); err != nil {
		return err
	}
	return f.Close()
}

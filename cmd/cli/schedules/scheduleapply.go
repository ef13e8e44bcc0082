package schedules

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/cmd/cli/session"
	"github.com/ddq-io/ddq/cmd/cli/terminal"
)

// applyFlags say what to do with a file of schedules.
type applyFlags struct {
	file   string
	prune  bool
	labels map[string]string
	dryRun bool
	yes    bool
}

// scheduleDiff is what applying a file does to one schedule.
type scheduleDiff struct {
	Action  string   `json:"action"` // create, change, delete, none
	Topic   string   `json:"topic"`
	Name    string   `json:"name"`
	Before  []string `json:"before,omitempty"` // lines that go
	After   []string `json:"after,omitempty"`  // and those that come
	Applied bool     `json:"applied"`

	Warnings []client.DueWarning `json:"warnings,omitempty"`

	schedule client.Schedule
	version  int64
}

func (s scheduleCommands) apply() *cobra.Command {
	var f applyFlags
	cmd := &cobra.Command{
		Use:   "apply -f FILE",
		Short: "Make schedules be as a file says: shows what differs, and changes that",
		Long: `Make schedules be as a YAML file says. It has a list called schedules; the names in it are
those of ddq schedule put, with underscores:

  schedules:
    - {topic: report, name: nightly, cron: "30 2 * * *", zone: Europe/Berlin, payload: go}
    - {topic: cache, name: refresh, every: 10m, from: end, overlap: skip, labels: {team: web}}

What differs is shown first. The same file again does nothing. With --prune schedules that have the
labels of --label and are not in the file are deleted.`,
		Example: "  ddq schedule apply -f schedules.yaml --dry-run",
		Args:    session.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return s.applyFile(cmd, &f) },
	}
	fs := cmd.Flags()
	fs.StringVarP(&f.file, "file", "f", "", "YAML file with the schedules; - is stdin (required)")
	fs.BoolVar(&f.prune, "prune", false, "delete schedules that have the labels of --label and are not in the file")
	fs.StringToStringVar(&f.labels, "label", nil, "with --prune: which schedules the file is about")
	fs.BoolVar(&f.dryRun, "dry-run", false, "show what differs, and change nothing")
	fs.BoolVar(&f.yes, "yes", false, "do not ask before schedules are deleted")
	return cmd
}

func (s scheduleCommands) applyFile(cmd *cobra.Command, f *applyFlags) error {
	switch {
	case f.file == "":
		return session.Usagef("-f is required: a YAML file, or - for stdin")
	case f.prune && len(f.labels) == 0:
		return session.Usagef("--prune needs --label, which says what the file is about")
	case !f.prune && len(f.labels) > 0:
		return session.Usagef("--label goes with --prune")
	}
	text, err := terminal.ReadAll(s.In, f.file)
	if err != nil {
		return err
	}
	wanted, err := readSchedules(text)
	if err != nil {
		return session.Usagef("%s: %v", f.file, err)
	}
	return s.Call(cmd, func(ctx context.Context, at *client.Client) error {
		diffs, err := s.compare(ctx, at, wanted, f)
		if err != nil {
			return err
		}
		if s.Output != terminal.FormatJSON {
			s.showDiffs(diffs)
		}
		if n := deletions(diffs); n > 0 && !f.dryRun {
			if err := s.Confirm(f.yes, fmt.Sprintf("delete %d schedules that are not in the file", n)); err != nil {
				return err
			}
		}
		return s.carryOut(ctx, at, diffs, f.dryRun)
	})
}

// compare says what differs between the file and the server. The server checks each
// schedule of the file, so that nothing is changed when one cannot be.
func (s scheduleCommands) compare(ctx context.Context, at *client.Client, wanted []client.Schedule, f *applyFlags) (diffs []scheduleDiff, err error) {
	for i := range wanted {
		d := scheduleDiff{Action: "create", Topic: wanted[i].Topic, Name: wanted[i].Name, schedule: wanted[i]}
		after := viewSchedule(&wanted[i])
		there, err := at.GetSchedule(ctx, d.Topic, d.Name)
		switch {
		case err == nil:
			before := viewSchedule(&there.Schedule)
			d.Before, d.After = differing(before.lines(), after.lines())
			if d.Action, d.version = "change", there.Version; len(d.Before)+len(d.After) == 0 {
				d.Action = "none"
			}
		case errors.Is(err, client.ErrNotFound):
			d.After = after.lines()
		default:
			return nil, err
		}
		if d.Action != "none" {
			p, err := at.PreviewSchedule(ctx, wanted[i], client.PreviewRange{Count: 1})
			if err != nil {
				return nil, fmt.Errorf("schedule %s of topic %s: %w", d.Name, d.Topic, err)
			}
			d.Warnings = p.Warnings
		}
		diffs = append(diffs, d)
	}
	if !f.prune {
		return diffs, nil
	}
	for there, err := range at.ListSchedules(ctx, client.ScheduleFilter{Labels: f.labels}) {
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(wanted, func(w client.Schedule) bool { return w.Topic == there.Topic && w.Name == there.Name }) {
			before := viewSchedule(&there.Schedule)
			diffs = append(diffs, scheduleDiff{Action: "delete", Topic: there.Topic, Name: there.Name, Before: before.lines()})
		}
	}
	return diffs, nil
}

// differing returns the lines that only one of two schedules has.
func differing(before, after []string) (gone, come []string) {
	for _, line := range before {
		if !slices.Contains(after, line) {
			gone = append(gone, line)
		}
	}
	for _, line := range after {
		if !slices.Contains(before, line) {
			come = append(come, line)
		}
	}
	return gone, come
}

func deletions(diffs []scheduleDiff) (n int) {
	for i := range diffs {
		if diffs[i].Action == "delete" {
			n++
		}
	}
	return n
}

// carryOut makes the changes that were shown: a schedule that was changed meanwhile is not
// overwritten.
func (s scheduleCommands) carryOut(ctx context.Context, at *client.Client, diffs []scheduleDiff, dryRun bool) error {
	changed := 0
	for i := range diffs {
		d := &diffs[i]
		if d.Action != "none" {
			changed++
		}
		if d.Action != "none" && !dryRun {
			if err := d.carryOut(ctx, at); err != nil {
				return fmt.Errorf("schedule %s of topic %s: %w", d.Name, d.Topic, err)
			}
			d.Applied = true
		}
		if s.Output == terminal.FormatJSON {
			if err := s.WriteJSON(d); err != nil {
				return err
			}
		}
	}
	if s.Output == terminal.FormatJSON {
		return nil
	}
	_, err := fmt.Fprintln(s.Out, appliedText(changed, len(diffs)-changed, dryRun))
	return err
}

func (d *scheduleDiff) carryOut(ctx context.Context, at *client.Client) error {
	if d.Action == "delete" {
		_, err := at.DeleteSchedule(ctx, d.Topic, d.Name, false)
		return err
	}
	_, err := at.PutScheduleIf(ctx, d.schedule, d.version)
	return err
}

func appliedText(changed, same int, dryRun bool) string {
	switch {
	case changed == 0:
		return fmt.Sprintf("Nothing differs: %d schedules are as the file says.", same)
	case dryRun:
		return fmt.Sprintf("%d schedules differ, %d do not. Nothing was changed.", changed, same)
	}
	return fmt.Sprintf("%d schedules changed, %d were as the file says.", changed, same)
}

// showDiffs prints what differs, on stderr: what was done goes to stdout.
func (s scheduleCommands) showDiffs(diffs []scheduleDiff) {
	for i := range diffs {
		d := &diffs[i]
		if d.Action == "none" {
			continue
		}
		fmt.Fprintf(s.Err, "%s %s of topic %s\n", d.Action, terminal.Line(d.Name), d.Topic)
		for _, line := range d.Before {
			fmt.Fprintf(s.Err, "  - %s\n", terminal.Line(line))
		}
		for _, line := range d.After {
			fmt.Fprintf(s.Err, "  + %s\n", terminal.Line(line))
		}
		warn(s.Session, d.Warnings)
	}
}

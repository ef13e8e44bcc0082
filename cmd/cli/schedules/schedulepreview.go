package schedules

import (
	"cmp"
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/cmd/cli/session"
	"github.com/ddq-io/ddq/cmd/cli/terminal"
	"github.com/ddq-io/ddq/cmd/node"
)

// instantAhead is a moment on the command line: RFC 3339, or how far ahead.
type instantAhead struct {
	text string
	at   time.Time
}

func (i *instantAhead) Type() string   { return "time" }
func (i *instantAhead) String() string { return i.text }

func (i *instantAhead) Set(text string) error {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		*i = instantAhead{text, at}
		return nil
	}
	ahead, err := node.ParseDuration(text)
	if err != nil {
		return session.Usagef("want RFC 3339 such as 2030-01-31T15:04:05Z, or how far ahead such as 90m")
	}
	*i = instantAhead{text, time.Now().Add(ahead)}
	return nil
}

func (s scheduleCommands) preview() *cobra.Command {
	var topic string
	var from, to instantAhead
	var count int
	cmd := &cobra.Command{
		Use:     "preview NAME",
		Short:   "Show when a schedule runs next, by its own clock, and what would be skipped",
		Example: "  ddq schedule preview nightly --from 2030-03-29T00:00:00Z --count 5",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if count < 1 {
				return session.Usagef("--count must be at least 1, not %d", count)
			}
			r := client.PreviewRange{From: from.at, To: to.at, Count: count}
			return s.Call(cmd, func(ctx context.Context, of *client.Client) error {
				p, err := of.PreviewExisting(ctx, topic, args[0], r)
				if err != nil {
					return err
				}
				return s.printPreview(&p)
			})
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&topic, "topic", "", anyScheduleTopic)
	fs.Var(&from, "from", "those after this time: RFC 3339, or how far ahead (default now)")
	fs.Var(&to, "to", "none after this time: RFC 3339, or how far ahead")
	fs.IntVar(&count, "count", 10, "at most so many: 1 to 1,000")
	return cmd
}

// previewNew shows what a schedule would do that is not put.
func (s scheduleCommands) previewNew(ctx context.Context, of *client.Client, schedule client.Schedule) error {
	p, err := of.PreviewSchedule(ctx, schedule, client.PreviewRange{})
	if err != nil {
		return err
	}
	return s.printPreview(&p)
}

func (s scheduleCommands) printPreview(p *client.Preview) error {
	out := s.Listing("local time", "occurrence", "due", "skipped")
	for _, o := range p.Occurrences {
		due := ""
		if !o.Due.Equal(o.Occurrence) {
			due = cmp.Or(terminal.Clock(o.Due), "known once it is put")
		}
		if err := out.Add(o, localText(o.Local), terminal.Clock(o.Occurrence), due, dashed(o.Skipped.String())); err != nil {
			return err
		}
	}
	err := out.End(nil, "No run is to come.")
	warn(s.Session, p.Warnings)
	if err == nil && p.Audience != nil && s.Output != terminal.FormatJSON {
		err = audienceCommands(s).printPreview(p.Audience)
	}
	return err
}

// localText adds the day of the week to a local time.
func localText(text string) string {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return text
	}
	return at.Format("Mon ") + text
}

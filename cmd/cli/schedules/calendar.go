package schedules

import (
	"context"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/cmd/cli/session"
	"github.com/ddq-io/ddq/cmd/cli/terminal"
)

// calendarCommands are those of ddq calendar.
type calendarCommands struct{ *session.Session }

// CalendarCommand is ddq calendar.
func CalendarCommand(parent *session.Session) *cobra.Command {
	c := calendarCommands{parent}
	return session.Group("calendar", "Say which days and hours schedules leave out", c.put(), c.list(), c.describe(), c.delete())
}

func (c calendarCommands) put() *cobra.Command {
	var asked client.Calendar
	var spans []string
	cmd := &cobra.Command{
		Use:     "put NAME (--day 2030-12-25 | --yearly 12-25 | --weekday SAT | --span FROM/TO)",
		Short:   "Create a calendar, or change it: it is all that the flags say",
		Example: "  ddq calendar put holidays --yearly 01-01 --yearly 12-25 --day 2030-04-22 --weekday SUN --span 2030-12-24T12:00/2030-12-27T00:00",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			asked.Name = args[0]
			for _, text := range spans {
				from, to, found := strings.Cut(text, "/")
				if !found {
					return session.Usagef("--span is two local times, as in 2030-12-24T12:00/2030-12-27T00:00, not %q", text)
				}
				asked.Spans = append(asked.Spans, client.CalendarSpan{From: from, To: to})
			}
			if len(asked.Days)+len(asked.Yearly)+len(asked.Weekdays)+len(asked.Spans) == 0 {
				return session.Usagef("say what it leaves out: --day, --yearly, --weekday or --span")
			}
			return c.Call(cmd, func(ctx context.Context, to *client.Client) error {
				done, err := to.PutCalendar(ctx, asked)
				if err != nil {
					return err
				}
				return c.Say(calendarPutView{asked.Name, done.Outcome.String(), done.Version}, "calendar %s %s: version %d", asked.Name, done.Outcome, done.Version)
			})
		},
	}
	fs := cmd.Flags()
	fs.StringSliceVar(&asked.Days, "day", nil, "a day, such as 2030-12-25; may be repeated, as all of these")
	fs.StringSliceVar(&asked.Yearly, "yearly", nil, "a day of each year, such as 12-25")
	fs.StringSliceVar(&asked.Weekdays, "weekday", nil, "a day of each week: MON, TUE, WED, THU, FRI, SAT or SUN")
	fs.StringSliceVar(&spans, "span", nil, "from one local time to before another: 2030-12-24T12:00/2030-12-27T00:00")
	return cmd
}

type calendarPutView struct {
	Name    string `json:"name"`
	Outcome string `json:"outcome"`
	Version int64  `json:"version"`
}

func (c calendarCommands) list() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the calendars",
		Args:  session.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := c.Listing("name", "days", "yearly", "weekdays", "spans")
			err := c.Call(cmd, func(ctx context.Context, from *client.Client) error {
				return terminal.Each(from.ListCalendars(ctx), 0, func(found client.Calendar) error {
					return out.Add(found, found.Name, len(found.Days), len(found.Yearly), strings.Join(found.Weekdays, " "), len(found.Spans))
				})
			})
			return out.End(err, "No calendars.")
		},
	}
}

func (c calendarCommands) describe() *cobra.Command {
	return &cobra.Command{
		Use:   "describe NAME",
		Short: "Show what a calendar leaves out",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.Call(cmd, func(ctx context.Context, from *client.Client) error {
				found, err := from.GetCalendar(ctx, args[0])
				if err != nil {
					return err
				}
				rows := []table.Row{{"name", found.Name}, {"version", found.Version}}
				for _, list := range [...]struct {
					name  string
					items []string
				}{{"day", found.Days}, {"yearly", found.Yearly}, {"weekday", found.Weekdays}} {
					for _, item := range list.items {
						rows = append(rows, table.Row{list.name, item})
					}
				}
				for _, s := range found.Spans {
					rows = append(rows, table.Row{"span", s.From + " to " + s.To})
				}
				return c.Record(found, rows...)
			})
		},
	}
}

type deletedCalendarView struct {
	Name    string `json:"name"`
	Deleted bool   `json:"deleted"`
}

func (c calendarCommands) delete() *cobra.Command {
	return &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a calendar that no schedule names",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.Call(cmd, func(ctx context.Context, at *client.Client) error {
				if err := at.DeleteCalendar(ctx, args[0]); err != nil {
					return err
				}
				return c.Say(deletedCalendarView{args[0], true}, "calendar %s deleted", args[0])
			})
		},
	}
}

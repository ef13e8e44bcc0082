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

// scheduleCommands are those of ddq schedule.
type scheduleCommands struct{ *session.Session }

// ScheduleCommand is ddq schedule.
func ScheduleCommand(parent *session.Session) *cobra.Command {
	s := scheduleCommands{parent}
	return session.Group("schedule", "Make tasks by a timetable: cron, intervals, instants",
		s.put(), s.list(), s.describe(), s.preview(), s.pause(), s.resume(), s.trigger(), s.backfill(), s.delete(), s.apply(), s.dryRun())
}

const anyScheduleTopic = "topic of the schedule (default: look in every topic)"

func (s scheduleCommands) put() *cobra.Command {
	var f scheduleFlags
	cmd := &cobra.Command{
		Use:   "put NAME --topic TOPIC (--cron EXPRESSION | --every 10m | --at TIME)",
		Short: "Create a schedule, or change it in place; the same again changes nothing",
		Example: `  ddq schedule put nightly --topic report --cron '30 2 * * *' --zone Europe/Berlin --payload go
  ddq schedule put refresh --topic cache --every 10m --from end
  ddq schedule put launch --topic mail --at 2030-01-31T09:00:00Z --at 2030-02-28T09:00:00Z --dry-run`,
		Args: cobra.ExactArgs(1),
	}
	f.flags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		schedule, err := f.schedule(cmd.Flags(), args[0], s.In)
		if err != nil {
			return err
		}
		return s.Call(cmd, func(ctx context.Context, to *client.Client) error {
			if f.dryRun {
				return s.previewNew(ctx, to, schedule)
			}
			put := to.PutSchedule
			if cmd.Flags().Changed("if-version") {
				put = func(ctx context.Context, schedule client.Schedule) (client.SchedulePut, error) {
					return to.PutScheduleIf(ctx, schedule, f.ifVersion)
				}
			}
			done, err := put(ctx, schedule)
			if err != nil {
				return err
			}
			return s.sayPut(schedule, done)
		})
	}
	return cmd
}

// putView is a schedule that was put.
type putView struct {
	Topic    string `json:"topic"`
	Name     string `json:"name"`
	Outcome  string `json:"outcome"`
	Version  int64  `json:"version"`
	NextTime string `json:"next_time,omitempty"`

	Warnings []client.DueWarning `json:"warnings,omitempty"`
}

func (s scheduleCommands) sayPut(of client.Schedule, done client.SchedulePut) error {
	v := putView{of.Topic, of.Name, done.Outcome.String(), done.Version, terminal.Clock(done.Next), done.Warnings}
	if s.Output != terminal.FormatJSON {
		defer warn(s.Session, done.Warnings)
	}
	next := ""
	if v.NextTime != "" {
		next = ", next " + v.NextTime + untilText(done.Next)
	}
	return s.Say(v, "schedule %s of topic %s %s: version %d%s", v.Name, v.Topic, v.Outcome, v.Version, next)
}

// untilText says how far away a time is.
func untilText(at time.Time) string {
	left := time.Until(at)
	if left <= 0 {
		return ""
	}
	return " (in " + node.DurationText(left.Round(time.Second)) + ")"
}

func (s scheduleCommands) list() *cobra.Command {
	var f client.ScheduleFilter
	var skipped session.Instant
	var state string
	var limit int
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List schedules: when each runs next, and how the last run ended",
		Example: `  ddq schedule list --topic report --state paused --label team=data
  ddq schedule list --skipped-since 24h`,
		Args: session.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if f.State, err = parseScheduleState(state); err != nil {
				return err
			}
			if skipped.Given {
				f.SkippedSince = skipped.Time(time.Now())
			}
			out := s.Listing("topic", "name", "when", "state", "next", "last run")
			err = s.Call(cmd, func(ctx context.Context, from *client.Client) error {
				return terminal.Each(from.ListSchedules(ctx, f), limit, func(found client.ScheduleStatus) error {
					v := viewScheduleStatus(&found)
					return out.Add(v, v.Topic, v.Name, v.when(), v.State, cmp.Or(v.NextTime, "none"), v.lastRun())
				})
			})
			return out.End(err, "No schedules.")
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&f.Topic, "topic", "", "only those of this topic")
	fs.StringVar(&f.Prefix, "prefix", "", "only those whose name begins like this")
	fs.StringVar(&state, "state", "", "only those that are active, paused or finished")
	fs.StringToStringVar(&f.Labels, "label", nil, "only those with this label: --label team=data")
	fs.Var(&skipped, "skipped-since", "only those that have skipped an occurrence since, as far as their history goes: RFC 3339, or 1h for an hour ago")
	fs.IntVar(&limit, "limit", 100, "most schedules to list; 0 is all")
	return cmd
}

func parseScheduleState(text string) (client.ScheduleState, error) {
	if text == "" {
		return 0, nil
	}
	for _, state := range [...]client.ScheduleState{client.ScheduleActive, client.SchedulePaused, client.ScheduleFinished} {
		if state.String() == text {
			return state, nil
		}
	}
	return 0, session.Usagef("--state is active, paused or finished, not %q", text)
}

func (s scheduleCommands) describe() *cobra.Command {
	var topic string
	cmd := &cobra.Command{
		Use:   "describe NAME",
		Short: "Show a schedule: what it says, its next time, its last runs and why others were skipped",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.Call(cmd, func(ctx context.Context, from *client.Client) error {
				found, err := from.GetSchedule(ctx, topic, args[0])
				if err != nil {
					return err
				}
				v := viewScheduleStatus(&found)
				return s.Record(v, v.rows(&found)...)
			})
		},
	}
	cmd.Flags().StringVar(&topic, "topic", "", anyScheduleTopic)
	return cmd
}

func (s scheduleCommands) pause() *cobra.Command {
	return s.setPaused("pause NAME", "Stop a schedule from making runs; what falls into the pause is skipped", "paused", (*client.Client).PauseSchedule)
}

func (s scheduleCommands) resume() *cobra.Command {
	return s.setPaused("resume NAME", "Undo pause", "resumed", (*client.Client).ResumeSchedule)
}

func (s scheduleCommands) setPaused(use, short, done string,
	call func(c *client.Client, ctx context.Context, topic, name, by, note string) (client.ScheduleStatus, error),
) *cobra.Command {
	var topic, by, note string
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.Call(cmd, func(ctx context.Context, to *client.Client) error {
				found, err := call(to, ctx, topic, args[0], cmp.Or(by, s.User()), note)
				if err != nil {
					return err
				}
				v := viewScheduleStatus(&found)
				if v.State != client.SchedulePaused.String() && v.NextTime != "" {
					done += ", next " + v.NextTime + untilText(found.Next)
				}
				return s.Say(v, "schedule %s of topic %s is %s", v.Name, v.Topic, done)
			})
		},
	}
	cmd.Flags().StringVar(&topic, "topic", "", anyScheduleTopic)
	cmd.Flags().StringVar(&by, "by", "", "who does it (default $USER)")
	cmd.Flags().StringVar(&note, "note", "", "why")
	return cmd
}

// triggerView is what a trigger made.
type triggerView struct {
	Name string `json:"name"`
	client.Triggered
}

func (s scheduleCommands) trigger() *cobra.Command {
	var t client.Trigger
	var overlap string
	cmd := &cobra.Command{
		Use:     "trigger NAME",
		Short:   "Make a run now, outside the timetable",
		Example: "  ddq schedule trigger nightly --overlap allow",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			t.Name = args[0]
			if t.Overlap, err = parseOverlap(overlap); err != nil {
				return err
			}
			return s.Call(cmd, func(ctx context.Context, to *client.Client) error {
				made, err := to.TriggerSchedule(ctx, t)
				if err != nil {
					return err
				}
				return s.Say(triggerView{t.Name, made}, "schedule %s of topic %s: %s", t.Name, made.Topic, triggeredText(made))
			})
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&t.Topic, "topic", "", anyScheduleTopic)
	fs.StringVar(&overlap, "overlap", "", "what becomes of the run while another one is open: "+overlapChoices+" (default the schedule's)")
	fs.StringVar(&t.RequestID, "request-id", "", "makes a repeat harmless: the same one again makes no second run")
	return cmd
}

func triggeredText(t client.Triggered) string {
	switch {
	case t.Waiting:
		return "the run waits for the end of the one that is open"
	case t.Repeated && t.ID == "":
		return "triggered before; that run is over"
	case t.Repeated:
		return "triggered before, " + runName(t.ID)
	}
	return "triggered, " + runName(t.ID)
}

type deletedScheduleView struct {
	Topic   string `json:"topic"`
	Name    string `json:"name"`
	Deleted bool   `json:"deleted"`
}

func (s scheduleCommands) delete() *cobra.Command {
	var topic string
	var cancel bool
	cmd := &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a schedule; open runs go on",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.Call(cmd, func(ctx context.Context, to *client.Client) error {
				foundIn, err := to.DeleteSchedule(ctx, topic, args[0], cancel)
				if err != nil {
					return err
				}
				return s.Say(deletedScheduleView{foundIn, args[0], true}, "schedule %s of topic %s deleted", args[0], foundIn)
			})
		},
	}
	cmd.Flags().StringVar(&topic, "topic", "", anyScheduleTopic)
	cmd.Flags().BoolVar(&cancel, "cancel-runs", false, "delete open runs that wait, and ask those that run to cancel, which makes them dead letters unless they are acked")
	return cmd
}

package schedules

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/cmd/cli/session"
)

// backfillView is a backfill that was accepted.
type backfillView struct {
	Name string `json:"name"`
	client.Backfilling
}

// endedBackfillView is a backfill that was cancelled.
type endedBackfillView struct {
	Topic     string `json:"topic"`
	Name      string `json:"name"`
	ID        string `json:"id"`
	Cancelled bool   `json:"cancelled"`
}

func (s scheduleCommands) backfill() *cobra.Command {
	var b client.Backfill
	var from, to session.Instant
	var overlap, cancel string
	cmd := &cobra.Command{
		Use:   "backfill NAME (--from TIME --to TIME | --cancel ID)",
		Short: "Make runs of times that have been, one after the other",
		Example: `  ddq schedule backfill nightly --from 2030-01-01T00:00:00Z --to 2030-01-08T00:00:00Z
  ddq schedule backfill nightly --from 48h --to 0s --overlap allow`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			b.Name = args[0]
			if cancel != "" {
				return s.cancelBackfill(cmd, b.Topic, b.Name, cancel)
			}
			if !from.Given || !to.Given {
				return session.Usagef("--from and --to are required")
			}
			now := time.Now()
			b.From, b.To = from.Time(now), to.Time(now)
			if b.Overlap, err = parseOverlap(overlap); err != nil {
				return err
			}
			return s.Call(cmd, func(ctx context.Context, at *client.Client) error {
				started, err := at.BackfillSchedule(ctx, b)
				if err != nil {
					return err
				}
				v := backfillView{b.Name, started}
				if started.Repeated {
					return s.Say(v, "schedule %s of topic %s: backfill %s was asked for before", b.Name, started.Topic, started.ID)
				}
				return s.Say(v, "schedule %s of topic %s: backfill %s of %d runs; describe shows how far it is", b.Name, started.Topic, started.ID, started.Total)
			})
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&b.Topic, "topic", "", anyScheduleTopic)
	fs.Var(&from, "from", "the first time: RFC 3339, or how long ago")
	fs.Var(&to, "to", "the last time: RFC 3339, or how long ago")
	fs.StringVar(&overlap, "overlap", "", "buffer-all, one run after the other (default), or allow, all at once")
	fs.StringVar(&b.ID, "id", "", "makes a repeat harmless (default a new one)")
	fs.StringVar(&cancel, "cancel", "", "end the backfill of this id instead; runs that it made go on")
	return cmd
}

func (s scheduleCommands) cancelBackfill(cmd *cobra.Command, topic, name, id string) error {
	return s.Call(cmd, func(ctx context.Context, at *client.Client) error {
		foundIn, err := at.CancelBackfill(ctx, topic, name, id)
		if err != nil {
			return err
		}
		return s.Say(endedBackfillView{foundIn, name, id, true}, "backfill %s of schedule %s of topic %s cancelled", id, name, foundIn)
	})
}

package schedules

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/cmd/cli/session"
	"github.com/ddq-io/ddq/cmd/cli/terminal"
	"github.com/ddq-io/ddq/cmd/node"
)

// ForecastCommand is ddq forecast.
func ForecastCommand(s *session.Session) *cobra.Command {
	var topic string
	var from, to instantAhead
	var r client.ForecastRange
	cmd := &cobra.Command{
		Use:   "forecast",
		Short: "Show when how many tasks are due: those that wait, and those that schedules will make",
		Long: `Show when how many tasks are due: those that wait, those that schedules will make, and those
for recipients of audiences. Bars are of several buckets where there are many; peak is the fullest of
them. With -o json each bucket is a line.`,
		Example: "  ddq forecast --topic report --to 2h --bucket 1m",
		Args:    session.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r.From, r.To = from.at, to.at
			return s.Call(cmd, func(ctx context.Context, of *client.Client) error {
				f, err := of.Forecast(ctx, topic, r)
				if err != nil {
					return err
				}
				return showForecast(s, &f)
			})
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&topic, "topic", "", "only this topic (default all)")
	fs.Var(&from, "from", "from this time on: RFC 3339, or how far ahead (default now)")
	fs.Var(&to, "to", "up to this time: RFC 3339, or how far ahead (default a day after --from)")
	node.DurationVar(fs, &r.Bucket, "bucket", time.Minute, "count in buckets of this width; at most 2,000 of them")
	return cmd
}

// bucketView is a bucket of a forecast.
type bucketView struct {
	Time       string `json:"time"`
	Pending    int64  `json:"pending"`
	Next       int64  `json:"next"`
	Later      int64  `json:"later"`
	Recipients int64  `json:"recipients"`
	Exact      bool   `json:"exact"`
}

func showForecast(s *session.Session, f *client.Forecast) error {
	if s.Output == terminal.FormatJSON {
		for i := range f.Pending {
			at := terminal.Clock(f.From.Add(time.Duration(i) * f.Bucket))
			if err := s.WriteJSON(bucketView{at, f.Pending[i], f.Next[i], f.Later[i], f.Recipients[i], f.Exact}); err != nil {
				return err
			}
		}
		return nil
	}
	out := s.Listing("from", "due", "peak", "tasks █  schedules ▒  recipients ░")
	bars := barsOf(f)
	for _, b := range bars.all {
		if err := out.Add(nil, terminal.Clock(b.from), b.due(), b.peak, bars.draw(&b)); err != nil {
			return err
		}
	}
	err := out.End(nil, "Nothing is due.")
	if f.Overdue > 0 {
		fmt.Fprintf(s.Err, "%d tasks that wait were due before.\n", f.Overdue)
	}
	if !f.Exact {
		fmt.Fprintln(s.Err, "There are so many schedules that their later runs are estimated.")
	}
	warn(s, f.Warnings)
	return err
}

const (
	maxBars  = 48
	barWidth = 50 // characters of the longest
)

// bars are those of a forecast, each of as many buckets.
type bars struct {
	all  []bar
	most int64
}

// bar is what is due in some buckets.
type bar struct {
	from                      time.Time
	pending, runs, recipients int64
	peak                      int64 // due in the fullest of them
}

func (b *bar) due() int64 { return b.pending + b.runs + b.recipients }

// barsOf leaves out the empty bars at the end.
func barsOf(f *client.Forecast) (b bars) {
	each := (len(f.Pending) + maxBars - 1) / maxBars
	last := 0
	for i := range f.Pending {
		if i%each == 0 {
			b.all = append(b.all, bar{from: f.From.Add(time.Duration(i) * f.Bucket)})
		}
		of := &b.all[len(b.all)-1]
		of.pending += f.Pending[i]
		of.runs += f.Next[i] + f.Later[i]
		of.recipients += f.Recipients[i]
		of.peak = max(of.peak, f.Due(i))
		if b.most = max(b.most, of.due()); of.due() > 0 {
			last = len(b.all)
		}
	}
	b.all = b.all[:last]
	return b
}

// draw draws a bar. What is there has a mark, however little it is.
func (b *bars) draw(of *bar) string {
	var line strings.Builder
	for _, part := range []struct {
		mark string
		n    int64
	}{{"█", of.pending}, {"▒", of.runs}, {"░", of.recipients}} {
		if part.n > 0 {
			line.WriteString(strings.Repeat(part.mark, int(max(1, (part.n*barWidth+b.most/2)/b.most))))
		}
	}
	return line.String()
}

// warn says on stderr when too much is due.
func warn(s *session.Session, all []client.DueWarning) {
	for i := range all {
		fmt.Fprintln(s.Err, "warning: "+warningText(&all[i]))
	}
}

func warningText(w *client.DueWarning) string {
	what := fmt.Sprintf("%d tasks are due within %s from %s, and the topic's rate lets %d through", w.Due, node.DurationText(w.Span), terminal.Clock(w.Time), w.Limit)
	if !w.RateLimited {
		what = fmt.Sprintf("%d tasks are due within %s from %s, more than %d", w.Due, node.DurationText(w.Span), terminal.Clock(w.Time), w.Limit)
	}
	if w.Emptiest.IsZero() {
		return what
	}
	what += fmt.Sprintf("; the emptiest minute of that hour is %s, with %d", terminal.Clock(w.Emptiest), w.EmptiestDue)
	var instead []string
	if w.Cron != "" {
		instead = append(instead, fmt.Sprintf("--cron '%s'", terminal.Line(w.Cron)))
	}
	if w.Slack > 0 {
		instead = append(instead, "--slack "+node.DurationText(w.Slack))
	}
	if len(instead) == 0 {
		return what
	}
	return what + "; try " + strings.Join(instead, " or ")
}

package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/client/overview"
	"github.com/ddq-io/ddq/cmd/cli/session"
	"github.com/ddq-io/ddq/cmd/cli/terminal"
)

// overviewView is a topic in an overview as JSON output has it.
type overviewView struct {
	Topic      string     `json:"topic"`
	Scheduled  int64      `json:"scheduled"`
	Ready      int64      `json:"ready"`
	Running    int64      `json:"running"`
	Done       int64      `json:"done"`
	Dead       int64      `json:"dead"`
	LatenessMs int64      `json:"lateness_ms"`
	Minute     *pulseView `json:"minute,omitempty"` // unset when nothing has happened within the hour
	Hour       *pulseView `json:"hour,omitempty"`
}

// pulseView is what has happened to a topic, as JSON output has it. Series are by step, the oldest
// first; those that are not there are of nothing but 0.
type pulseView struct {
	From      string    `json:"from"`
	StepMs    int64     `json:"step_ms"`
	Enqueued  []int64   `json:"enqueued,omitempty"`
	Delivered []int64   `json:"delivered,omitempty"`
	Acked     []int64   `json:"acked,omitempty"`
	Failed    []int64   `json:"failed,omitempty"`
	Dead      []int64   `json:"dead,omitempty"`
	PerSecond ratesView `json:"per_second"`
	LateMs    lateView  `json:"late_ms"`
}

type ratesView struct {
	Enqueued  float64 `json:"enqueued"`
	Delivered float64 `json:"delivered"`
	Acked     float64 `json:"acked"`
	Failed    float64 `json:"failed"`
	Dead      float64 `json:"dead"`
}

type lateView struct {
	P50 int64 `json:"p50"`
	P99 int64 `json:"p99"`
	Max int64 `json:"max"`
}

func viewOverview(t *overview.Topic) overviewView {
	v := overviewView{
		Topic: t.Name, Scheduled: t.Scheduled, Ready: t.Ready, Running: t.Running, Done: t.Done, Dead: t.Dead, LatenessMs: t.Lateness.Milliseconds(),
	}
	if t.Pulse != nil {
		v.Minute, v.Hour = viewPulse(&t.Pulse.Minute), viewPulse(&t.Pulse.Hour)
	}
	return v
}

func viewPulse(w *overview.Window) *pulseView {
	return &pulseView{
		From: terminal.Clock(w.From), StepMs: w.Step.Milliseconds(),
		Enqueued: w.Enqueued, Delivered: w.Delivered, Acked: w.Acked, Failed: w.Failed, Dead: w.Dead,
		PerSecond: ratesView(w.PerSecond),
		LateMs:    lateView{w.Lateness.P50.Milliseconds(), w.Lateness.P99.Milliseconds(), w.Lateness.Max.Milliseconds()},
	}
}

// row is the topic and its last minute; what is 0 is left out.
func (v *overviewView) row() []any {
	row := []any{v.Topic, v.Scheduled, v.Ready, v.Running, v.Dead}
	p := v.Minute
	if p == nil {
		p = new(pulseView)
	}
	for _, rate := range [...]float64{p.PerSecond.Enqueued, p.PerSecond.Delivered, p.PerSecond.Acked, p.PerSecond.Failed} {
		row = append(row, rateText(rate))
	}
	for _, ms := range [...]int64{p.LateMs.P50, p.LateMs.P99, p.LateMs.Max} {
		if len(p.Delivered) == 0 && p.LateMs.Max == 0 {
			row = append(row, "")
			continue
		}
		row = append(row, time.Duration(ms)*time.Millisecond)
	}
	return row
}

func rateText(perSecond float64) string {
	switch {
	case perSecond == 0:
		return ""
	case perSecond < 10:
		return fmt.Sprintf("%.2f", perSecond)
	}
	return fmt.Sprintf("%.0f", perSecond)
}

func overviewCommand(c *cli) *cobra.Command {
	var follow bool
	cmd := &cobra.Command{
		Use:   "overview [TOPIC]",
		Short: "Show how topics fare: tasks by state, what happens in a second, and how late tasks are delivered",
		Long: `Show how topics fare: tasks by state, and what happened to them in a second of the last minute.
Lateness is by how much deliveries came after their due times. JSON has the last hour, too, and the
numbers step by step: of five seconds in the minute, of a minute in the hour.`,
		Example: "  ddq overview\n  ddq overview -f\n  ddq overview mail -o json | jq .hour.late_ms",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			topic := ""
			if len(args) > 0 {
				topic = args[0]
			}
			return c.Call(cmd, func(ctx context.Context, s *client.Client) error {
				if !follow {
					all, err := s.Overview(ctx, topic)
					return c.showOverview(&all, err)
				}
				return c.followOverview(ctx, s, topic)
			})
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "show it again each second, until SIGINT")
	return cmd
}

// followOverview shows each overview in the place of the last one on a terminal, else below it.
func (c *cli) followOverview(ctx context.Context, s *client.Client, topic string) error {
	redraw := c.Output != terminal.FormatJSON && terminal.IsTerminal(c.Out)
	for all, err := range s.WatchOverview(ctx, topic) {
		switch {
		case ctx.Err() != nil:
			return nil
		case redraw && err == nil:
			fmt.Fprint(terminal.Raw(c.Out), "\x1b[H\x1b[2J")
		}
		if err := c.showOverview(&all, err); err != nil {
			return err
		}
	}
	return nil
}

func (c *cli) showOverview(all *overview.Overview, err error) error {
	out := c.Listing("topic", "scheduled", "ready", "running", "dead", "enqueued/s", "delivered/s", "acked/s", "failed/s", "late p50", "p99", "most")
	for i := range all.Topics {
		v := viewOverview(&all.Topics[i])
		if err := out.Add(v, v.row()...); err != nil {
			return err
		}
	}
	if err := out.End(err, "There are no topics yet."); err != nil {
		return err
	}
	for _, node := range all.SilentNodes {
		fmt.Fprintf(c.Err, "Node %s did not answer: what only it knows is missing.\n", terminal.Line(node))
	}
	if all.PulsesIncomplete {
		fmt.Fprintln(c.Err, "A node has more topics in use than it counts: what it did to the tasks of the others is missing.")
	}
	return nil
}

// workerView is a worker as JSON output has it.
type workerView struct {
	Name        string `json:"name"`
	Topic       string `json:"topic"`
	Node        string `json:"node"`
	Since       string `json:"since"`
	InFlight    int64  `json:"in_flight"`
	Credit      int64  `json:"credit"`
	MaxInFlight int64  `json:"max_in_flight"`
	Client      string `json:"client,omitempty"`
}

func (c clusterCommands) workers() *cobra.Command {
	var topic string
	cmd := &cobra.Command{
		Use:   "workers",
		Short: "List who takes tasks: the subscriptions of workers, and calls that wait, at every node",
		Args:  session.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := c.Listing("name", "topic", "node", "since", "in flight", "credit", "client")
			err := c.Call(cmd, func(ctx context.Context, s *client.Client) error {
				return terminal.Each(s.Workers(ctx, topic), 0, func(w overview.Worker) error {
					v := workerView{w.Name, w.Topic, w.Node, terminal.Clock(w.Since), w.InFlight, w.Credit, w.MaxInFlight, w.Client}
					return out.Add(v, w.Name, w.Topic, w.Node, v.Since, v.InFlight, v.Credit, w.Client)
				})
			})
			return out.End(err, "There are no workers.")
		},
	}
	cmd.Flags().StringVar(&topic, "topic", "", "only of this topic")
	return cmd
}

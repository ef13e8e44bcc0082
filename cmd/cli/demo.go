package cli

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/worker"
	"github.com/ddq-io/ddq/cmd/cli/session"
	"github.com/ddq-io/ddq/cmd/cli/terminal"
	"github.com/ddq-io/ddq/cmd/node"
)

const (
	demoTopic    = "demo"
	demoTick     = 100 * time.Millisecond // between two batches of the producer
	demoLongest  = 3 * time.Second        // delay of a task
	demoPatience = 2 * time.Second        // for stragglers, at the end
)

// demo is a server, a producer and a worker in this process, and the board they
// report to.
type demo struct {
	c     *cli
	board *board
	conn  *client.Client
	rate  int
	last  time.Time // no task is due later
}

func demoCommand(c *cli) *cobra.Command {
	var length time.Duration
	var data string
	var rate int
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch tasks fire: a server, a producer and a worker in one process",
		Long: `Run a server on the embedded store, a producer and a worker in one process, and
draw what happens: tasks scheduled, pending and fired, and how late their handlers
began. Where stdout is no terminal, print one line a second.`,
		Args: session.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if length < time.Second || rate < 1 {
				return session.Usagef("--for must be at least 1s and --rate at least 1")
			}
			return runDemo(cmd.Context(), c, length, data, rate)
		},
	}
	node.DurationVar(cmd.Flags(), &length, "for", 20*time.Second, "how long to run")
	cmd.Flags().StringVar(&data, "data", "", "data directory (default a temporary one)")
	cmd.Flags().IntVar(&rate, "rate", 200, "tasks a second")
	return cmd
}

func runDemo(ctx context.Context, c *cli, length time.Duration, data string, rate int) error {
	if data == "" {
		dir, err := os.MkdirTemp("", "ddq-demo-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		data = dir
	}
	cfg := &node.Config{
		Store: node.Embedded, Data: data, GRPCAddr: "127.0.0.1:0", HTTPAddr: node.Off, ShutdownGrace: 5 * time.Second,
	}
	n, err := node.Start(ctx, cfg, slog.New(slog.NewTextHandler(c.Err, &slog.HandlerOptions{Level: slog.LevelWarn})))
	if err != nil {
		return err
	}
	defer func() { _ = n.Stop() }()
	conn, err := client.Dial(n.GRPCAddr(), client.Config{})
	if err != nil {
		return err
	}
	defer conn.Close()
	now := time.Now()
	d := &demo{c: c, board: newBoard(now), conn: conn, rate: rate, last: now.Add(length)}
	return d.run(ctx, length, "ddq demo   server at "+n.GRPCAddr()+"   data in "+data)
}

// run plays the demo for length, and a little longer while tasks are pending.
func (d *demo) run(ctx context.Context, length time.Duration, title string) error {
	ctx, cancel := context.WithTimeout(ctx, length+demoPatience)
	defer cancel()
	parts, ctx := errgroup.WithContext(ctx)
	parts.Go(func() error { return d.work(ctx) })
	parts.Go(func() error { return d.produce(ctx) })
	d.show(ctx, title)
	cancel()
	if err := parts.Wait(); err != nil {
		return err
	}
	return d.summary()
}

// produce schedules tasks that are due at random within the demo.
func (d *demo) produce(ctx context.Context) error {
	tick := time.NewTicker(demoTick)
	defer tick.Stop()
	owed := 0.0
	for n := 0; ; {
		left := time.Until(d.last)
		if left < demoTick {
			return nil
		}
		owed += float64(d.rate) * demoTick.Seconds()
		batch := make([]client.Task, int(owed))
		owed -= float64(len(batch))
		for i := range batch {
			batch[i] = client.Task{
				Topic:   demoTopic,
				ID:      fmt.Sprintf("task-%d-%06d", d.board.started.UnixMilli(), n),
				Payload: []byte("hello"),
				Delay:   rand.N(min(demoLongest, left)),
			}
			n++
		}
		d.board.schedule(len(batch)) // before they can fire
		if _, err := d.conn.EnqueueBatch(ctx, batch); err != nil {
			return unlessEnded(ctx, err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (d *demo) work(ctx context.Context) error {
	w := worker.New(d.conn.Conn(), worker.Config{Topic: demoTopic, Concurrency: 64, Logger: slog.New(slog.DiscardHandler)},
		worker.HandlerFunc(func(_ context.Context, t worker.Task) error {
			d.board.fire(t.ID, t.Due, time.Now())
			return nil
		}))
	return unlessEnded(ctx, w.Run(ctx))
}

// unlessEnded is err, or nil when the demo is over anyway.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// show draws until ctx ends or the demo is over.
func (d *demo) show(ctx context.Context, title string) {
	live := d.c.Output == terminal.FormatTable && terminal.IsTerminal(d.c.Out)
	every := time.Second
	if live {
		every = demoTick
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	lines := 0
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			t := d.board.tally(now)
			if live {
				lines = d.draw(d.board.picture(now, title), lines)
			} else if err := d.c.Say(t, "%v", t); err != nil {
				return
			}
			if now.After(d.last) && t.Pending == 0 {
				return
			}
		}
	}
}

// draw puts a picture over the one before it, which had so many lines.
func (d *demo) draw(picture string, lines int) int {
	if lines > 0 {
		fmt.Fprintf(terminal.Raw(d.c.Out), "\x1b[%dA\x1b[J", lines)
	}
	fmt.Fprint(d.c.Out, picture)
	return strings.Count(picture, "\n")
}

// summary is the last word. An early task breaks a promise, and fails the demo.
func (d *demo) summary() error {
	t := d.board.tally(time.Now())
	view := struct {
		Summary bool `json:"summary"`
		tally
	}{true, t}
	err := d.c.Say(view, "\n%d tasks fired in %.1fs, %d early; handlers began p50 %.2f ms, p99 %.2f ms, at most %.2f ms after the due time",
		t.Fired, float64(t.ElapsedMs)/1000, t.Early, t.LateMs.P50, t.LateMs.P99, t.LateMs.Max)
	if err == nil && t.Early > 0 {
		err = fmt.Errorf("%d tasks fired before their due time", t.Early)
	}
	return err
}

package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ddq-io/ddq/bench/box"
	"github.com/ddq-io/ddq/bench/lateness"
	"github.com/ddq-io/ddq/bench/result"
	"github.com/ddq-io/ddq/bench/testbed"
)

// scheduleOptions say how many schedules there are, and what they do.
type scheduleOptions struct {
	Store     string
	Parts     []string
	Standing  int           // that do nothing meanwhile
	Rate      int           // occurrences a second of steady and killed
	Made      int           // and of skip and allow, which is to be more than can be made
	Herd      int           // schedules at one second
	For       time.Duration // how long steady, skip, allow and killed last
	Settle    time.Duration // before the window in which idle ones are measured
	Workers   int
	ServerBin string
	Log       io.Writer
}

// scheduleLine is the result of one part.
type scheduleLine struct {
	Part      string `json:"part"`
	Store     string `json:"store"`
	Version   string `json:"version"`
	Schedules int    `json:"schedules"` // of the part
	Standing  int    `json:"standing"`

	PutPerS     float64 `json:"put_per_s"`
	StoreBytes  float64 `json:"store_bytes_per_schedule,omitempty"`
	ServerBytes float64 `json:"server_bytes_per_schedule,omitempty"`
	FreshBytes  float64 `json:"fresh_server_bytes_per_schedule,omitempty"` // once the server has been started again
	ServerCPU   float64 `json:"server_cpu_percent"`                        // of one core, over the window
	StoreCPU    float64 `json:"store_cpu_percent"`

	Runs        int                  `json:"runs"`       // that came
	RunsPerS    float64              `json:"runs_per_s"` // whose handler began in the window
	LateMS      lateness.Percentiles `json:"late_ms"`
	MadeLate    int                  `json:"made_late"`         // created after they were due
	LastMS      float64              `json:"last_ms,omitempty"` // of a herd: when the last one began
	Early       int                  `json:"early"`             // handlers that began before the due time
	Doubled     int                  `json:"doubled"`           // occurrences that came twice under one attempt, or as two tasks
	Unexplained int                  `json:"unexplained"`       // occurrences without a run and without a reason
	Skipped     map[string]int64     `json:"skipped,omitempty"` // by reason
	CPU         *result.Roles        `json:"cpu_s,omitempty"`   // of killed, over its window
	Forecast    *forecastFigures     `json:"forecast,omitempty"`
	Machine     string               `json:"machine"`
}

// violation is what the part broke; nil when nothing.
func (l *scheduleLine) violation() error {
	if l.Early+l.Doubled+l.Unexplained == 0 {
		return nil
	}
	return fmt.Errorf("schedules %s: %d early, %d doubled, %d without a run and a reason", l.Part, l.Early, l.Doubled, l.Unexplained)
}

// The parts of the workload.
const (
	partIdle     = "idle"
	partForecast = "forecast"
	partSteady   = "steady"
	partSkip     = "skip"
	partAllow    = "allow"
	partHerd     = "herd"
	partKilled   = "killed"
)

var scheduleParts = []string{partIdle, partForecast, partSteady, partSkip, partAllow, partHerd, partKilled}

func schedulesCommand() *cobra.Command {
	var o scheduleOptions
	cmd := &cobra.Command{
		Use:   "schedules",
		Short: "Schedules: what do idle ones cost, how late and how many are the runs of others",
		Long: `Put schedules and have workers do their runs, part by part, on one server:

  idle      put --standing schedules of next year in batches, and weigh them
  forecast  enqueue as many tasks of the day of the idle schedules, and forecast it by minutes
  steady    --rate occurrences a second, evenly: how late are they
  skip      --made occurrences a second, more than can be made, tracked, under the overlap skip
  allow     the same, untracked, under allow
  herd      --herd schedules at one second: were they made in time, when did the last one begin
  killed    steady on servers and a store of its own, of which one server is killed (kill -9) in
            the middle: of two on a Redis, which stays dead, or the only one on the embedded store,
            which is started again at once

The bench exits 1 when an occurrence came twice, early, or has neither a run nor a reason.`,
		Args:    cobra.NoArgs,
		Example: "  ddq bench schedules --store redis-everysec --parts idle,steady --standing 1000000",
		PreRunE: func(*cobra.Command, []string) error { return o.complete() },
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Log = cmd.ErrOrStderr()
			enc := json.NewEncoder(cmd.OutOrStdout())
			var broken []error
			err := o.run(cmd.Context(), func(l *scheduleLine) error {
				broken = append(broken, l.violation())
				return enc.Encode(l)
			})
			if err != nil {
				err = fmt.Errorf("schedules: %w", err)
			}
			return errors.Join(append(broken, err)...)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Store, "store", "embedded", "embedded, memory, redis or redis-everysec, redis-always, or the redis:// URL of a running one")
	f.StringSliceVar(&o.Parts, "parts", scheduleParts, "what to play, in this order")
	f.IntVar(&o.Standing, "standing", 1_000_000, "schedules that do nothing meanwhile, put by idle or forecast; and tasks of forecast")
	f.IntVar(&o.Rate, "rate", 2000, "occurrences a second in steady and killed: so many schedules of each second")
	f.IntVar(&o.Made, "made", 20_000, "occurrences a second in skip and allow")
	f.IntVar(&o.Herd, "herd", 100_000, "schedules at one second")
	f.DurationVar(&o.For, "for", time.Minute, "how long steady, skip, allow and killed last")
	f.DurationVar(&o.Settle, "settle", 30*time.Second, "pause before the window in which idle schedules are measured")
	f.IntVar(&o.Workers, "workers", 2, "workers")
	f.StringVar(&o.ServerBin, "server-bin", "", "ddq binary to start (default this one)")
	return cmd
}

func (o *scheduleOptions) complete() (err error) {
	if o.ServerBin == "" {
		if o.ServerBin, err = os.Executable(); err != nil {
			return fmt.Errorf("find the ddq binary: %w", err)
		}
	}
	for _, part := range o.Parts {
		if !slices.Contains(scheduleParts, part) {
			return fmt.Errorf("--parts has no %q, want some of %s", part, strings.Join(scheduleParts, ", "))
		}
	}
	switch {
	case o.Standing < 1 || o.Rate < 1 || o.Made < 1 || o.Herd < 1 || o.Workers < 1:
		return errors.New("--standing, --rate, --made, --herd and --workers must be at least 1")
	case o.For < time.Second || o.For > time.Hour:
		return errors.New("--for must be 1s to 1h")
	}
	return testbed.CheckStore(o.Store)
}

// run plays the parts. What it started is stopped when it returns.
func (o *scheduleOptions) run(ctx context.Context, emit func(*scheduleLine) error) (err error) {
	b, err := box.New()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	server := &testbed.Server{}
	store, err := server.OpenStore(ctx, o.Store, b)
	if err != nil {
		return err
	}
	if err := server.Start(ctx, o.ServerBin, store, b); err != nil {
		return err
	}
	show, err := newScheduleShow(o, server)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, show.client.Close()) }()
	about, err := show.client.Server(ctx)
	if err != nil {
		return err
	}
	for _, part := range o.Parts {
		if part == partKilled && (o.Store == "memory" || strings.Contains(o.Store, "://")) {
			fmt.Fprintf(o.Log, "schedules %s: skipped: it needs a store of its own that keeps something over a kill\n", part)
			continue
		}
		line := &scheduleLine{Part: part, Store: o.Store, Version: about.Version, Standing: show.standing, Machine: result.Machine()}
		if err := show.play(ctx, part, line); err != nil {
			return fmt.Errorf("%s: %w", part, err)
		}
		if err := emit(line); err != nil {
			return err
		}
	}
	return nil
}

package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/ddq-io/ddq/bench/box"
	"github.com/ddq-io/ddq/bench/lateness"
	"github.com/ddq-io/ddq/bench/result"
	"github.com/ddq-io/ddq/bench/testbed"
)

// audienceOptions say how large an audience is, and how a run goes through it.
type audienceOptions struct {
	Store      string
	Recipients int
	Shards     int
	Window     time.Duration
	Grain      time.Duration
	Churn      int // changes a second while the run goes on
	Kill       bool
	Workers    int
	ServerBin  string
	Log        io.Writer
}

// audienceLine is the result: what an import and a run cost, and what was broken.
type audienceLine struct {
	Store      string `json:"store"`
	Recipients int    `json:"recipients"`
	Shards     int    `json:"shards"`
	WindowMS   int64  `json:"window_ms"`
	GrainMS    int64  `json:"grain_ms"`
	Churn      int    `json:"churn_per_s"`
	Killed     bool   `json:"killed"`

	ImportPerS   float64 `json:"import_per_s"`
	StoreBytes   float64 `json:"store_bytes_per_recipient"`
	Tasks        int     `json:"tasks"`
	TasksInStore int64   `json:"tasks_in_store"` // the most that were seen at once
	GrainSigma   float64 `json:"grain_sigma"`    // of the grain whose count is farthest off, in standard deviations
	BehindMS     int64   `json:"behind_ms"`      // the most that the run was seen behind its places

	LateMS    lateness.Percentiles `json:"late_ms"` // handlers, behind the places of their recipients
	Changed   changeCounts         `json:"changed"`
	ServerCPU float64              `json:"server_cpu_s"`
	ServerRSS float64              `json:"server_rss_mb"`
	Broken    map[string]int       `json:"broken"` // promises, by how often
	Machine   string               `json:"machine"`
}

func audienceCommand() *cobra.Command {
	var o audienceOptions
	cmd := &cobra.Command{
		Use:   "audience",
		Short: "A run of an audience that changes meanwhile: each recipient once, at its place",
		Long: `Import recipients, have a run spread a task for each over a window, and let
recipients opt out, move between time zones, leave and join meanwhile. It is checked
that each who was there gets one task at its place, and nobody else: the bench exits 1
when that is not so.`,
		Args:    cobra.NoArgs,
		Example: "  ddq bench audience --store redis-everysec --recipients 1000000 --window 5m --churn 200 --kill",
		PreRunE: func(*cobra.Command, []string) error { return o.complete() },
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Log = cmd.ErrOrStderr()
			line, err := o.run(cmd.Context())
			if line == nil {
				return fmt.Errorf("audience: %w", err)
			}
			return errors.Join(err, json.NewEncoder(cmd.OutOrStdout()).Encode(line), line.violation())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Store, "store", "embedded", "embedded, memory, redis or redis-everysec, redis-always, or the redis:// URL of a running one")
	f.IntVar(&o.Recipients, "recipients", 1_000_000, "recipients when the run begins")
	f.IntVar(&o.Shards, "shards", 64, "shards of the audience: a power of two")
	f.DurationVar(&o.Window, "window", 5*time.Minute, "over which the run is spread")
	f.DurationVar(&o.Grain, "grain", 10*time.Second, "by which places are rounded")
	f.IntVar(&o.Churn, "churn", 200, "recipients a second that opt out, move, leave or join while the run goes on")
	f.BoolVar(&o.Kill, "kill", false, "kill -9 the server in the middle of the run, and start it again")
	f.IntVar(&o.Workers, "workers", 2, "workers")
	f.StringVar(&o.ServerBin, "server-bin", "", "ddq binary to start (default this one)")
	return cmd
}

func (o *audienceOptions) complete() (err error) {
	if o.ServerBin == "" {
		if o.ServerBin, err = os.Executable(); err != nil {
			return fmt.Errorf("find the ddq binary: %w", err)
		}
	}
	switch {
	case o.Recipients < 1 || o.Workers < 1 || o.Churn < 0:
		return errors.New("--recipients and --workers must be at least 1, and --churn at least 0")
	case o.Shards < 1 || o.Shards > 1024 || o.Shards&(o.Shards-1) != 0:
		return errors.New("--shards must be a power of two up to 1024")
	case o.Window < time.Second || o.Window > time.Hour || o.Grain < time.Millisecond || o.Grain > o.Window:
		return errors.New("--window must be 1s to 1h, and --grain 1ms to the window")
	case o.Kill && o.Store == "memory":
		return errors.New("--store memory keeps nothing over a kill")
	}
	return testbed.CheckStore(o.Store)
}

// run plays it. What it started is stopped when it returns.
func (o *audienceOptions) run(ctx context.Context) (line *audienceLine, err error) {
	b, err := box.New()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	server := &testbed.Server{}
	store, err := server.OpenStore(ctx, o.Store, b)
	if err != nil {
		return nil, err
	}
	if err := server.Start(ctx, o.ServerBin, store, b); err != nil {
		return nil, err
	}
	show, err := newAudienceShow(o, server)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, show.client.Close()) }()
	line = &audienceLine{
		Store: o.Store, Recipients: o.Recipients, Shards: o.Shards, WindowMS: o.Window.Milliseconds(), GrainMS: o.Grain.Milliseconds(),
		Churn: o.Churn, Killed: o.Kill, Machine: result.Machine(),
	}
	if err := show.play(ctx, line); err != nil {
		return line, err
	}
	fmt.Fprintln(o.Log, "audience: the run has ended, and is checked")
	show.check(line)
	line.ServerCPU, line.ServerRSS = result.Round(box.CPU([]*box.Process{server.Process}), 2), result.Round(float64(box.RSS([]*box.Process{server.Process}))/1e6, 1)
	return line, nil
}

// violation is what the run broke; nil when nothing.
func (l *audienceLine) violation() error {
	for what, n := range l.Broken {
		if n > 0 {
			return fmt.Errorf("audience: %s: %d recipients", what, n)
		}
	}
	return nil
}

// Ids of recipients are their numbers, spread over 64 bits: 16 bytes, as ids often have. Those
// of the number of recipients and above join while the run goes on.
const (
	spread, gather uint64 = 0x9e3779b97f4a7c15, 0xf1de83e19937733d // each undoes the other
)

func recipientID(i int) string { return fmt.Sprintf("%016x", uint64(i)*spread) }

// numberOf is the number of a recipient; -1 for none.
func numberOf(id string) int {
	n, err := strconv.ParseUint(id, 16, 64)
	if err != nil || n*gather > math.MaxInt32 {
		return -1
	}
	return int(n * gather)
}

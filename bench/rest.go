package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/bench/box"
	"github.com/ddq-io/ddq/bench/result"
	"github.com/ddq-io/ddq/bench/testbed"
)

// restOptions say what lies in a fleet that has nothing to do.
type restOptions struct {
	Store       string
	Nodes       int
	Topics      int
	Shards      int           // of each topic
	Tasks       int           // of each topic, due in an hour or later; 0: the topics are open and empty
	Settle      time.Duration // from the last call to the measured window
	For         time.Duration
	ServerBin   string
	ServerFlags []string
}

// restLine is what a fleet at rest costs: shares of one core in percent, and resident
// megabytes at the end of the window. Those of the servers are of all together.
type restLine struct {
	Store     string  `json:"store"`
	Nodes     int     `json:"nodes"`
	Topics    int     `json:"topics"`
	Shards    int     `json:"shards"`
	Tasks     int     `json:"tasks"`
	Seconds   float64 `json:"seconds"`
	ServerCPU float64 `json:"server_cpu_percent"`
	StoreCPU  float64 `json:"store_cpu_percent"`
	ServerRSS float64 `json:"server_rss_mb"`
	StoreRSS  float64 `json:"store_rss_mb"`
	Machine   string  `json:"machine"`
}

func restCommand() *cobra.Command {
	o := restOptions{}
	cmd := &cobra.Command{
		Use:     "rest",
		Short:   "Topics with nothing to do: what do servers and Redis cost",
		Long:    "Start servers, put tasks that are due in an hour into topics, and measure what the\nservers and their Redis cost while nothing happens.",
		Args:    cobra.NoArgs,
		Example: "  ddq bench rest --store redis --nodes 3 --topics 1000",
		PreRunE: func(*cobra.Command, []string) error { return o.complete() },
		RunE: func(cmd *cobra.Command, _ []string) error {
			line, err := o.run(cmd.Context())
			if err != nil {
				return fmt.Errorf("rest: %w", err)
			}
			return line.write(cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Store, "store", "embedded", "embedded, memory, redis or redis-everysec, or redis-always")
	f.IntVar(&o.Nodes, "nodes", 1, "servers; a fleet needs Redis")
	f.IntVar(&o.Topics, "topics", 10, "topics")
	f.IntVar(&o.Shards, "shards", 4, "shards of each topic")
	f.IntVar(&o.Tasks, "tasks", 1, "tasks of each topic, due in an hour or later; 0: topics that were used and are empty")
	f.DurationVar(&o.Settle, "settle", 30*time.Second, "pause before the measured window")
	f.DurationVar(&o.For, "for", time.Minute, "length of the measured window")
	f.StringVar(&o.ServerBin, "server-bin", "", "ddq binary to start (default this one)")
	f.StringArrayVar(&o.ServerFlags, "server-flag", nil, "flag for the servers, {n} being the number of each: --server-flag=--pprof-addr=127.0.0.1:606{n}")
	return cmd
}

func (o *restOptions) complete() (err error) {
	if o.ServerBin == "" {
		if o.ServerBin, err = os.Executable(); err != nil {
			return fmt.Errorf("find the ddq binary: %w", err)
		}
	}
	switch {
	case o.Nodes < 1 || o.Topics < 1 || o.Shards < 1 || o.Tasks < 0:
		return errors.New("--nodes, --topics and --shards must be at least 1, and --tasks at least 0")
	case o.Nodes > 1 && (o.Store == "embedded" || o.Store == "memory"):
		return fmt.Errorf("--store %s is for one server", o.Store)
	case o.For < time.Second:
		return errors.New("--for must be at least 1s")
	}
	return testbed.CheckStore(o.Store)
}

// run plays it. What it started is stopped when it returns.
func (o *restOptions) run(ctx context.Context) (line *restLine, err error) {
	b, err := box.New()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	servers, disk, addr, err := o.start(ctx, b)
	if err != nil {
		return nil, err
	}
	if err := o.fill(ctx, addr); err != nil {
		return nil, err
	}
	if err := testbed.Pause(ctx, o.Settle); err != nil {
		return nil, err
	}
	return o.measure(ctx, servers, disk)
}

// start starts the store and the servers, and returns the address of the first.
func (o *restOptions) start(ctx context.Context, b *box.Box) (servers, disk []*box.Process, addr string, err error) {
	first := &testbed.Server{}
	store, err := first.OpenStore(ctx, o.Store, b)
	if err != nil {
		return nil, nil, "", err
	}
	gossip := make([]string, o.Nodes)
	for i := range gossip {
		if gossip[i], err = b.Addr(); err != nil {
			return nil, nil, "", err
		}
	}
	for i := range o.Nodes {
		s := first
		if i > 0 {
			s = &testbed.Server{Name: fmt.Sprint("server-", i)}
		}
		flags := append([]string{"--shards", strconv.Itoa(o.Shards), "--node-name", fmt.Sprint("n", i)}, o.ServerFlags...)
		for k, flag := range flags {
			flags[k] = strings.ReplaceAll(flag, "{n}", strconv.Itoa(i))
		}
		if o.Nodes > 1 {
			flags = append(flags, "--gossip-addr", gossip[i], "--join", gossip[0])
		}
		if err := s.Start(ctx, o.ServerBin, store, b, flags...); err != nil {
			return nil, nil, "", err
		}
		servers = append(servers, s.Process)
	}
	return servers, first.Disk, first.GRPCAddr, nil
}

// fill makes the topics, with their tasks.
func (o *restOptions) fill(ctx context.Context, addr string) error {
	c, err := client.Dial(addr, client.Config{Timeout: adminTimeout})
	if err != nil {
		return err
	}
	defer c.Close()
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(32)
	for i := range o.Topics {
		all.Go(func() error { return o.fillTopic(ctx, c, fmt.Sprintf("rest-%d", i)) })
	}
	return all.Wait()
}

func (o *restOptions) fillTopic(ctx context.Context, c *client.Client, topic string) error {
	if o.Tasks == 0 {
		r, err := c.Enqueue(ctx, client.Task{Topic: topic, Delay: time.Hour})
		if err != nil {
			return err
		}
		_, err = c.Delete(ctx, topic, r.ID)
		return err
	}
	for sent := 0; sent < o.Tasks; sent += batchSize {
		batch := make([]client.Task, min(batchSize, o.Tasks-sent))
		for i := range batch {
			batch[i] = client.Task{Topic: topic, Delay: time.Hour + time.Duration(sent+i)*time.Millisecond}
		}
		if _, err := c.EnqueueBatch(ctx, batch); err != nil {
			return err
		}
	}
	return nil
}

// measure waits for the window to pass.
func (o *restOptions) measure(ctx context.Context, servers, disk []*box.Process) (*restLine, error) {
	begun, server, store := time.Now(), box.CPU(servers), box.CPU(disk)
	if err := testbed.Pause(ctx, o.For); err != nil {
		return nil, err
	}
	for _, p := range append(append([]*box.Process{}, servers...), disk...) {
		if !p.Running() {
			return nil, fmt.Errorf("%s ended:\n%s", p.Name, p.Tail())
		}
	}
	took := time.Since(begun).Seconds()
	return &restLine{
		Store: o.Store, Nodes: o.Nodes, Topics: o.Topics, Shards: o.Shards, Tasks: o.Tasks, Seconds: result.Round(took, 1),
		ServerCPU: result.Round(100*(box.CPU(servers)-server)/took, 2), StoreCPU: result.Round(100*(box.CPU(disk)-store)/took, 2),
		ServerRSS: result.Round(float64(box.RSS(servers))/1e6, 1), StoreRSS: result.Round(float64(box.RSS(disk))/1e6, 1), Machine: result.Machine(),
	}, nil
}

func (l *restLine) write(w io.Writer) error { return json.NewEncoder(w).Encode(l) }

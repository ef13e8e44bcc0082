package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/ddq-io/ddq/api/client"
	sdk "github.com/ddq-io/ddq/api/worker"
	"github.com/ddq-io/ddq/bench"
	"github.com/ddq-io/ddq/bench/box"
	"github.com/ddq-io/ddq/bench/testbed"
)

const flowTopic = "flows"

// flowDDQ is ddq on a store, through its public client.
func (p *plan) flowDDQ(store string) flowSystem {
	return flowSystem{
		name: "ddq",
		open: func(ctx context.Context, b *box.Box) (*bench.Instance, error) { return p.openDDQ(ctx, store, b) },
		worker: func(inst *bench.Instance, n int, s *flowShape) *exec.Cmd {
			return exec.Command(p.executable, "flow-worker", "--target", inst.Target, "--concurrency", p.share(n), "--hold", s.hold.String())
		},
		submitter: func(inst *bench.Instance, s *flowShape) *exec.Cmd {
			return exec.Command(p.executable, "flow-submitter", "--target", inst.Target, "--kind", s.kind, "--size", strconv.Itoa(s.size))
		},
	}
}

func (p *plan) openDDQ(ctx context.Context, store string, b *box.Box) (*bench.Instance, error) {
	bin, err := exec.LookPath(p.ddqBin)
	if err != nil {
		return nil, fmt.Errorf("ddq is %w: build it with `make build` and name it with --ddq-bin", box.ErrMissing)
	}
	s := &testbed.Server{}
	flag, err := s.OpenStore(ctx, store, b)
	if err != nil {
		return nil, err
	}
	if err := s.Start(ctx, bin, flag, b); err != nil {
		return nil, err
	}
	c, err := client.Dial(s.GRPCAddr, client.Config{})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	about, err := c.Server(ctx)
	if err != nil {
		return nil, err
	}
	return &bench.Instance{
		Target: s.GRPCAddr, Store: s.Store, Version: about.Version, Settings: "workflows: server and workers as shipped",
		Server: []*box.Process{s.Process}, Disk: s.Disk,
	}, nil
}

// flowWorkerCommand is the hidden command of a worker process of ddq.
func flowWorkerCommand() *cobra.Command {
	var target string
	var concurrency int
	var hold time.Duration
	cmd := &cobra.Command{
		Use:    "flow-worker",
		Short:  "Be a worker of workflows",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := client.Dial(target, client.Config{})
			if err != nil {
				return err
			}
			defer c.Close()
			return flowWorker(cmd.Context(), c, concurrency, hold, cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.StringVar(&target, "target", "", "where it runs")
	f.IntVar(&concurrency, "concurrency", 64, "handlers at a time")
	f.DurationVar(&hold, "hold", 0, "how long a handler takes")
	return cmd
}

// flowWorker works on steps until ctx ends.
func flowWorker(ctx context.Context, c *client.Client, concurrency int, hold time.Duration, out io.Writer) error {
	var mu sync.Mutex // guards out
	tell := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(out, format, args...) // without a harness nobody reads it
	}
	ready := sync.OnceFunc(func() { tell("ready\n") })
	cfg := sdk.Config{Topic: flowTopic, Concurrency: concurrency, Observe: func(e sdk.Event) {
		if e.Kind == sdk.Connected {
			ready()
		}
	}}
	return sdk.New(c.Conn(), cfg, sdk.HandlerFunc(func(ctx context.Context, t sdk.Task) error {
		begun := time.Now()
		if hold > 0 {
			if err := sleep(ctx, hold); err != nil {
				return err
			}
		}
		tell("ran %s %d %d %d\n", t.Step.Workflow, flowHandler(t.Step), begun.UnixMicro(), time.Now().UnixMicro())
		return nil
	})).Run(ctx)
}

// flowHandler is the number of the handler of a step: its name, or that of the copy.
func flowHandler(s *sdk.Step) int {
	if s.Name == "copy" {
		return s.Copy - 1
	}
	n, _ := strconv.Atoi(s.Name) // it has no other names
	return n
}

// flowSubmitterCommand is the hidden command of the process that submits workflows to ddq.
func flowSubmitterCommand() *cobra.Command {
	var target string
	var s flowShape
	cmd := &cobra.Command{
		Use:    "flow-submitter",
		Short:  "Submit the workflows whose ids are read",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := client.Dial(target, client.Config{})
			if err != nil {
				return err
			}
			defer c.Close()
			fmt.Fprintln(cmd.OutOrStdout(), "ready")
			return flowSubmit(cmd.Context(), c, s.workflow(), os.Stdin)
		},
	}
	f := cmd.Flags()
	f.StringVar(&target, "target", "", "where it runs")
	f.StringVar(&s.kind, "kind", kindChain, kindChain+" or "+kindFanout)
	f.IntVar(&s.size, "size", 10, "steps, or copies")
	return cmd
}

// workflow is one of the shape, whose steps are called as their handlers.
func (s *flowShape) workflow() client.Workflow {
	w := client.Workflow{Topic: flowTopic}
	if s.kind == kindFanout {
		w.Steps = []client.Step{{Name: "copy", Copies: &s.size}, {Name: strconv.Itoa(s.size), After: client.After("copy")}}
		return w
	}
	for i := range s.size {
		step := client.Step{Name: strconv.Itoa(i)}
		if i > 0 {
			step.After = client.After(strconv.Itoa(i - 1))
		}
		w.Steps = append(w.Steps, step)
	}
	return w
}

// flowSubmit submits a workflow for each line, beside each other.
func flowSubmit(ctx context.Context, c *client.Client, w client.Workflow, in io.Reader) error {
	g, ctx := errgroup.WithContext(ctx)
	for ids := bufio.NewScanner(in); ids.Scan(); {
		one := w
		one.ID = ids.Text()
		g.Go(func() error {
			_, err := c.Submit(ctx, one)
			return err
		})
	}
	return g.Wait()
}

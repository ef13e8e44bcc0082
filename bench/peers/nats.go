package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"

	"github.com/ddq-io/ddq/bench"
	"github.com/ddq-io/ddq/bench/box"
	"github.com/ddq-io/ddq/bench/result"
)

// natsSystem is NATS JetStream with message schedules on a file stream; its
// server is the library's own, in a process of its own. Synced: it answers once what it
// took is on the disk, as ddq does, and not once it is in memory, as it is shipped.
func natsSystem(setup string, synced bool) bench.System {
	limits := natsLimits{}
	if setup == result.SetupTuned {
		limits = natsLimits{publishes: 10_000, pull: 5_000, unacked: 10_000}
	}
	name, most := "nats", 0
	if synced {
		name, most = "nats-synced", 20_000 // at 900 a second
	}
	return bench.System{
		Name:      name,
		MostTasks: most,
		Open: func(ctx context.Context, _ bench.Options, b *box.Box) (*bench.Instance, error) {
			return openNATS(ctx, limits, synced, b)
		},
		Dial: func(_ context.Context, target string) (bench.Driver, error) { return dialNATS(target, limits) },
	}
}

// natsLimits are what may be in flight, in messages; 0 is as shipped.
type natsLimits struct {
	publishes int // asynchronous publishes without an answer, 4,000 as shipped
	pull      int // asked for by the consumer at a time, 500 as shipped
	unacked   int // delivered without an ack, 1,000 as shipped
}

func (l natsLimits) String() string {
	if l == (natsLimits{}) {
		return "in flight as shipped"
	}
	return fmt.Sprintf("in flight at most %d publishes, %d messages pulled, %d without an ack", l.publishes, l.pull, l.unacked)
}

// A schedule is a message on a subject of its own that the server publishes to
// the due subject when its time has come.
const (
	natsStream    = "BENCH"
	natsDue       = "due"
	natsSchedules = "schedule."
	natsConsumer  = "worker"
)

func openNATS(ctx context.Context, limits natsLimits, synced bool, b *box.Box) (*bench.Instance, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	dir, err := b.Mkdir("nats")
	if err != nil {
		return nil, err
	}
	addr, err := b.Addr()
	if err != nil {
		return nil, err
	}
	p, err := b.Start("nats-server", exec.Command(exe, "nats-server", "--addr", addr, "--dir", dir, fmt.Sprint("--synced=", synced)))
	if err != nil {
		return nil, err
	}
	if err := p.WaitReady(ctx, func(ctx context.Context) error { return makeStream(ctx, addr, limits) }); err != nil {
		return nil, err
	}
	stream := "file stream as shipped (fsync every 2m), "
	if synced {
		stream = "file stream with sync_interval always, "
	}
	return &bench.Instance{
		Target:   addr,
		Store:    "jetstream-file",
		Version:  server.VERSION,
		Settings: stream + limits.String() + ", work queue retention, acks not confirmed; batches are asynchronous publishes",
		Server:   []*box.Process{p},
	}, nil
}

func makeStream(ctx context.Context, addr string, limits natsLimits) error {
	nc, err := nats.Connect("nats://" + addr)
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	stream, err := js.CreateStream(ctx, jetstream.StreamConfig{
		Name: natsStream, Subjects: []string{natsDue, natsSchedules + ">"},
		Storage: jetstream.FileStorage, Retention: jetstream.WorkQueuePolicy, AllowMsgSchedules: true,
	})
	if err != nil {
		return err
	}
	_, err = stream.CreateConsumer(ctx, jetstream.ConsumerConfig{
		Durable: natsConsumer, FilterSubject: natsDue, AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: limits.unacked,
	})
	return err
}

type natsDriver struct {
	nc     *nats.Conn
	js     jetstream.JetStream
	limits natsLimits
}

func dialNATS(target string, limits natsLimits) (bench.Driver, error) {
	nc, err := nats.Connect("nats://" + target)
	if err != nil {
		return nil, err
	}
	var options []jetstream.JetStreamOpt
	if limits.publishes > 0 {
		options = append(options, jetstream.WithPublishAsyncMaxPending(limits.publishes))
	}
	js, err := jetstream.New(nc, options...)
	if err != nil {
		nc.Close()
		return nil, err
	}
	return &natsDriver{nc, js, limits}, nil
}

func (d *natsDriver) Enqueue(ctx context.Context, tasks []bench.Task) error {
	if len(tasks) == 1 {
		_, err := d.js.PublishMsg(ctx, natsMessage(tasks[0]))
		return err
	}
	sent := make([]jetstream.PubAckFuture, 0, len(tasks))
	for _, t := range tasks {
		f, err := d.js.PublishMsgAsync(natsMessage(t))
		if err != nil {
			return err
		}
		sent = append(sent, f)
	}
	for _, f := range sent {
		select {
		case <-f.Ok():
		case err := <-f.Err():
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// natsMessage writes the header itself: the client's option cuts the time to
// whole seconds, which would be early.
func natsMessage(t bench.Task) *nats.Msg {
	if t.Due.IsZero() {
		return &nats.Msg{Subject: natsDue, Data: t.Payload}
	}
	return &nats.Msg{Subject: natsSchedules + t.ID, Data: t.Payload, Header: nats.Header{
		"Nats-Schedule":        []string{"@at " + t.Due.UTC().Format(time.RFC3339Nano)},
		"Nats-Schedule-Target": []string{natsDue},
	}}
}

func (d *natsDriver) Work(ctx context.Context, s bench.Session) error {
	consumer, err := d.js.Consumer(ctx, natsStream, natsConsumer)
	if err != nil {
		return err
	}
	var options []jetstream.PullConsumeOpt
	if d.limits.pull > 0 {
		options = append(options, jetstream.PullMaxMessages(d.limits.pull))
	}
	failed := make(chan error, 1)
	consuming, err := consumer.Consume(func(m jetstream.Msg) {
		attempt := 0
		if meta, err := m.Metadata(); err == nil {
			attempt = int(meta.NumDelivered)
		}
		s.Handle(ctx, bench.Delivery{Payload: m.Data(), Attempt: attempt})
		if err := m.Ack(); err != nil {
			select {
			case failed <- fmt.Errorf("ack: %w", err):
			default:
			}
			return
		}
		s.Acked(1)
	}, options...)
	if err != nil {
		return err
	}
	s.Ready()
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	consuming.Drain()
	<-consuming.Closed()
	return errors.Join(err, d.nc.Flush())
}

func (d *natsDriver) Close() error {
	d.nc.Close()
	return nil
}

// natsServerCommand is the hidden command that runs a NATS server.
func natsServerCommand() *cobra.Command {
	var addr, dir string
	var synced bool
	cmd := &cobra.Command{
		Use: "nats-server", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			host, port, err := net.SplitHostPort(addr)
			if err != nil {
				return err
			}
			n, err := strconv.Atoi(port)
			if err != nil {
				return err
			}
			s, err := server.NewServer(&server.Options{Host: host, Port: n, JetStream: true, StoreDir: dir, SyncAlways: synced, NoSigs: true})
			if err != nil {
				return err
			}
			s.Start()
			<-cmd.Context().Done()
			s.Shutdown()
			s.WaitForShutdown()
			return nil
		},
	}
	cmd.Flags().StringVar(&addr, "addr", "", "where to listen")
	cmd.Flags().StringVar(&dir, "dir", "", "where to keep streams")
	cmd.Flags().BoolVar(&synced, "synced", false, "sync each write to the disk before it is answered")
	return cmd
}

package bench

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/ddq-io/ddq/api/client"
	sdk "github.com/ddq-io/ddq/api/worker"
	"github.com/ddq-io/ddq/bench/box"
)

// Reach adds to the configuration of a client how servers are reached that ask who calls: TLS, a token, a namespace.
type Reach func(*client.Config) error

func (r Reach) dial(addr string, cfg client.Config) (*client.Client, error) {
	if r != nil {
		if err := r(&cfg); err != nil {
			return nil, err
		}
	}
	return client.Dial(addr, cfg)
}

// DDQ is ddq itself, through its public client. reach may be nil: nobody asks who calls.
func DDQ(reach Reach) System {
	return System{
		Name: "ddq",
		Open: func(ctx context.Context, o Options, b *box.Box) (*Instance, error) { return openDDQ(ctx, reach, o, b) },
		Dial: func(_ context.Context, target string) (Driver, error) { return dialDDQ(reach, target) },
	}
}

// ddqDriver produces and works on one topic over one connection.
type ddqDriver struct {
	client   *client.Client
	topic    string
	policies policies
	contexts func(context.Context) (traceparent, tracestate string) // of tasks; nil: they have none
}

// dialDDQ takes a target of policies.target.
func dialDDQ(reach Reach, target string) (Driver, error) {
	addr, topic, p := splitTarget(target)
	d := &ddqDriver{topic: topic, policies: p}
	var err error
	if d.client, err = reach.dial(addr, client.Config{Trace: d.trace}); err != nil {
		return nil, err
	}
	return d, nil
}

// trace is the context of the next task.
func (d *ddqDriver) trace(ctx context.Context) (traceparent, tracestate string) {
	if d.contexts == nil {
		return "", ""
	}
	return d.contexts(ctx)
}

func (d *ddqDriver) Enqueue(ctx context.Context, tasks []Task) error {
	if len(tasks) == 1 {
		_, err := d.client.Enqueue(ctx, d.task(tasks[0]))
		return err
	}
	batch := make([]client.Task, len(tasks))
	for i, t := range tasks {
		batch[i] = d.task(t)
	}
	_, err := d.client.EnqueueBatch(ctx, batch)
	return err
}

func (d *ddqDriver) task(t Task) client.Task {
	task := client.Task{Topic: d.topic, Payload: t.Payload, Due: t.Due}
	if d.policies != nil {
		s, _ := readStamp(t.Payload)
		d.policies.put(&task, int(s.index))
	}
	return task
}

// Work shares the session's handlers between its workers.
//
// It settles the session's count with what the server accepts. A hold that
// was lost counts too: when a server is killed between an ack and its answer,
// that is the last that is heard of it.
func (d *ddqDriver) Work(ctx context.Context, s Session) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var connected atomic.Int32
	n := max(1, min(s.Workers, s.Concurrency))
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range errs {
		w := d.worker(s, (s.Concurrency+i)/n, sync.OnceFunc(func() {
			if connected.Add(1) == int32(n) {
				s.Ready()
			}
		}))
		all.Go(func() {
			defer cancel() // the others are of no use alone
			errs[i] = w.Run(ctx)
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

func (d *ddqDriver) worker(s Session, concurrency int, connected func()) *sdk.Worker {
	return sdk.New(d.client.Conn(), sdk.Config{
		Topic:       d.topic,
		Concurrency: concurrency,
		MaxInFlight: s.InFlight,
		Observe: func(e sdk.Event) {
			switch e.Kind {
			case sdk.Connected:
				connected()
			case sdk.Acked, sdk.Lost:
				s.Acked(e.Tasks)
			}
		},
	}, sdk.HandlerFunc(func(ctx context.Context, t sdk.Task) error {
		s.Handle(ctx, Delivery{Payload: t.Payload, Attempt: t.Attempt})
		return nil
	}))
}

func (d *ddqDriver) Close() error { return d.client.Close() }

package main

import (
	"context"
	"errors"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"

	"github.com/ddq-io/ddq/bench"
	"github.com/ddq-io/ddq/bench/box"
	"github.com/ddq-io/ddq/bench/result"
)

// asynqSystem is hibiken/asynq on a redis-server of its own with its
// append-only file synced every second. Its server runs inside the worker, so
// all its CPU but Redis' counts as client.
func asynqSystem(setup string) bench.System {
	settings := asynqSettings{}
	text := "checks for delayed tasks every 5s and for new ones every 1s when idle"
	if setup == result.SetupTuned {
		settings = asynqSettings{delayed: 100 * time.Millisecond, idle: 100 * time.Millisecond, roundUp: true, unique: true}
		text = "checks for delayed tasks and, when idle, for new ones every 100ms; due times rounded up to the seconds that it cuts them to; tasks of schedules unique for a second"
	}
	return bench.System{
		Name: "asynq",
		Open: func(ctx context.Context, o bench.Options, b *box.Box) (*bench.Instance, error) {
			return openAsynq(ctx, text, b)
		},
		Dial: func(_ context.Context, target string) (bench.Driver, error) { return dialAsynq(target, settings), nil },
	}
}

// asynqSettings are what is set of asynq; 0 is as shipped.
type asynqSettings struct {
	delayed time.Duration // between polls for tasks that have become due
	idle    time.Duration // between polls for any, when the queue was empty
	// roundUp makes due times whole seconds. asynq cuts them to that, so one that
	// polls often runs tasks early.
	roundUp bool
	// unique has a task of a schedule made by one of two schedulers, unless the one before is done by
	// then; it lasts a second, which is the least.
	unique bool
}

const asynqType = "bench"

func openAsynq(ctx context.Context, settings string, b *box.Box) (*bench.Instance, error) {
	redis, err := box.StartRedis(ctx, b, "everysec")
	if err != nil {
		return nil, err
	}
	return &bench.Instance{
		Target:   redis.Addr,
		Store:    "redis-everysec",
		Version:  moduleVersion("github.com/hibiken/asynq"),
		Settings: settings + "; no batch call: batches are single calls, 64 at a time",
		Disk:     []*box.Process{redis.Process},
		StoreBytes: func(ctx context.Context) (int64, error) {
			return box.UsedMemory(ctx, redis.Addr)
		},
	}, nil
}

// asynqDriver makes every call on one client, which pools connections.
type asynqDriver struct {
	redis    asynq.RedisClientOpt
	client   *asynq.Client
	settings asynqSettings
}

func dialAsynq(target string, settings asynqSettings) bench.Driver {
	redis := asynq.RedisClientOpt{Addr: target}
	return &asynqDriver{redis, asynq.NewClient(redis), settings}
}

func (d *asynqDriver) Enqueue(ctx context.Context, tasks []bench.Task) error {
	return spread(ctx, tasks, d.enqueue)
}

func (d *asynqDriver) enqueue(ctx context.Context, t bench.Task) error {
	options := []asynq.Option{asynq.TaskID(t.ID)}
	if !t.Due.IsZero() {
		due := t.Due
		if d.settings.roundUp {
			due = due.Add(time.Second - time.Nanosecond).Truncate(time.Second)
		}
		options = append(options, asynq.ProcessAt(due))
	}
	_, err := d.client.EnqueueContext(ctx, asynq.NewTask(asynqType, t.Payload), options...)
	return err
}

func (d *asynqDriver) Work(ctx context.Context, s bench.Session) error {
	srv := asynq.NewServer(d.redis, asynq.Config{
		Concurrency: s.Concurrency, LogLevel: asynq.ErrorLevel,
		DelayedTaskCheckInterval: d.settings.delayed, TaskCheckInterval: d.settings.idle,
	})
	err := srv.Start(asynq.HandlerFunc(func(ctx context.Context, t *asynq.Task) error {
		retries, _ := asynq.GetRetryCount(ctx)
		s.Handle(ctx, bench.Delivery{Payload: t.Payload(), Attempt: retries + 1})
		s.Acked(1) // asynq does not tell when its ack is through
		return nil
	}))
	if err != nil {
		return err
	}
	s.Ready()
	<-ctx.Done()
	srv.Shutdown()
	return nil
}

// Periodic registers the schedules in a scheduler beside the server, as each process that is to
// stand in for another one does. Handlers do not know the occurrence: it is the second in which the
// scheduler makes the task.
func (d *asynqDriver) Periodic(ctx context.Context, s *periodicSession) error {
	begun := make(map[string]*atomic.Int64, s.schedules)
	scheduler := asynq.NewScheduler(d.redis, &asynq.SchedulerOpts{
		LogLevel:       asynq.ErrorLevel,
		PreEnqueueFunc: func(t *asynq.Task, _ []asynq.Option) { begun[string(t.Payload())].Store(time.Now().Unix()) },
		PostEnqueueFunc: func(t *asynq.TaskInfo, err error) {
			if err == nil {
				s.made(t.ID, time.Unix(begun[string(t.Payload)].Load(), 0))
			}
		},
	})
	var options []asynq.Option
	if d.settings.unique {
		options = append(options, asynq.Unique(time.Second))
	}
	for i := range s.schedules {
		name := strconv.Itoa(i)
		begun[name] = new(atomic.Int64)
		if _, err := scheduler.Register("@every 1s", asynq.NewTask(asynqType, []byte(name)), options...); err != nil {
			return err
		}
	}
	srv := asynq.NewServer(d.redis, asynq.Config{
		Concurrency: s.concurrency, LogLevel: asynq.ErrorLevel,
		DelayedTaskCheckInterval: d.settings.delayed, TaskCheckInterval: d.settings.idle,
	})
	err := srv.Start(asynq.HandlerFunc(func(ctx context.Context, t *asynq.Task) error {
		retries, _ := asynq.GetRetryCount(ctx)
		id, _ := asynq.GetTaskID(ctx)
		s.ran(string(t.Payload()), id, retries+1, time.Time{})
		return nil
	}))
	if err != nil {
		return err
	}
	defer srv.Shutdown()
	if err := scheduler.Start(); err != nil {
		return err
	}
	defer scheduler.Shutdown()
	s.ready()
	<-ctx.Done()
	return nil
}

func (d *asynqDriver) Close() error { return d.client.Close() }

// spreadCallers times the harness's eight batches at a time makes 64 calls.
const spreadCallers = 8

// spread makes a call for each task, spreadCallers at a time, for systems
// without a batch call.
func spread(ctx context.Context, tasks []bench.Task, enqueue func(context.Context, bench.Task) error) error {
	if len(tasks) == 1 {
		return enqueue(ctx, tasks[0])
	}
	var callers sync.WaitGroup
	errs := make([]error, spreadCallers)
	for c := range spreadCallers {
		callers.Go(func() {
			for i := c; i < len(tasks) && errs[c] == nil; i += spreadCallers {
				errs[c] = enqueue(ctx, tasks[i])
			}
		})
	}
	callers.Wait()
	return errors.Join(errs...)
}

// moduleVersion is the version of a library in this binary.
func moduleVersion(path string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == path {
				return m.Version
			}
		}
	}
	return "unknown"
}

// wholeSeconds is how far due lies ahead, rounded up so that it is never early.
func wholeSeconds(due time.Time) time.Duration {
	if due.IsZero() {
		return 0
	}
	ahead := max(time.Until(due), 0)
	return (ahead + time.Second - time.Nanosecond).Truncate(time.Second)
}

package main

import (
	"context"
	"io"
	"log/slog"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/ddq-io/ddq/bench"
	"github.com/ddq-io/ddq/bench/box"
	"github.com/ddq-io/ddq/bench/result"
)

// riverSystem is riverqueue/river on a PostgreSQL of its own. Its client runs
// inside the worker, so all its CPU but the database's counts as client.
func riverSystem(setup string) bench.System {
	fetches, most := riverFetches{}, 20_000 // at 640 a second
	text := "fetches every 100ms to 1s"
	if setup == result.SetupTuned {
		most = 0
		fetches = riverFetches{cooldown: 2 * time.Millisecond, poll: 20 * time.Millisecond}
		text = "fetches every 2 to 20ms as in its own benchmark"
	}
	return bench.System{
		Name:      "river",
		MostTasks: most,
		Open: func(ctx context.Context, _ bench.Options, b *box.Box) (*bench.Instance, error) {
			return openRiver(ctx, text, b)
		},
		Dial: func(ctx context.Context, target string) (bench.Driver, error) { return dialRiver(ctx, target, fetches) },
	}
}

// riverFetches are how often a client looks for jobs; 0 is as shipped, 100ms and 1s,
// which caps a client at ten fetches a second.
type riverFetches struct {
	cooldown time.Duration // after a fetch
	poll     time.Duration // when nothing says that there are jobs
}

func openRiver(ctx context.Context, settings string, b *box.Box) (*bench.Instance, error) {
	db, err := startPostgres(ctx, b)
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.New(ctx, db.url)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	m, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: quiet()})
	if err != nil {
		return nil, err
	}
	if _, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, err
	}
	return &bench.Instance{
		Target:   db.url,
		Store:    "postgres",
		Version:  moduleVersion("github.com/riverqueue/river"),
		Settings: settings + ", scheduler every 5s as shipped; PostgreSQL as shipped (synchronous commit)",
		Disk:     []*box.Process{db.process},
	}, nil
}

// riverArgs carry the payload; JSON makes base64 of it.
type riverArgs struct {
	Payload []byte `json:"payload"`
}

// Kind names the job.
func (riverArgs) Kind() string { return "bench" }

// riverWorker hands jobs to the session.
type riverWorker struct {
	river.WorkerDefaults[riverArgs]
	session bench.Session
}

// Work is River's handler.
func (w *riverWorker) Work(ctx context.Context, job *river.Job[riverArgs]) error {
	w.session.Handle(ctx, bench.Delivery{Payload: job.Args.Payload, Attempt: job.Attempt})
	return nil
}

type riverDriver struct {
	pool    *pgxpool.Pool
	insert  *river.Client[pgx.Tx]
	fetches riverFetches
}

func dialRiver(ctx context.Context, target string, fetches riverFetches) (bench.Driver, error) {
	cfg, err := pgxpool.ParseConfig(target)
	if err != nil {
		return nil, err
	}
	cfg.MaxConns = 40 // producers and worker together stay below PostgreSQL's 100
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{Logger: quiet()})
	if err != nil {
		pool.Close()
		return nil, err
	}
	return &riverDriver{pool, client, fetches}, nil
}

func (d *riverDriver) Enqueue(ctx context.Context, tasks []bench.Task) error {
	if len(tasks) == 1 {
		_, err := d.insert.Insert(ctx, riverArgs{tasks[0].Payload}, &river.InsertOpts{ScheduledAt: tasks[0].Due})
		return err
	}
	batch := make([]river.InsertManyParams, len(tasks))
	for i, t := range tasks {
		batch[i] = river.InsertManyParams{Args: riverArgs{t.Payload}, InsertOpts: &river.InsertOpts{ScheduledAt: t.Due}}
	}
	_, err := d.insert.InsertManyFast(ctx, batch)
	return err
}

func (d *riverDriver) Work(ctx context.Context, s bench.Session) error {
	workers := river.NewWorkers()
	river.AddWorker(workers, &riverWorker{session: s})
	client, err := river.NewClient(riverpgxv5.New(d.pool), &river.Config{
		Logger:            quiet(),
		Workers:           workers,
		FetchCooldown:     d.fetches.cooldown,
		FetchPollInterval: d.fetches.poll,
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: s.Concurrency}},
	})
	if err != nil {
		return err
	}
	completed, unsubscribe := client.SubscribeConfig(&river.SubscribeConfig{
		Kinds: []river.EventKind{river.EventKindJobCompleted}, ChanSize: 1 << 20,
	})
	counted := make(chan struct{})
	go func() {
		defer close(counted)
		for range completed {
			s.Acked(1)
		}
	}()
	defer func() { unsubscribe(); <-counted }()
	if err := client.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	s.Ready()
	<-ctx.Done()
	return client.Stop(context.WithoutCancel(ctx))
}

// periodicArgs name the schedule of a run.
type periodicArgs struct {
	Schedule string `json:"schedule"`
}

// Kind names the job.
func (periodicArgs) Kind() string { return "periodic" }

// everySecond are the whole seconds.
type everySecond struct{}

// Next is the whole second behind a time.
func (everySecond) Next(t time.Time) time.Time { return t.Truncate(time.Second).Add(time.Second) }

// periodicWorker tells that handlers began.
type periodicWorker struct {
	river.WorkerDefaults[periodicArgs]
	session *periodicSession
}

// Work is River's handler.
func (w *periodicWorker) Work(_ context.Context, job *river.Job[periodicArgs]) error {
	w.session.ran(job.Args.Schedule, strconv.FormatInt(job.ID, 10), job.Attempt, job.ScheduledAt.Truncate(time.Second))
	return nil
}

// Periodic has the schedules in the configuration, of which the leader among the clients makes the
// jobs.
func (d *riverDriver) Periodic(ctx context.Context, s *periodicSession) error {
	jobs := make([]*river.PeriodicJob, s.schedules)
	for i := range jobs {
		args := periodicArgs{strconv.Itoa(i)}
		jobs[i] = river.NewPeriodicJob(everySecond{}, func() (river.JobArgs, *river.InsertOpts) { return args, nil }, nil)
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, &periodicWorker{session: s})
	client, err := river.NewClient(riverpgxv5.New(d.pool), &river.Config{
		Logger:            quiet(),
		Workers:           workers,
		PeriodicJobs:      jobs,
		FetchCooldown:     d.fetches.cooldown,
		FetchPollInterval: d.fetches.poll,
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: s.concurrency}},
	})
	if err != nil {
		return err
	}
	if err := client.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	s.ready()
	<-ctx.Done()
	return client.Stop(context.WithoutCancel(ctx))
}

func (d *riverDriver) Close() error {
	d.pool.Close()
	return nil
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

package outbox

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/ddq-io/ddq/api/client"
)

// RelayConfig says how a relay works. The zero value works.
type RelayConfig struct {
	// Window is how long ddq knows a task that was enqueued, whatever became of it: a relay
	// that lost the answer, or the one after it, has so long to ask again. It costs the server
	// some 100 bytes a task. Defaults to 10m.
	Window time.Duration

	// Poll is how often the outbox is looked at when nothing is heard of it. Defaults to 1s.
	Poll time.Duration

	// Lease is how long a relay that died keeps others from an SQLite database. PostgreSQL
	// notices by itself. Defaults to 10s.
	Lease time.Duration

	// Keep is how long effects are remembered. Defaults to DefaultKeep; negative keeps them
	// for good.
	Keep time.Duration

	// Log defaults to slog.Default.
	Log *slog.Logger
}

func (c RelayConfig) withDefaults() RelayConfig {
	if c.Window <= 0 {
		c.Window = MinWindow
	}
	if c.Poll <= 0 {
		c.Poll = time.Second
	}
	if c.Lease <= 0 {
		c.Lease = 10 * time.Second
	}
	if c.Keep == 0 {
		c.Keep = DefaultKeep
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return c
}

// Enqueuer is what a relay needs of a client.Client.
type Enqueuer interface {
	EnqueueBatch(ctx context.Context, tasks []client.Task) ([]client.Result, error)
}

// Relay hands the rows of an outbox on to ddq, in order. Of several relays of an outbox one
// reads, and the others stand by. It owns no goroutine.
type Relay struct {
	db  Database
	ddq Enqueuer
	cfg RelayConfig

	rests    rests     // of topics
	forgets  time.Time // when effects are looked at next
	leads    bool      // as was said in the log
	enqueued atomic.Int64
	refused  atomic.Int64
}

// NewRelay returns a relay, which Run starts.
func NewRelay(db Database, ddq Enqueuer, cfg RelayConfig) *Relay {
	return &Relay{db: db, ddq: ddq, cfg: cfg.withDefaults()}
}

// Counts are what a relay did since it was made.
type Counts struct {
	Enqueued int64 // rows that became tasks; a repeat after a lost answer is one of them
	Refused  int64 // rows that were refused for good
}

// Counts may be called while the relay runs.
func (r *Relay) Counts() Counts { return Counts{r.enqueued.Load(), r.refused.Load()} }

// How long a relay waits.
const (
	standby = time.Second     // before it asks again whether another one reads
	away    = time.Second     // before it tries a database again that failed
	closing = 5 * time.Second // for the database, when it ends
	chores  = time.Minute     // between looks at effects

	answering = time.Minute // for the database: one that is silent may be gone
)

// maxSplits is how often a batch is halved. That finds three tasks, each alone, and ends where all of them fail.
const maxSplits = 32

// Run hands rows on until ctx ends, and returns nil then. A database or a server that fails
// is tried again, and Run says so in the log; a Relay runs once.
func (r *Relay) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		err := r.session(ctx)
		if err == nil || ctx.Err() != nil {
			continue
		}
		r.leads = false
		r.cfg.Log.Warn("outbox out of reach", "err", err)
		pause(ctx, away)
	}
	return nil
}

// session works with one session of the database until that fails or ctx ends.
func (r *Relay) session(ctx context.Context) error {
	in, err := r.open(ctx)
	if err != nil {
		return err
	}
	defer in.close()
	r.rests.reset()
	for ctx.Err() == nil {
		if leads, err := r.lead(ctx, in); err != nil {
			return err
		} else if !leads {
			pause(ctx, standby)
			continue
		}
		if err := r.step(ctx, in); err != nil {
			return err
		}
	}
	return nil
}

func (r *Relay) open(ctx context.Context) (reader, error) {
	ctx, cancel := context.WithTimeout(ctx, answering)
	defer cancel()
	return r.db.open(ctx, r.cfg)
}

// lead tells the log who reads, when that changes.
func (r *Relay) lead(ctx context.Context, in reader) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, answering)
	defer cancel()
	leads, err := in.lead(ctx)
	if leads && !r.leads {
		r.cfg.Log.Info("outbox relay reads")
	}
	r.leads = leads
	return leads, err
}

// step hands a batch on, and waits when there is none.
func (r *Relay) step(ctx context.Context, in reader) error {
	now := time.Now()
	v := r.rests.at(now, r.cfg.Poll)
	rows, err := r.look(ctx, in, v)
	if err != nil {
		return err
	}
	if len(rows) > 0 {
		return r.hand(ctx, in, rows)
	}
	if err := r.forget(ctx, in, now); err != nil {
		return err
	}
	return in.wait(ctx, v.next)
}

func (r *Relay) look(ctx context.Context, in reader, v view) ([]row, error) {
	ctx, cancel := context.WithTimeout(ctx, answering)
	defer cancel()
	return in.read(ctx, v)
}

// hand enqueues rows and has the database know what became of them. What ddq answered is
// written down even when ctx ends meanwhile.
func (r *Relay) hand(ctx context.Context, in reader, rows []row) error {
	errs := r.enqueue(ctx, rows)
	o := judge(rows, errs)
	r.postpone(ctx, rows, errs, o.later)

	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closing)
	defer cancel()
	if len(o.landed) > 0 {
		if err := in.remove(ctx, o.landed); err != nil {
			return err
		}
		r.enqueued.Add(int64(len(o.landed)))
	}
	if len(o.refused) == 0 {
		r.rests.handed(rows[len(rows)-1].seq)
		return nil
	}
	if err := in.refuse(ctx, o.refused); err != nil {
		return err
	}
	r.rests.handed(rows[len(rows)-1].seq)
	r.refused.Add(int64(len(o.refused)))
	for _, f := range o.refused {
		r.cfg.Log.Error("task of the outbox refused", "seq", f.seq, "reason", f.reason, "err", f.message)
	}
	return nil
}

// enqueue has an error for each row, nil for what is a task now.
func (r *Relay) enqueue(ctx context.Context, rows []row) []error {
	errs := make([]error, len(rows))
	tasks, of := make([]client.Task, 0, len(rows)), make([]int, 0, len(rows))
	for i, w := range rows {
		t, err := w.task(r.cfg.Window)
		if errs[i] = err; err == nil {
			tasks, of = append(tasks, t), append(of, i)
		}
	}
	splits := maxSplits
	for n, err := range r.send(ctx, tasks, &splits) {
		errs[of[n]] = err
	}
	return errs
}

// send halves what fails as a whole until the task at fault is alone, in order.
func (r *Relay) send(ctx context.Context, tasks []client.Task, splits *int) []error {
	results, _ := r.ddq.EnqueueBatch(ctx, tasks) // each result has its error
	errs := make([]error, len(tasks))
	for i := range results {
		errs[i] = results[i].Err
	}
	if half := len(tasks) / 2; half > 0 && *splits > 0 && ctx.Err() == nil && together(errs) {
		*splits--
		return append(r.send(ctx, tasks[:half], splits), r.send(ctx, tasks[half:], splits)...)
	}
	return errs
}

// postpone lets the topics of rows rest that could not be enqueued.
func (r *Relay) postpone(ctx context.Context, rows []row, errs []error, later []int) {
	if ctx.Err() != nil {
		return // that is why
	}
	now := time.Now()
	for _, i := range later {
		if topic := rows[i].topic; r.rests.add(topic, errs[i], now) {
			r.cfg.Log.Warn("outbox waits for a topic", "topic", topic, "seq", rows[i].seq, "err", errs[i])
		}
	}
}

// forget drops effects that are old, once a minute.
func (r *Relay) forget(ctx context.Context, in reader, now time.Time) error {
	if r.cfg.Keep < 0 || now.Before(r.forgets) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, answering)
	defer cancel()
	more, err := in.forget(ctx, now.Add(-r.cfg.Keep))
	if !more {
		r.forgets = now.Add(chores)
	}
	return err
}

// pause waits for d or the end of ctx.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

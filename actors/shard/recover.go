package shard

import (
	"context"
	"time"

	"github.com/ddq-io/ddq/actors/agenda"
	"github.com/ddq-io/ddq/actors/engine"
	"github.com/ddq-io/ddq/store"
)

// expired is a hold that has run out, as far as the shard knows.
type expired struct {
	id      string
	token   store.Token
	retries agenda.Retries
	known   bool // retries is set
}

// What the recoverer's store calls came to, each in a CallDone.
type (
	recovered struct {
		seq     int64
		batch   []expired
		nacks   []store.Nack
		results []store.NackResult
		unseen
		err error
	}
	runningFound struct {
		holds   []store.Running
		permits heldPermits // of holds that another owner took
		overdue []store.Entry
		expired expiry
		first   bool // the walk after a claim
		epoch   int64
		since   int64 // of the shard's holds, the last when the walk began
		err     error
	}
	swept struct {
		repaired int
		next     string
		err      error
	}
)

// recoverer takes back holds that ran out. As watchdog it looks for those, and for due
// tasks, that nothing in memory knows, and has the store repair what fell out of its indexes.
type recoverer struct {
	*shardState
	claim    *claimer
	loader   *loader
	notifier *notifier
	permits  *permitCalls
	holds    *holdRegistry
	store    interface {
		store.Owner
		store.Reader
	}
	batches engine.Batcher[expired]

	watching    bool
	stale       bool // the walk in flight is of a store that was set back since
	failedWalks int  // of the watchdog, in a row
	sweeping    bool
	sweepAt     string // cursor
	expireFrom  expiryCursor
}

func newRecoverer(claim *claimer, loader *loader, notifier *notifier, permits *permitCalls, holds *holdRegistry) recoverer {
	b := claim.shardState
	return recoverer{
		shardState: b, claim: claim, loader: loader, notifier: notifier, permits: permits, holds: holds, store: b.Store,
		batches: engine.Batcher[expired]{Most: 1, Limit: b.knobs().HoldBatch},
	}
}

// receive handles a message of the recoverer.
func (r *recoverer) receive(message any, own bool) {
	switch m := message.(type) {
	case *WatchTick:
		r.watch()
	case *deadlinesDue:
		r.onDeadlines(m.ms)
	case *recovered:
		r.onRecovered(m, own)
	case *runningFound:
		if own {
			r.onRunning(m)
		}
	case *swept:
		if own {
			r.onSwept(m)
		}
	}
}

// onDeadlines queues holds whose deadline passed. The store looks again: an
// extend or a settlement at another node may have come in between.
func (r *recoverer) onDeadlines(ms int64) {
	if r.TooEarly(ms) {
		r.holds.table.Rearm(store.Millis(ms))
		return
	}
	for _, h := range r.holds.table.Take(store.Millis(ms)) {
		if !r.claim.owned() { // for whoever does to recover; here it only makes room
			r.holds.forgetPermit(h.ID) // the hold may have been extended
			r.holds.unregister(h.ID, h.Token)
			continue
		}
		r.batches.Waiting = append(r.batches.Waiting, expired{
			id: h.ID, token: h.Token, retries: h.Retries, known: h.Sub != nil && !h.Foreign,
		})
	}
	r.scheduleFlush()
}

func (r *recoverer) flush() {
	if !r.claim.owned() {
		return
	}
	if batch := r.batches.Next(); batch != nil {
		fence, topic := r.claim.fence(), r.topic
		r.calls.Run(func(ctx context.Context) { r.done(r.storeRecover(ctx, fence, batch, topic)) })
	}
}

func (r *recoverer) idle() bool { return r.batches.Idle() }

func (r *recoverer) fenced() int { return r.batches.InFlight }

func (r *recoverer) lose() { r.batches.Waiting = nil } // whoever claims the shard next finds them

func (r *recoverer) stop() {} // so does the next incarnation

func (r *recoverer) storeRecover(ctx context.Context, fence store.Fence, batch []expired, topic *store.Topic) *recovered {
	m := &recovered{batch: batch, unseen: unseen{began: r.Now()}}
	if m.nacks, m.err = r.fates(ctx, batch, topic); m.err != nil {
		return m
	}
	m.repeated, m.err = r.Resolve(ctx, func() error {
		stamp, results, err := r.store.Recover(ctx, r.id, fence, m.nacks)
		m.seq, m.results = stamp.Seq, results
		return err
	})
	return m
}

// fates decides for each expired hold between another attempt and the dead letters.
func (r *recoverer) fates(ctx context.Context, batch []expired, topic *store.Topic) ([]store.Nack, error) {
	var ids []string
	for _, e := range batch {
		if !e.known {
			ids = append(ids, e.id)
		}
	}
	var found []store.Snapshot
	if len(ids) > 0 {
		var err error
		if _, found, err = store.GetAll(ctx, r.store, r.id, ids); err != nil {
			return nil, err
		}
	}
	nacks := make([]store.Nack, len(batch))
	for i, e := range batch {
		if !e.known {
			e.retries, found = agenda.RetriesOf(&found[0].Task, topic), found[1:]
		}
		n := store.Nack{ID: e.id, Token: e.token, Error: "the worker did not settle the task in time", Outcome: store.OutcomeHoldExpired}
		nacks[i] = e.retries.Failed(n, store.ReasonHoldExpired, r.Random())
	}
	return nacks, nil
}

// onRecovered learns what became of a batch. own: this incarnation made the call.
func (r *recoverer) onRecovered(m *recovered, own bool) {
	if own {
		r.batches.Done()
	}
	if m.err != nil { // also that of the read before: there are no nacks then
		for _, e := range m.batch {
			r.holds.move(e.id, e.token, r.Now().Add(StoreRetry))
		}
		m.nacks = nil
	}
	var pending []store.Entry
	for i := range m.nacks {
		if e, again := r.learn(&m.nacks[i], &m.results[i]); again {
			pending = append(pending, e)
		}
	}
	if len(pending) > 0 {
		r.notifier.becamePending(m.seq, pending)
	}
	if m.repeated {
		r.tasks.Lower(m.began)
	}
	r.claim.noteError(m.err)
	r.scheduleFlush()
}

// learn records what the store says of a hold that ran out, and returns its task if that is
// pending again.
func (r *recoverer) learn(n *store.Nack, result *store.NackResult) (e store.Entry, pending bool) {
	if result.Status == store.NotDue {
		r.holds.move(n.ID, n.Token, result.Deadline)
		return e, false
	}
	r.holds.unregister(n.ID, n.Token)
	if result.Status != store.OK {
		return e, false
	}
	r.Metrics.Expired.Inc()
	if result.Due == 0 {
		r.TellSettled(r.id, n.ID)
		return e, false
	}
	return store.Entry{ID: n.ID, Due: result.Due, Traits: result.Traits}, true
}

// watch is the watchdog: it walks what the store says is running, and learns of
// holds that no timer knows, and then of the oldest of what is due. The first walk
// after a claim brings back the holds of whoever owned the shard before. One that fails
// is made again after a pause.
func (r *recoverer) watch() {
	if r.watching || !r.claim.owned() {
		return
	}
	r.watching = true
	first, pause, fence, after := !r.claim.inherited(), r.watchPause(), r.claim.fence(), r.expireFrom
	m := &runningFound{first: first, epoch: fence.Epoch, since: r.holds.table.Added}
	r.calls.Run(func(ctx context.Context) {
		for cursor := ""; ; {
			var page []store.Running
			page, cursor, m.err = r.store.Running(ctx, r.id, cursor, r.knobs().LoadPage)
			m.holds = append(m.holds, page...)
			if cursor == "" || m.err != nil {
				break
			}
		}
		if limits := r.ref.Current.Load().Limits; m.err == nil && first && limits.Capped() {
			m.permits, m.err = r.permits.inherit(ctx, &limits, m.holds)
		}
		if m.err == nil && !first { // the claim loads them anyway
			m.expired, m.err = r.expire(ctx, fence, after)
		}
		if m.err == nil && !first { // of what is gone now nothing is learned anew
			overdue := store.WindowQuery{To: r.Now().Add(-watchSlack), Limit: r.knobs().LoadPage}
			_, m.overdue, m.err = r.store.Window(ctx, r.id, overdue)
		}
		if m.err != nil {
			Sleep(ctx, pause)
		}
		r.done(m)
	})
}

// discard has the walk made again that is in flight.
func (r *recoverer) discard() { r.stale = r.watching }

// watchPause is how long to wait should the next walk fail, too.
func (r *recoverer) watchPause() time.Duration {
	longest := max(StoreRetry, r.ref.Settings.WatchdogInterval)
	return min(StoreRetry<<min(r.failedWalks, 10), longest)
}

// onRunning learns the holds of a walk. Those with time left get a timer;
// those without were missed by one, and are counted.
func (r *recoverer) onRunning(m *runningFound) {
	r.watching = false
	r.onExpired(&m.expired)
	if stale := r.stale; stale || !r.claim.owned() || m.epoch != r.claim.fence().Epoch { // of a claim that is over
		r.stale = false
		r.watch()
		return
	}
	for _, found := range m.holds {
		if !r.holds.news(&found, m.since) {
			continue
		}
		if !m.first && found.Deadline < r.Now().Add(-watchSlack) {
			r.Metrics.Watchdog.Inc()
		}
		r.holds.register(&agenda.Hold{ID: found.ID, Token: found.Token, Deadline: found.Deadline})
		if p := m.permits[found.ID]; p != nil {
			r.holds.permitted(found.ID, p)
		}
	}
	r.takeOverdue(m.overdue)
	if m.err != nil {
		r.failedWalks++
		r.claim.noteError(m.err)
		r.watch()
		return
	}
	r.failedWalks = 0
	r.claim.inherit()
	r.sweep()
}

// takeOverdue learns of tasks that are due and that nothing in memory knew: a store
// that was set back between two looks at its seq has them again.
func (r *recoverer) takeOverdue(tasks []store.Entry) {
	r.tasks.Found(r.Now(), tasks...)
}

// sweep looks through a slice of the shard's keys for tasks that fell out of
// their index.
func (r *recoverer) sweep() {
	if r.sweeping || !r.claim.owned() {
		return
	}
	r.sweeping = true
	fence, cursor := r.claim.fence(), r.sweepAt
	r.calls.Run(func(ctx context.Context) {
		m := &swept{}
		m.repaired, m.next, m.err = r.store.Sweep(ctx, r.id, fence, cursor, r.knobs().SweepPage)
		r.done(m)
	})
}

func (r *recoverer) onSwept(m *swept) {
	r.sweeping = false
	if m.err != nil {
		r.claim.noteError(m.err)
		return
	}
	r.sweepAt = m.next
	if m.repaired > 0 {
		r.Metrics.Repaired.Add(float64(m.repaired))
		r.Log.Warn("tasks repaired that no index knew", "topic", r.id.Topic, "shard", r.id.N, "tasks", m.repaired)
		r.tasks.Reread()
		r.loader.load()
	}
}

package metrics

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ddq-io/ddq/actors/clock"
	"github.com/ddq-io/ddq/actors/dispatch"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/store"
)

// Metrics of a node. Children with labels are resolved once, off the hot path.
type Metrics struct {
	taskMetrics
	topicMetrics
	shardMetrics
	storeMetrics

	Schedules Schedules
	Workflows Workflows
	AckMetrics
	QuotaMetrics
	Limits LimitMetrics
}

// taskMetrics are what happened to tasks, and when.
type taskMetrics struct {
	enqueued, deduplicated prometheus.Counter
	delivered, redelivered prometheus.Counter
	Acked, retried         prometheus.Counter
	dead, released         prometheus.Counter
	Expired, Watchdog      prometheus.Counter
	Repaired, Loaded       prometheus.Counter
	Linked                 prometheus.Counter
	JournalEntries         prometheus.Counter
	TracesCut              prometheus.Counter
	trimmed                map[string]prometheus.Counter // dead letters, by why
	unheld                 map[store.Status]prometheus.Counter
	lateness, earliness    prometheus.Histogram
}

// topicMetrics are where the tasks of each topic are.
type topicMetrics struct {
	ready, inFlight *prometheus.GaugeVec
	credit          *prometheus.GaugeVec
	queued, Waits   *prometheus.GaugeVec
}

// shardMetrics are what the node runs, and has in memory.
type shardMetrics struct {
	Shards, Owned, Unseen   prometheus.Gauge
	Subscriptions           prometheus.Gauge
	Unsent                  prometheus.Gauge
	Wheel                   prometheus.Gauge
	MissedNotices, Restarts prometheus.Counter
	SetBacks, Forgotten     prometheus.Counter
}

// storeMetrics are the store's calls and its clocks.
type storeMetrics struct {
	StoreErrors prometheus.Counter
	ClockJumps  prometheus.Counter
	ClockSpread prometheus.Gauge
	calls       map[string]callMetrics
}

type callMetrics struct {
	seconds, items prometheus.Observer
	errors         prometheus.Counter
}

// storeCalls are the calls that are measured.
var storeCalls = [...]string{"add", "add_keyed", "hold_new", "hold", "ack", "nack", "extend", "checkpoint", "recover", "window", "take"}

// New registers the metrics of a node. Two nodes with one registry share them.
func New(reg prometheus.Registerer) *Metrics {
	f := factory{reg}
	m := &Metrics{
		taskMetrics: newTaskMetrics(f), topicMetrics: newTopicMetrics(f), shardMetrics: newShardMetrics(f), storeMetrics: newStoreMetrics(f),
		Schedules:    newSchedules(f),
		Workflows:    newWorkflows(f),
		AckMetrics:   newAckMetrics(f),
		QuotaMetrics: newQuotaMetrics(f),
		Limits:       newLimitMetrics(f),
	}
	f.storeCalls(m.calls)
	return m
}

func newTaskMetrics(f factory) taskMetrics {
	tasks := f.counters("ddq_tasks_total", "Tasks by what happened to them.", "event")
	unheld := f.counters("ddq_hints_wasted_total", "Ready tasks that could not be held, by reason.", "reason")
	trimmed := f.counters("ddq_dead_letters_trimmed_total", "Dead letters deleted, because their retention passed or there were more than max_dead.", "reason")
	return taskMetrics{
		enqueued:       tasks.WithLabelValues("enqueued"),
		deduplicated:   tasks.WithLabelValues("deduplicated"),
		delivered:      tasks.WithLabelValues("delivered"),
		redelivered:    tasks.WithLabelValues("redelivered"),
		Acked:          tasks.WithLabelValues("acked"),
		retried:        tasks.WithLabelValues("retried"),
		released:       tasks.WithLabelValues("released"),
		dead:           tasks.WithLabelValues("dead"),
		Expired:        tasks.WithLabelValues("hold_expired"),
		Repaired:       tasks.WithLabelValues("repaired"),
		Loaded:         tasks.WithLabelValues("loaded"),
		Watchdog:       f.counter("ddq_watchdog_holds_total", "Expired holds that only the watchdog found."),
		Linked:         f.counter("ddq_linked_tasks_total", "Tasks held at other nodes for workers of this one."),
		JournalEntries: f.counter("ddq_journal_entries_total", "Entries that checkpoints added to the journals of tasks."),
		TracesCut:      f.counter("ddq_trace_contexts_cut_total", "Enqueues and settlements whose trace context was malformed or too long, and was left out or cut."),
		trimmed:        map[string]prometheus.Counter{TrimmedOld: trimmed.WithLabelValues(TrimmedOld), TrimmedOver: trimmed.WithLabelValues(TrimmedOver)},
		lateness:       f.histogram("ddq_lateness_seconds", "Delivery time minus due time.", latenessBuckets()),
		earliness:      f.histogram("ddq_earliness_seconds", "Due time minus delivery time, where positive. Must stay empty.", latenessBuckets()),
		unheld: map[store.Status]prometheus.Counter{
			store.WrongState: unheld.WithLabelValues("running"),
			store.NotFound:   unheld.WithLabelValues("gone"),
			store.Expired:    unheld.WithLabelValues("expired"),
			store.Corrupt:    unheld.WithLabelValues("corrupt"),
			store.Behind:     unheld.WithLabelValues("behind"),
		},
	}
}

func newTopicMetrics(f factory) topicMetrics {
	return topicMetrics{
		ready:    f.gauges("ddq_ready_tasks", "Due tasks in memory that wait for credit.", "topic"),
		inFlight: f.gauges("ddq_in_flight_tasks", "Tasks assigned to subscriptions and not settled.", "topic"),
		credit:   f.gauges("ddq_credit_tasks", "Deliveries that subscriptions have granted and not had.", "topic"),
		queued:   f.gauges("ddq_queue_tasks", "Tasks in the store, by state, of topics in use on this node: in a fleet those of the shards that it should own.", "topic", "state"),
		Waits:    f.gauges("ddq_waiting_tasks", "Due tasks in memory that wait for something else than credit: a token, a permit, or another task of their ordering key; and of what that is: the topic, a key, or the namespace.", "topic", "for", "of"),
	}
}

func newShardMetrics(f factory) shardMetrics {
	return shardMetrics{
		Shards:        f.gauge("ddq_shards", "Shards this node runs."),
		Owned:         f.gauge("ddq_shards_owned", "Shards this node owns."),
		Unseen:        f.gauge("ddq_cluster_unseen_nodes", "Nodes that use this node's store, and that its gossip does not show."),
		Subscriptions: f.gauge("ddq_subscriptions", "Subscriptions on this node."),
		Unsent:        f.gauge("ddq_unsent_bytes", "Bytes of tasks that are out of the store, or about to be, and not sent to a worker."),
		Wheel:         f.gauge("ddq_wheel_tasks", "Pending tasks in the wheel: due within the horizon."),
		Forgotten:     f.counter("ddq_store_forgotten_total", "Times that the store knew nothing of this node any more: it was emptied, or set back to before the node started."),
		SetBacks:      f.counter("ddq_store_set_backs_total", "Shards read again because the store restarted, failed over, or went back."),
		MissedNotices: f.counter("ddq_missed_notices_total", "Shards read again because no node told of a change."),
		Restarts:      f.counter("ddq_actor_restarts_total", "Actors restarted after a panic."),
	}
}

func newStoreMetrics(f factory) storeMetrics {
	return storeMetrics{
		StoreErrors: f.counter("ddq_store_errors_total", "Store calls that failed."),
		ClockJumps:  f.counter("ddq_clock_jumps_total", "Steps of the store's clock beyond 500 ms."),
		ClockSpread: f.gauge("ddq_store_clock_spread_seconds", "By how much clocks of the store's primaries differ, at least."),
		calls:       make(map[string]callMetrics),
	}
}

func latenessBuckets() []float64 {
	return []float64{.0005, .001, .0015, .002, .003, .004, .006, .01, .015, .025, .05, .1, .25, .5, 1, 2.5, 10, 60, 600}
}

// ObserveLateness counts a delivery, and how late it is.
func (m *Metrics) ObserveLateness(t *store.Task, now store.Millis) {
	m.delivered.Inc()
	if t.Attempt > 1 {
		m.redelivered.Inc()
	}
	switch late := now.Sub(t.Due); {
	case late < 0:
		m.earliness.Observe(-late.Seconds())
	case t.Trace.Sampled():
		observeTraced(m.lateness, late.Seconds(), t)
	default:
		m.lateness.Observe(late.Seconds())
	}
}

// CountNack counts a nack or a release that the store took.
func (m *Metrics) CountNack(ask *subscription.Settlement, dead bool) {
	switch {
	case dead:
		m.dead.Inc()
	case ask.Kind == subscription.SettleRelease:
		m.released.Inc()
	default:
		m.retried.Inc()
	}
}

// CountUnheld counts a ready task that could not be held.
func (m *Metrics) CountUnheld(s store.Status) {
	if c := m.unheld[s]; c != nil {
		c.Inc()
	}
}

// TopicMetrics are the gauges of one topic.
type TopicMetrics struct {
	ready, inFlight, credit prometheus.Gauge
	limits                  *topicLimits // nil: it has had none
}

// Topic are the gauges of a topic; Forget removes them.
func (m *Metrics) Topic(name string) TopicMetrics {
	return TopicMetrics{ready: m.ready.WithLabelValues(name), inFlight: m.inFlight.WithLabelValues(name), credit: m.credit.WithLabelValues(name)}
}

// CountOrdered adds tasks that wait for the one before them of their ordering key.
func (m *Metrics) CountOrdered(topic string, n int) {
	m.Waits.WithLabelValues(topic, WaitsForOrder, ofKey).Add(float64(n))
}

// Set shows what a topic's core has.
func (t *TopicMetrics) Set(topic *dispatch.Topic) {
	g := topic.Gauges()
	if t.limits != nil {
		t.limits.set(&g, topic.Pressing())
	}
	t.ready.Set(float64(g.Ready))
	t.inFlight.Set(float64(g.InFlight))
	t.credit.Set(float64(g.Credit))
}

// Forget removes the gauges of a topic that is closed. Each is named in full: a match by
// topic alone walks the gauges of all topics.
func (m *Metrics) Forget(topic string) {
	m.ready.DeleteLabelValues(topic)
	m.inFlight.DeleteLabelValues(topic)
	m.credit.DeleteLabelValues(topic)
	m.Waits.DeleteLabelValues(topic, WaitsForOrder, ofKey)
	m.forgetLimits(topic)
	m.Schedules.forget(topic)
	m.Workflows.forget(topic)
	for state := range queuedStates(Depth{}) {
		m.queued.DeleteLabelValues(topic, state)
	}
}

// SetQueued sets the gauges of what a topic has in the store.
func (m *Metrics) SetQueued(topic string, d Depth) {
	for state, n := range queuedStates(d) {
		m.queued.WithLabelValues(topic, state).Set(float64(n))
	}
}

// queuedStates are the numbers of ddq_queue_tasks, by state.
func queuedStates(d Depth) map[string]int64 {
	return map[string]int64{
		"scheduled": d.Scheduled, "ready": d.Ready, "running": d.Running, "done": d.Done, "dead": d.Dead,
	}
}

// factory registers collectors; a second one of a name is the first.
type factory struct{ reg prometheus.Registerer }

func (f factory) counters(name, help string, labels ...string) *prometheus.CounterVec {
	return register(f.reg, prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels))
}

func (f factory) counter(name, help string) prometheus.Counter {
	return register(f.reg, prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help}))
}

func (f factory) gauge(name, help string) prometheus.Gauge {
	return register(f.reg, prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help}))
}

func (f factory) gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	return register(f.reg, prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels))
}

func (f factory) histogram(name, help string, buckets []float64) prometheus.Histogram {
	return register(f.reg, prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}))
}

func (f factory) histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return register(f.reg, prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels))
}

func (f factory) storeCalls(into map[string]callMetrics) {
	seconds := register(f.reg, prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "ddq_store_call_seconds", Help: "Duration of store calls.",
		Buckets: prometheus.ExponentialBuckets(.0001, 2, 16),
	}, []string{"call"}))
	items := register(f.reg, prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "ddq_store_batch_tasks", Help: "Tasks in a store call.",
		Buckets: prometheus.ExponentialBuckets(1, 2, 12),
	}, []string{"call"}))
	failed := f.counters("ddq_store_call_errors_total", "Store calls that failed, by call.", "call")
	for _, c := range storeCalls {
		into[c] = callMetrics{seconds.WithLabelValues(c), items.WithLabelValues(c), failed.WithLabelValues(c)}
	}
}

func register[C prometheus.Collector](reg prometheus.Registerer, c C) C {
	if err := reg.Register(c); err != nil {
		var known prometheus.AlreadyRegisteredError
		if errors.As(err, &known) {
			return known.ExistingCollector.(C)
		}
		panic(err) // two metrics of one name: a bug
	}
	return c
}

// Observe returns the store as a node uses it: it measures the calls of the hot path, and
// lets the clocks learn from the stamps of their answers. clockOf is the clock of a shard,
// nil when nobody goes by it. heard is told of the last parcel of a shard's in-box.
func Observe(st store.Store, m *Metrics, clockOf func(store.Shard) *clock.Clock, heard func(s store.Shard, in int64)) store.Store {
	return observedStore{Store: st, metrics: m, clockOf: clockOf, heard: heard}
}

// observedStore measures the calls of the hot path and lets the clock learn from
// their replies. Everything else passes through.
type observedStore struct {
	store.Store
	metrics *Metrics
	clockOf func(store.Shard) *clock.Clock // nil: nobody goes by it
	heard   func(s store.Shard, in int64)
}

func (o observedStore) observe(call string, s store.Shard, items int, sent time.Time, stamp store.Stamp, err error) {
	now := o.metrics.calls[call].observe(items, sent, err)
	if err != nil {
		return
	}
	o.observeClock(s, sent, now, stamp)
	o.observeBox(s, stamp)
}

// observe counts a call that was made at a moment, and returns when it ended.
func (m callMetrics) observe(items int, sent time.Time, err error) time.Time {
	now := time.Now()
	m.seconds.Observe(now.Sub(sent).Seconds())
	m.items.Observe(float64(items))
	if err != nil {
		m.errors.Inc()
	}
	return now
}

// observeBox passes on that there are parcels, which most shards never have.
func (o observedStore) observeBox(s store.Shard, stamp store.Stamp) {
	if stamp.In != 0 {
		o.heard(s, stamp.In)
	}
}

func (o observedStore) Remove(ctx context.Context, s store.Shard, removals []store.Removal) (store.Stamp, []store.RemoveResult, error) {
	stamp, results, err := o.Store.Remove(ctx, s, removals)
	o.observeBox(s, stamp)
	return stamp, results, err
}

func (o observedStore) Requeue(ctx context.Context, s store.Shard, ids []string) (store.Stamp, []store.RemoveResult, error) {
	stamp, results, err := o.Store.Requeue(ctx, s, ids)
	o.observeBox(s, stamp)
	return stamp, results, err
}

func (o observedStore) observeClock(s store.Shard, sent, received time.Time, stamp store.Stamp) {
	if stamp.Now.IsZero() {
		return
	}
	if c := o.clockOf(s); c != nil {
		c.Observe(sent, received, stamp.Now)
	}
}

func (o observedStore) Add(ctx context.Context, s store.Shard, tasks []*store.Task) (store.Stamp, []store.AddResult, error) {
	sent := time.Now()
	stamp, results, err := o.Store.Add(ctx, s, tasks)
	o.observe("add", s, len(tasks), sent, stamp, err)
	return stamp, results, err
}

func (o observedStore) AddKeyed(ctx context.Context, s store.Shard, tasks []*store.Task) (store.Stamp, []store.AddResult, error) {
	sent := time.Now()
	stamp, results, err := o.Store.AddKeyed(ctx, s, tasks)
	o.observe("add_keyed", s, len(tasks), sent, stamp, err)
	return stamp, results, err
}

func (o observedStore) HoldNew(ctx context.Context, s store.Shard, f store.Fence, tasks []*store.Task, holds []store.Hold) (store.Stamp, []store.AddResult, error) {
	sent := time.Now()
	stamp, results, err := o.Store.HoldNew(ctx, s, f, tasks, holds)
	o.observe("hold_new", s, len(tasks), sent, stamp, err)
	return stamp, results, err
}

func (o observedStore) Hold(ctx context.Context, s store.Shard, f store.Fence, holds []store.Hold) (store.Stamp, []store.HoldResult, error) {
	sent := time.Now()
	stamp, results, err := o.Store.Hold(ctx, s, f, holds)
	o.observe("hold", s, len(holds), sent, stamp, err)
	return stamp, results, err
}

func (o observedStore) Ack(ctx context.Context, s store.Shard, acks []store.Ack, retention time.Duration) (store.Stamp, []store.Status, error) {
	sent := time.Now()
	stamp, results, err := o.Store.Ack(ctx, s, acks, retention)
	o.observe("ack", s, len(acks), sent, stamp, err)
	return stamp, results, err
}

func (o observedStore) Nack(ctx context.Context, s store.Shard, nacks []store.Nack) (store.Stamp, []store.NackResult, error) {
	sent := time.Now()
	stamp, results, err := o.Store.Nack(ctx, s, nacks)
	o.observe("nack", s, len(nacks), sent, stamp, err)
	return stamp, results, err
}

func (o observedStore) Extend(ctx context.Context, s store.Shard, extends []store.Extend) (store.Stamp, []store.ExtendResult, error) {
	sent := time.Now()
	stamp, results, err := o.Store.Extend(ctx, s, extends)
	o.observe("extend", s, len(extends), sent, stamp, err)
	return stamp, results, err
}

func (o observedStore) Checkpoint(ctx context.Context, s store.Shard, checkpoints []store.Checkpoint) (store.Stamp, []store.Status, error) {
	sent := time.Now()
	stamp, results, err := o.Store.Checkpoint(ctx, s, checkpoints)
	o.observe("checkpoint", s, len(checkpoints), sent, stamp, err)
	return stamp, results, err
}

func (o observedStore) Recover(ctx context.Context, s store.Shard, f store.Fence, nacks []store.Nack) (store.Stamp, []store.NackResult, error) {
	sent := time.Now()
	stamp, results, err := o.Store.Recover(ctx, s, f, nacks)
	o.observe("recover", s, len(nacks), sent, stamp, err)
	return stamp, results, err
}

func (o observedStore) Window(ctx context.Context, s store.Shard, w store.WindowQuery) (store.Stamp, []store.Entry, error) {
	sent := time.Now()
	stamp, entries, err := o.Store.Window(ctx, s, w)
	o.observe("window", s, len(entries), sent, stamp, err)
	return stamp, entries, err
}

// Take is measured, but where the store has none.
func (o observedStore) Take(ctx context.Context, q *store.Take) (*store.TakeReply, error) {
	sent := time.Now()
	reply, err := o.Store.Take(ctx, q)
	if m := o.metrics.calls["take"]; !errors.Is(err, store.ErrNoTake) {
		m.observe(len(q.Wants), sent, err)
	}
	return reply, err
}

// Stats is not measured. Every shard tells of its clock.
func (o observedStore) Stats(ctx context.Context, shards []store.Shard) ([]store.Stats, error) {
	return o.observeClocks(ctx, shards, o.Store.Stats)
}

// Counts is not measured either.
func (o observedStore) Counts(ctx context.Context, shards []store.Shard) ([]store.Stats, error) {
	return o.observeClocks(ctx, shards, o.Store.Counts)
}

func (o observedStore) observeClocks(ctx context.Context, shards []store.Shard, ask func(context.Context, []store.Shard) ([]store.Stats, error)) ([]store.Stats, error) {
	sent := time.Now()
	stats, err := ask(ctx, shards)
	now := time.Now()
	for i := range stats {
		o.observeClock(shards[i], sent, now, stats[i].Stamp)
	}
	return stats, err
}

// Why dead letters were trimmed.
const (
	TrimmedOld  = "retention" // they were kept long enough
	TrimmedOver = "cap"       // the oldest of too many
)

// CountEnqueued counts tasks that were stored, and those that were there already.
func (m *Metrics) CountEnqueued(stored, again int) {
	m.enqueued.Add(float64(stored))
	m.deduplicated.Add(float64(again))
}

// CountTrimmed counts dead letters that were deleted, and why.
func (m *Metrics) CountTrimmed(why string, n int) { m.trimmed[why].Add(float64(n)) }

// CountStoreError counts a call of the store that failed.
func (m *Metrics) CountStoreError() { m.StoreErrors.Inc() }

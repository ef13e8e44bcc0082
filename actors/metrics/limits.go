package metrics

import (
	"maps"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ddq-io/ddq/actors/dispatch"
	"github.com/ddq-io/ddq/store"
)

// What ddq_waiting_tasks says that tasks wait for, as the API does.
const (
	WaitsForRate        = "rate"
	WaitsForConcurrency = "concurrency"
	WaitsForOrder       = "order"
)

// And of what that is.
const (
	ofTopic     = "topic"
	ofKey       = "key"
	ofNamespace = "namespace"
)

// limitLabels are a limit as ddq_waiting_tasks names it: what tasks wait for, and of what.
var limitLabels = [dispatch.Lacks][2]string{
	dispatch.LackRate:         {WaitsForRate, ofTopic},
	dispatch.LackKeyRate:      {WaitsForRate, ofKey},
	dispatch.LackCap:          {WaitsForConcurrency, ofTopic},
	dispatch.LackKeyCap:       {WaitsForConcurrency, ofKey},
	dispatch.LackNamespaceCap: {WaitsForConcurrency, ofNamespace},
}

// What became of tokens that were not used.
const (
	tokensReturned = "returned"
	tokensLost     = "lost"
)

// LimitMetrics are about topics with limits.
type LimitMetrics struct {
	refused, unused *prometheus.CounterVec
	waits           *limitWaits
}

func newLimitMetrics(f factory) LimitMetrics {
	return LimitMetrics{
		refused: f.counters("ddq_limit_refusals_total", "Limits of which the store had no token or permit for a task with room at a worker, each once a call: by what the task lacked, and of what that is.", "topic", "for", "of"),
		unused:  f.counters("ddq_unused_tokens_total", "Tokens of rates that were taken for tasks that were not held, by whether they went back.", "topic", "outcome"),
		waits:   register(f.reg, newLimitWaits()),
	}
}

// Waited is for how many topics a task has waited for at least so long, now or lately, that had room and all that its limits
// ask for, and the longest of these waits.
func (m *LimitMetrics) Waited(atLeast time.Duration) (topics int, longest time.Duration) {
	now := time.Now()
	for _, w := range m.waits.all() {
		if d := w.longest(now); d >= atLeast {
			topics, longest = topics+1, max(longest, d)
		}
	}
	return topics, longest
}

// topicLimits are the metrics of one topic that has limits, or had some.
type topicLimits struct {
	lack           [dispatch.Lacks]prometheus.Gauge   // nil: it has had no such limit
	refused        [dispatch.Lacks]prometheus.Counter // as lack
	returned, lost prometheus.Counter                 // nil: it has had no rate
	wait           *limitWait
	pressing       time.Time // what the core said last
}

// Limited adds the metrics of a topic that has limits.
func (t *TopicMetrics) Limited(m *Metrics, name string, limits *store.TopicLimits) {
	if t.limits == nil {
		t.limits = &topicLimits{wait: m.Limits.waits.of(name)}
	}
	l := t.limits
	for i, by := range limitLabels {
		if l.lack[i] == nil && dispatch.Lack(i).Of(limits) {
			l.lack[i], l.refused[i] = m.Waits.WithLabelValues(name, by[0], by[1]), m.Limits.refused.WithLabelValues(name, by[0], by[1])
		}
	}
	if l.lost == nil && (limits.Rate.Limited() || limits.KeyRate.Limited()) {
		l.returned, l.lost = m.Limits.unused.WithLabelValues(name, tokensReturned), m.Limits.unused.WithLabelValues(name, tokensLost)
	}
}

// set shows what a topic's core has.
func (l *topicLimits) set(g *dispatch.Gauges, pressing time.Time) {
	for i, gauge := range l.lack {
		if gauge != nil {
			gauge.Set(float64(g.Lack[i]))
		}
	}
	if !pressing.Equal(l.pressing) {
		l.pressing = pressing
		l.wait.set(!pressing.IsZero())
	}
}

// Count counts what happened under the limits of the topic.
func (t *TopicMetrics) Count(c *dispatch.LimitCounts) {
	l := t.limits
	if l == nil || *c == (dispatch.LimitCounts{}) {
		return
	}
	for i, n := range c.Refused {
		if l.refused[i] != nil {
			l.refused[i].Add(float64(n))
		}
	}
	if l.lost != nil {
		l.returned.Add(float64(c.Returned))
		l.lost.Add(float64(c.Lost))
	}
	if c.Waited > 0 {
		l.wait.ended(c.Waited)
	}
}

// forgetLimits removes what is of a topic.
func (m *Metrics) forgetLimits(topic string) {
	for _, by := range limitLabels {
		m.Waits.DeleteLabelValues(topic, by[0], by[1])
		m.Limits.refused.DeleteLabelValues(topic, by[0], by[1])
	}
	for _, outcome := range [...]string{tokensReturned, tokensLost} {
		m.Limits.unused.DeleteLabelValues(topic, outcome)
	}
	m.Limits.waits.forget(topic)
}

// waitWindow is for how long a wait that ended is shown, at least; at most for twice as long.
const waitWindow = 5 * time.Minute

// limitWait is how long tasks of a topic waited that had room, and all that their limits ask for. Safe for concurrent use.
type limitWait struct {
	mu             sync.Mutex
	since          time.Time     // of the one that goes on; zero: none does. All are guarded by mu
	recent, before time.Duration // the longest that ended in this window, and in the one before
	began          time.Time     // of this window
}

// set says that a wait begins now, or that none goes on.
func (w *limitWait) set(waits bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.since = (time.Time{}); waits {
		w.since = time.Now()
	}
}

// ended records a wait.
func (w *limitWait) ended(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.turn(time.Now())
	w.recent = max(w.recent, d)
}

// turn begins a window when it is time.
func (w *limitWait) turn(now time.Time) {
	switch passed := now.Sub(w.began); {
	case passed < waitWindow:
		return
	case passed < 2*waitWindow:
		w.before = w.recent
	default:
		w.before = 0
	}
	w.recent, w.began = 0, now
}

// longest is the longest wait of the windows, and of now.
func (w *limitWait) longest(now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.turn(now)
	longest := max(w.recent, w.before)
	if !w.since.IsZero() {
		longest = max(longest, now.Sub(w.since))
	}
	return longest
}

// limitWaits are those of all topics with limits, as a collector.
type limitWaits struct {
	desc *prometheus.Desc

	mu sync.Mutex
	by map[string]*limitWait // by topic; guarded by mu
}

func newLimitWaits() *limitWaits {
	return &limitWaits{
		by: make(map[string]*limitWait),
		desc: prometheus.NewDesc("ddq_limit_wait_seconds",
			"The longest that a task has waited in the last five minutes or more, or waits now, although it had room at a worker and, as far as the node knew, all that its limits ask for: the wait for an answer of the store.", []string{"topic"}, nil),
	}
}

func (l *limitWaits) of(topic string) *limitWait {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.by[topic] == nil {
		l.by[topic] = new(limitWait)
	}
	return l.by[topic]
}

func (l *limitWaits) forget(topic string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.by, topic)
}

// all is a copy of them.
func (l *limitWaits) all() map[string]*limitWait {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.by)
}

// Describe implements prometheus.Collector.
func (l *limitWaits) Describe(to chan<- *prometheus.Desc) { to <- l.desc }

// Collect implements prometheus.Collector.
func (l *limitWaits) Collect(to chan<- prometheus.Metric) {
	now := time.Now()
	for topic, w := range l.all() {
		to <- prometheus.MustNewConstMetric(l.desc, prometheus.GaugeValue, w.longest(now).Seconds(), topic)
	}
}

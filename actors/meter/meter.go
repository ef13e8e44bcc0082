package meter

import (
	"strings"
	"sync"
	"sync/atomic"

	"github.com/ddq-io/ddq/actors/pulse"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/store"
)

// MostTopics bounds the pulses of a node. Topics that come into use beyond it have none.
const MostTopics = 10_000

// Meter has the pulses of the topics that were in use on a node within the hour. It is safe for
// concurrent use.
type Meter struct {
	now    func() store.Millis
	topics sync.Map // name -> *topic
	used   atomic.Int64
	missed atomic.Int64 // when something was not counted, as there were too many topics: Unix ms
}

// topic has the pulse of one.
type topic struct {
	mu    sync.Mutex
	pulse *pulse.Pulse   // guarded by mu
	late  []store.Millis // of deliveries that are being counted; guarded by mu
	gone  bool           // another one is in its place, or none; guarded by mu
}

// New returns a meter that goes by a clock.
func New(now func() store.Millis) *Meter { return &Meter{now: now} }

// Count counts what has happened to tasks of a topic.
func (m *Meter) Count(name string, t pulse.Tally) {
	if t.Empty() {
		return
	}
	now := m.now()
	m.with(name, now, func(at *topic) { at.pulse.Count(now, &t) })
}

// Deliver counts tasks of a topic that are handed to a worker when the clock of their shard says at.
func (m *Meter) Deliver(name string, at store.Millis, tasks []subscription.HeldTask) {
	now := m.now()
	m.with(name, now, func(t *topic) {
		t.late = t.late[:0]
		for i := range tasks {
			t.late = append(t.late, max(0, at-tasks[i].Task.Due))
		}
		t.pulse.Deliver(now, t.late)
	})
}

// with calls do with the pulse of a topic, which it makes; not if there are too many.
func (m *Meter) with(name string, now store.Millis, do func(*topic)) {
	for {
		t := m.topic(name)
		if t == nil {
			m.missed.Store(int64(now))
			return
		}
		if t.do(do) {
			return
		}
	}
}

// do reports whether the topic was still there.
func (t *topic) do(do func(*topic)) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.gone {
		do(t)
	}
	return !t.gone
}

func (m *Meter) topic(name string) *topic {
	if t, known := m.topics.Load(name); known {
		return t.(*topic)
	}
	if m.used.Add(1) > MostTopics {
		m.used.Add(-1)
		return nil
	}
	t, known := m.topics.LoadOrStore(strings.Clone(name), &topic{pulse: pulse.New()})
	if known {
		m.used.Add(-1)
	}
	return t.(*topic)
}

// Reports are those of topics to which something has happened, by name.
func (m *Meter) Reports(names []string) map[string]*pulse.Report {
	now, found := m.now(), make(map[string]*pulse.Report)
	for _, name := range names {
		t, known := m.topics.Load(name)
		if !known {
			continue
		}
		if r := t.(*topic).report(now); !r.Empty() {
			found[name] = &r
		}
	}
	return found
}

func (t *topic) report(now store.Millis) pulse.Report {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.pulse.Report(now)
}

// Incomplete reports whether there were too many topics within the hour.
func (m *Meter) Incomplete() bool {
	missed := store.Millis(m.missed.Load())
	return missed != 0 && m.now()-missed < pulse.Kept
}

// Forget forgets a topic that was deleted.
func (m *Meter) Forget(name string) {
	if t, known := m.topics.Load(name); known {
		m.drop(name, t.(*topic), func(*topic) bool { return true })
	}
}

// ForgetIdle forgets topics to which nothing has happened for more than an hour.
func (m *Meter) ForgetIdle() {
	now := m.now()
	m.topics.Range(func(name, t any) bool {
		m.drop(name.(string), t.(*topic), func(t *topic) bool { return t.pulse.Idle(now) })
		return true
	})
}

func (m *Meter) drop(name string, t *topic, which func(*topic) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gone || !which(t) {
		return
	}
	t.gone = true
	if m.topics.CompareAndDelete(name, t) {
		m.used.Add(-1)
	}
}

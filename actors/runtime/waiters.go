package runtime

import (
	"cmp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/ordered"
	"github.com/ddq-io/ddq/store"
)

const (
	// WaitersEvery is how often the store is looked at for all tasks that calls wait
	// for, because nobody may have said that they are settled. It is the longest that
	// such a call learns late what another node did.
	WaitersEvery = time.Second
	// ToldFor is how long a node remembers who wants to be told. It is told again
	// before, for as long as it waits.
	ToldFor = 5 * WaitersEvery
	// maxTold bounds the tasks that other nodes wait for.
	maxTold = 100_000
)

// Waiters are the calls of this node that wait for tasks to be settled, and the other
// nodes that have such calls. What they are told is a hint: they look for themselves.
type Waiters struct {
	n atomic.Int64 // entries of byTask: without any, nothing is locked

	mu     sync.Mutex
	byTask map[taskKey]*awaited // guarded by mu
}

type taskKey struct{ topic, id string }

// awaited is a task that somebody waits for.
type awaited struct {
	calls map[*waiter]struct{}
	nodes map[string]time.Time // until when
}

// waiter is one call.
type waiter struct {
	Places []store.Shard // where the task may be
	id     string
	Wake   chan struct{} // has a token when the task may be settled
}

// NewWaiters returns none.
func NewWaiters() *Waiters { return &Waiters{byTask: make(map[taskKey]*awaited)} }

// at returns the entry of a task, made on first use. The caller holds mu.
func (w *Waiters) at(key taskKey) *awaited {
	a := w.byTask[key]
	if a == nil {
		a = &awaited{}
		w.byTask[key] = a
		w.n.Add(1)
	}
	return a
}

// tidy drops an entry that nobody waits at. The caller holds mu.
func (w *Waiters) tidy(key taskKey, a *awaited) {
	if len(a.calls)+len(a.nodes) == 0 {
		delete(w.byTask, key)
		w.n.Add(-1)
	}
}

// Add begins a wait for a task, which remove ends.
func (w *Waiters) Add(places []store.Shard, id string) *waiter {
	call := &waiter{Places: places, id: id, Wake: make(chan struct{}, 1)}
	w.mu.Lock()
	defer w.mu.Unlock()
	a := w.at(taskKey{places[0].Topic, id})
	if a.calls == nil {
		a.calls = make(map[*waiter]struct{})
	}
	a.calls[call] = struct{}{}
	return call
}

// Remove ends a wait.
func (w *Waiters) Remove(call *waiter) {
	key := taskKey{call.Places[0].Topic, call.id}
	w.mu.Lock()
	defer w.mu.Unlock()
	a := w.byTask[key]
	delete(a.calls, call)
	w.tidy(key, a)
}

// Want records that another node waits for tasks.
func (w *Waiters) Want(topic string, ids []string, node string) {
	until := time.Now().Add(ToldFor)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range ids {
		if w.n.Load() >= maxTold {
			return // it finds out by itself
		}
		a := w.at(taskKey{topic, id})
		if a.nodes == nil {
			a.nodes = make(map[string]time.Time)
		}
		a.nodes[node] = until
	}
}

// Any reports whether anybody waits for any task.
func (w *Waiters) Any() bool { return w.n.Load() > 0 }

// settled wakes the calls that wait for a task, and returns the other nodes that want
// to be told, for the last time.
func (w *Waiters) settled(topic, id string) (nodes []string) {
	key := taskKey{topic, id}
	w.mu.Lock()
	defer w.mu.Unlock()
	a := w.byTask[key]
	if a == nil {
		return nil
	}
	for call := range a.calls {
		call.poke()
	}
	now := time.Now()
	for node, until := range a.nodes {
		if now.Before(until) {
			nodes = append(nodes, node)
		}
	}
	a.nodes = nil
	w.tidy(key, a)
	return nodes
}

// ByShard returns the ids of tasks that calls of this node wait for, and forgets nodes
// that ceased to ask.
func (w *Waiters) ByShard() map[store.Shard][]string {
	now := time.Now()
	all := make(map[store.Shard][]string)
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, a := range w.byTask {
		for node, until := range a.nodes {
			if !now.Before(until) {
				delete(a.nodes, node)
			}
		}
		for call := range a.calls {
			for _, place := range call.Places {
				all[place] = append(all[place], key.id)
			}
			break // the others wait for the same
		}
		w.tidy(key, a)
	}
	return all
}

func (c *waiter) poke() {
	select {
	case c.Wake <- struct{}{}:
	default:
	}
}

// TellSettled tells who waits for tasks of a shard, here and at other nodes, that they
// may be settled.
func (rt *Runtime) TellSettled(at store.Shard, ids ...string) {
	if !rt.Waiters.Any() {
		return
	}
	byNode := make(map[string][]string)
	for _, id := range ids {
		for _, node := range rt.Waiters.settled(at.Topic, id) {
			byNode[node] = append(byNode[node], id)
		}
	}
	for node, ids := range ordered.All(byNode, cmp.Compare) {
		rt.Fleet.Notify(node, fleet.Notice{Settled: []fleet.SettledNotice{{Shard: at, IDs: ids}}})
	}
}

// TellWaiting asks the owner of a shard to tell when tasks are settled.
func (rt *Runtime) TellWaiting(at store.Shard, ids []string, first bool) {
	rt.Fleet.NotifyOwner(at, fleet.Notice{Waiting: []fleet.WaitingNotice{{Shard: at, IDs: ids, Node: rt.Name, First: first}}})
}

// Len is how many tasks are waited for.
func (w *Waiters) Len() int { return int(w.n.Load()) }

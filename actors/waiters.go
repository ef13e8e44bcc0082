package actors

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ddq-io/ddq/store"
)

const (
	// waitersEvery is how often the store is looked at for all tasks that calls wait
	// for, because nobody may have said that they are settled. It is the longest that
	// such a call learns late what another node did.
	waitersEvery = time.Second
	// toldFor is how long a node remembers who wants to be told. It is told again
	// before, for as long as it waits.
	toldFor = 5 * waitersEvery
	// maxTold bounds the tasks that other nodes wait for.
	maxTold = 100_000
)

// waiters are the calls of this node that wait for tasks to be settled, and the other
// nodes that have such calls. What they are told is a hint: they look for themselves.
type waiters struct {
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
	places []store.Shard // where the task may be
	id     string
	wake   chan struct{} // has a token when the task may be settled
}

func newWaiters() *waiters { return &waiters{byTask: make(map[taskKey]*awaited)} }

// at returns the entry of a task, made on first use. The caller holds mu.
func (w *waiters) at(key taskKey) *awaited {
	a := w.byTask[key]
	if a == nil {
		a = &awaited{}
		w.byTask[key] = a
		w.n.Add(1)
	}
	return a
}

// tidy drops an entry that nobody waits at. The caller holds mu.
func (w *waiters) tidy(key taskKey, a *awaited) {
	if len(a.calls)+len(a.nodes) == 0 {
		delete(w.byTask, key)
		w.n.Add(-1)
	}
}

// add begins a wait for a task, which remove ends.
func (w *waiters) add(places []store.Shard, id string) *waiter {
	call := &waiter{places: places, id: id, wake: make(chan struct{}, 1)}
	w.mu.Lock()
	defer w.mu.Unlock()
	a := w.at(taskKey{places[0].Topic, id})
	if a.calls == nil {
		a.calls = make(map[*waiter]struct{})
	}
	a.calls[call] = struct{}{}
	return call
}

func (w *waiters) remove(call *waiter) {
	key := taskKey{call.places[0].Topic, call.id}
	w.mu.Lock()
	defer w.mu.Unlock()
	a := w.byTask[key]
	delete(a.calls, call)
	w.tidy(key, a)
}

// want takes in that another node waits for tasks.
func (w *waiters) want(topic string, ids []string, node string) {
	until := time.Now().Add(toldFor)
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

// any reports whether anybody waits for any task.
func (w *waiters) any() bool { return w.n.Load() > 0 }

// settled wakes the calls that wait for a task, and returns the other nodes that want
// to be told, for the last time.
func (w *waiters) settled(topic, id string) (nodes []string) {
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

// byShard returns the ids of tasks that calls of this node wait for, and forgets nodes
// that ceased to ask.
func (w *waiters) byShard() map[store.Shard][]string {
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
			for _, place := range call.places {
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
	case c.wake <- struct{}{}:
	default:
	}
}

// tellSettled tells who waits for tasks of a shard, here and at other nodes, that they
// may be settled.
func (rt *runtime) tellSettled(at store.Shard, ids ...string) {
	if !rt.waiters.any() {
		return
	}
	byNode := make(map[string][]string)
	for _, id := range ids {
		for _, node := range rt.waiters.settled(at.Topic, id) {
			byNode[node] = append(byNode[node], id)
		}
	}
	for node, ids := range byNode {
		rt.fleet.notify(node, Notice{Settled: []SettledNotice{{Shard: at, IDs: ids}}})
	}
}

// tellWaiting asks the owner of a shard to tell when tasks are settled.
func (rt *runtime) tellWaiting(at store.Shard, ids []string, first bool) {
	rt.fleet.notifyOwner(at, Notice{Waiting: []WaitingNotice{{Shard: at, IDs: ids, Node: rt.cfg.Node, First: first}}})
}

// tellHoldsSettled tells who waits for the tasks of holds that are over.
func (s *shard) tellHoldsSettled(holds []EndedHold) {
	if !s.waiters.any() {
		return
	}
	ids := make([]string, len(holds))
	for i, h := range holds {
		ids[i] = h.ID
	}
	s.tellSettled(s.id, ids...)
}

// wantedElsewhere takes in that another node waits for tasks. Those of which nothing is known
// here when it is first said may be settled already: it is to look again.
func (s *shard) wantedElsewhere(m *waitedElsewhere) {
	s.waiters.want(s.id.Topic, m.ids, m.node)
	if !m.first {
		return
	}
	var unknown []string
	for _, id := range m.ids {
		_, pending := s.due.Due(id)
		_, ready := s.out[id]
		if !pending && !ready && s.held.byID[id] == nil {
			unknown = append(unknown, id)
		}
	}
	if len(unknown) > 0 {
		s.tellSettled(s.id, unknown...)
	}
}

// onGone tells who waits for tasks that this node deleted, through the owner those at
// other nodes.
func (s *shard) onGone(ids []string) {
	s.tellSettled(s.id, ids...)
	if !s.owned {
		s.fleet.notifyOwner(s.id, Notice{Settled: []SettledNotice{{Shard: s.id, IDs: ids}}})
	}
}

// watchWaiters looks after the calls that wait until ctx ends.
func (s *System) watchWaiters(ctx context.Context) {
	every(ctx, waitersEvery, func(ctx context.Context) {
		if s.waiters.any() {
			s.lookForWaiters(ctx)
		}
	})
}

// lookForWaiters wakes the calls whose task the store says is settled, or gone, and
// reminds the owners of the others.
func (s *System) lookForWaiters(ctx context.Context) {
	for at, ids := range s.waiters.byShard() {
		s.tellWaiting(at, ids, false)
		for len(ids) > 0 {
			part := ids[:min(len(ids), batchItems)]
			ids = ids[len(part):]
			_, found, err := s.store.Get(ctx, at, part)
			if err != nil {
				s.log.Debug("no look at tasks that are waited for", "topic", at.Topic, "shard", at.N, "err", err)
				return
			}
			for i := range found {
				if !live(found[i].State) {
					s.tellSettled(at, part[i])
				}
			}
		}
	}
}

// live reports whether a task in this state will get into another one by itself.
func live(state store.State) bool { return state.Pending() || state == store.StateRunning }

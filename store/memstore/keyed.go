package memstore

import (
	"context"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/life"
)

// mark says which task has an idempotency key.
type mark struct {
	id    string
	past  life.Requests // those before it, and those that replaced it
	due   store.Millis
	until store.Millis // end of the window; 0: while the task is pending or running
	look  store.Millis // when to look whether the key is free
}

// AddKeyed implements store.Writer.
func (m writer) AddKeyed(ctx context.Context, s store.Shard, tasks []*store.Task) (store.Stamp, []store.AddResult, error) {
	return batch(ctx, m.core, s, access{adds: true}, tasks, func(sh *shard, now clock, t *store.Task) store.AddResult {
		defer sh.trimKeys(2, now)
		return sh.addKeyed(t, now)
	})
}

// addKeyed adds a task, unless another one has its key.
func (sh *shard) addKeyed(t *store.Task, now clock) store.AddResult {
	if t.Key == nil {
		return sh.addOrdered(t, now)
	}
	m := sh.marks[t.Mark()]
	if m == nil || !sh.taken(m, now) {
		return sh.addFree(t, m, store.Millis(0), now)
	}
	r := sh.tasks[m.id]
	again, same := m.id == t.ID || m.past.Has(t.ID), r != nil && r.task.Fingerprint == t.Fingerprint
	switch status := life.KeyConflict(t.Key, r.phase(), again, same); status {
	case store.Duplicate, store.Taken:
		return sh.known(m, status, now)
	case store.Passed:
		result := sh.addFree(t, m, m.until, now)
		if result.Status == store.Added {
			result.Status = store.Passed
		}
		return result
	}
	sh.replace(r, t, now)
	m.past, m.due = m.past.Add(t.ID), t.Due
	if m.until == 0 {
		sh.looks.remove(store.Entry{Due: m.look, ID: t.Mark()})
		m.look = store.KeyLook(now.Millis(), t.Due)
		sh.looks.insert(store.Entry{Due: m.look, ID: t.Mark()})
	}
	return store.AddResult{Status: store.Replaced, ID: m.id, Due: t.Due, State: r.state(now)}
}

// addOrdered adds a task without an idempotency key where others of its ordering key are.
func (sh *shard) addOrdered(t *store.Task, now clock) store.AddResult {
	old := sh.tasks[t.ID]
	if !old.phase().Live() && sh.closedTo(t.Traits) {
		return store.AddResult{Status: store.Closed, ID: t.ID}
	}
	result := sh.add(t, now)
	result.ID, result.Token = t.ID, store.Token{}
	sh.woke = sh.woke || result.Status == store.Added
	return result
}

// taken reports whether a key is not free.
func (sh *shard) taken(m *mark, now clock) bool {
	return life.KeyTaken(sh.tasks[m.id].phase(), m.until, now.Millis())
}

// known tells of the task that has the key.
func (sh *shard) known(m *mark, status store.Status, now clock) store.AddResult {
	result := store.AddResult{Status: status, ID: m.id, Due: m.due}
	if r := sh.tasks[m.id]; r != nil {
		result.State = r.state(now)
		if r.kind == store.KindPending || r.kind == store.KindRunning {
			result.Due = r.task.Due
		}
	}
	return result
}

// addFree adds a task under a key that is free, or passes to it until the given
// moment. old is what stands under the key.
func (sh *shard) addFree(t *store.Task, old *mark, until store.Millis, now clock) store.AddResult {
	if sh.closedTo(t.Traits) {
		return store.AddResult{Status: store.Closed, ID: t.ID}
	}
	result := sh.add(t, now)
	if result.ID = t.ID; result.Status != store.Added {
		result.Token = store.Token{}
		return result
	}
	sh.woke = true
	m := &mark{id: t.ID, due: t.Due, until: until}
	if until == 0 && t.Key.Window > 0 {
		m.until = now.In(t.Key.Window)
	}
	if m.look = m.until; m.look == 0 {
		m.look = store.KeyLook(now.Millis(), t.Due)
	}
	if old != nil {
		m.past = old.past.Add(old.id)
		sh.looks.remove(store.Entry{Due: old.look, ID: t.Mark()})
	}
	sh.marks[t.Mark()] = m
	sh.looks.insert(store.Entry{Due: m.look, ID: t.Mark()})
	return result
}

// replace gives the pending record r what t asks for.
func (sh *shard) replace(r *record, t *store.Task, now clock) {
	id, edits := r.task.ID, r.task.Edits
	sh.leave(r, store.Ended{Kind: store.ChangeDeleted}, now)
	sh.take(r)
	sh.index = sh.index.Add(t.Indexed, false)
	*r = record{task: copyTask(t), kind: store.KindPending}
	r.task.ID, r.task.Attempt, r.task.LastError, r.task.Edits = id, 0, "", edits+1
	sh.put(r)
	sh.tell(r, store.Change{Kind: store.ChangeUpdated}, now)
	sh.woke = true
}

// TrimKeys implements store.Retention.
func (m retention) TrimKeys(ctx context.Context, s store.Shard, limit int) (int, error) {
	if err := m.enter(ctx); err != nil {
		return 0, err
	}
	defer m.mu.Unlock()
	return m.shard(s).trimKeys(limit, m.now()), nil
}

// trimKeys looks at keys whose time has come, and forgets those that are free.
func (sh *shard) trimKeys(limit int, now clock) (looked int) {
	if limit <= 0 {
		return 0
	}
	page, _ := sh.looks.page(store.Entry{}, limit)
	for _, e := range page {
		if e.Due > now.Millis() {
			return looked
		}
		looked++
		sh.looks.remove(e)
		m := sh.marks[e.ID]
		if !sh.taken(m, now) {
			delete(sh.marks, e.ID)
			continue
		}
		m.look = store.KeyLook(now.Millis(), m.due)
		sh.looks.insert(store.Entry{Due: m.look, ID: e.ID})
	}
	return looked
}

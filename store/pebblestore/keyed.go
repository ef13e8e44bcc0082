package pebblestore

import (
	"context"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/life"
	"github.com/ddq-io/ddq/store/record"
)

// AddKeyed adds tasks whose keys are free.
func (s *Store) AddKeyed(ctx context.Context, name store.Shard, tasks []*store.Task) (store.Stamp, []store.AddResult, error) {
	results := make([]store.AddResult, len(tasks))
	stamp, err := s.change(ctx, name, access{grows: true, closed: true}, func(t *turn) (err error) {
		for i, task := range tasks {
			if err := t.repeat(); err != nil { // each finds what those before it did
				return err
			}
			if results[i], err = t.addKeyed(task); err != nil {
				return err
			}
		}
		if err := t.repeat(); err != nil {
			return err
		}
		_, err = t.trimKeys(2 * len(tasks))
		return err
	})
	if err != nil {
		return store.Stamp{}, nil, err
	}
	return stamp, results, nil
}

// mark returns what stands under a key, nil when nothing does.
func (t *turn) mark(key string) (m *keyMark, err error) {
	err = t.dir.Read(appendMarkKey(nil, t.sh.number, key), func(b []byte) (err error) {
		m, err = decodeMark(b)
		return err
	})
	return m, err
}

// holder is the task that has a key.
type holder struct {
	entry
	found
	state store.State
	phase life.Phase
}

func (t *turn) holder(m *keyMark) (h holder, err error) {
	if h.entry, h.found, err = t.find(m.id); err != nil || h.found == absent {
		return h, err
	}
	h.state, h.phase = h.stateAt(t.ms), h.entry.phase(h.found)
	if t.sh.holds.get(m.id) != nil {
		h.state, h.phase = store.StateRunning, life.Running
	}
	return h, nil
}

// taken reports whether a key is not free.
func (t *turn) taken(m *keyMark, h *holder) bool {
	return life.KeyTaken(h.phase, m.until, t.ms)
}

func (t *turn) addKeyed(task *store.Task) (store.AddResult, error) {
	if task.Key == nil {
		return t.addOrdered(task)
	}
	m, err := t.mark(task.Mark())
	if err != nil {
		return store.AddResult{}, err
	}
	if m == nil {
		return t.addFree(task, nil, 0)
	}
	h, err := t.holder(m)
	switch {
	case err != nil:
		return store.AddResult{}, err
	case !t.taken(m, &h):
		return t.addFree(task, m, 0)
	}
	known := store.AddResult{Status: store.Duplicate, ID: m.id, Due: m.due, State: h.state}
	if h.state.Pending() || h.state == store.StateRunning {
		known.Due = h.due
	}
	same := h.found == readable && !h.unreadable && h.fingerprint == task.Fingerprint
	again := m.id == task.ID || m.last == task.ID
	switch status := life.KeyConflict(task.Key, h.phase, again, same); status {
	case store.Duplicate, store.Taken:
		known.Status = status
		return known, nil
	case store.Passed:
		result, err := t.addFree(task, m, m.until)
		if result.Status == store.Added {
			result.Status = store.Passed
		}
		return result, err
	}
	return t.replaceKeyed(task, m, &h)
}

// addFree adds a task under a key that is free, or passes to it until the given
// moment. old is what stands under the key.
func (t *turn) addFree(task *store.Task, old *keyMark, until store.Millis) (store.AddResult, error) {
	if closed, err := t.closedTo(task.Traits.Ordering()); closed || err != nil {
		return store.AddResult{Status: store.Closed, ID: task.ID}, err
	}
	result, err := t.add(task, nil)
	if result.ID = task.ID; err != nil || result.Status != store.Added {
		result.Token, result.Deadline, result.Attempt = store.Token{}, 0, 0
		return result, err
	}
	m := &keyMark{id: task.ID, due: task.Due, until: until}
	if until == 0 && task.Key.Window > 0 {
		m.until = t.in(task.Key.Window)
	}
	if m.look = m.until; m.look == 0 {
		m.look = store.KeyLook(t.ms, task.Due)
	}
	if old != nil {
		if err := t.remove(appendLookKey(nil, t.sh.number, old.look, task.Mark()), true); err != nil {
			return result, err
		}
	}
	return result, t.writeMark(task.Mark(), m)
}

func (t *turn) writeMark(key string, m *keyMark) error {
	t.value = m.append(t.value[:0])
	if err := t.set(appendMarkKey(nil, t.sh.number, key), t.value); err != nil {
		return err
	}
	return t.set(appendLookKey(nil, t.sh.number, m.look, key), nil)
}

// replaceKeyed gives the pending task that has a key what another one asks for.
func (t *turn) replaceKeyed(task *store.Task, m *keyMark, h *holder) (store.AddResult, error) {
	if err := t.removePending(h.due, m.id, h.traits()); err != nil {
		return store.AddResult{}, err
	}
	if h.history {
		if err := t.forget(m.id); err != nil {
			return store.AddResult{}, err
		}
	}
	if err := t.removeEntries(m.id, h.attributes()); err != nil {
		return store.AddResult{}, err
	}
	if err := t.stepOut(h.traits(), h.standsAt(), m.id); err != nil {
		return store.AddResult{}, err
	}
	next := *task
	next.ID = m.id
	if err := t.writeTask(&next, h.edits+1, true); err != nil {
		return store.AddResult{}, err
	}
	t.tellNew(store.Change{Kind: store.ChangeUpdated, Version: h.edits + 2}, &next)
	traits := record.AppendTraits(nil, next.Traits)
	if err := t.addPending(next.Due, m.id, traits); err != nil {
		return store.AddResult{}, err
	}
	if err := t.lineUp(traits, next.Due, m.id); err != nil {
		return store.AddResult{}, err
	}
	m.last, m.due = task.ID, task.Due
	if m.until == 0 {
		if err := t.remove(appendLookKey(nil, t.sh.number, m.look, task.Mark()), true); err != nil {
			return store.AddResult{}, err
		}
		m.look = store.KeyLook(t.ms, task.Due)
	}
	return store.AddResult{Status: store.Replaced, ID: m.id, Due: next.Due, State: store.PendingState(next.Due, t.ms, 0)}, t.writeMark(task.Mark(), m)
}

// TrimKeys forgets keys that are free again.
func (s *Store) TrimKeys(ctx context.Context, name store.Shard, limit int) (int, error) {
	var looked int
	_, err := s.change(ctx, name, access{}, func(t *turn) (err error) {
		looked, err = t.trimKeys(limit)
		return err
	})
	if err != nil {
		return 0, err
	}
	return looked, nil
}

// trimKeys looks at keys whose time has come, and forgets those that are free.
func (t *turn) trimKeys(limit int) (looked int, err error) {
	if limit <= 0 || t.sh.number == 0 {
		return 0, nil
	}
	var keys []string
	var looks []store.Millis
	start := append(appendPrefix(nil, t.sh.number, tableKeys), partLooks)
	err = t.dir.Scan(start, appendLookKey(nil, t.sh.number, t.ms+1, ""), func(key, _ []byte) (bool, error) {
		if rest := key[len(start):]; len(rest) >= 8 {
			keys, looks = append(keys, string(rest[8:])), append(looks, millisAt(rest))
		}
		return len(keys) < limit, nil
	})
	for i, key := range keys {
		if err == nil {
			err = t.lookAt(key, looks[i])
		}
	}
	return len(keys), err
}

func (t *turn) lookAt(key string, look store.Millis) error {
	if err := t.remove(appendLookKey(nil, t.sh.number, look, key), true); err != nil {
		return err
	}
	m, err := t.mark(key)
	if err != nil || m == nil || m.look != look {
		return err
	}
	h, err := t.holder(m)
	if err != nil {
		return err
	}
	if !t.taken(m, &h) {
		return t.remove(appendMarkKey(nil, t.sh.number, key), true)
	}
	m.look = store.KeyLook(t.ms, m.due)
	return t.writeMark(key, m)
}

// hasKeys reports whether there is a mark.
func (s *Store) hasKeys(sh *shard) (has bool, err error) {
	err = s.dir.Scan(appendPrefix(nil, sh.number, tableKeys), appendPrefix(nil, sh.number, tableKeys+1), func(_, _ []byte) (bool, error) {
		has = true
		return false, nil
	})
	return has, err
}

// addOrdered adds a task without an idempotency key where others of its ordering key are.
func (t *turn) addOrdered(task *store.Task) (store.AddResult, error) {
	result := store.AddResult{Status: store.Closed, ID: task.ID}
	e, f, err := t.find(task.ID)
	if err != nil {
		return result, err
	}
	if live := f == broken || f == readable && e.state == pending; !live {
		if closed, err := t.closedTo(task.Traits.Ordering()); closed || err != nil {
			return result, err
		}
	}
	result, err = t.add(task, nil)
	result.ID, result.Token, result.Deadline, result.Attempt = task.ID, store.Token{}, 0, 0
	return result, err
}

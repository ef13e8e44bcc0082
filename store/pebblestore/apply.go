package pebblestore

import (
	"encoding/binary"
	"errors"
	"math"
)

// apply makes what was collected visible, and leaves it to end to wait for its sync.
func (t *turn) apply() error {
	if t.batch == nil && len(t.begun)+len(t.extended)+len(t.ended) == 0 {
		return nil
	}
	if t.dir.Brimming() {
		return t.dir.FullError()
	}
	if err := t.forgetSeen(); err != nil {
		return err
	}
	sh, m := t.sh, t.sh.meta
	m.batches++
	m.pending += t.pending
	m.done += t.done
	m.dead += t.dead
	m.newest = t.newest
	m.sealed = (m.sealed || t.sealed) && !t.dropped && !t.opened
	if t.becamePending && !t.seqRaised {
		m.seq++
		t.seqRaised = true
	}
	if err := t.writeIndexState(&m); err != nil {
		return err
	}
	if err := t.applyLog(&m.log); err != nil {
		return err
	}
	if err := t.writeMeta(m); err != nil {
		return err
	}
	if err := t.writeHolds(m.batches); err != nil {
		return err
	}
	if err := t.writeIndexes(); err != nil {
		return err
	}
	sh.unsynced.Add(1)
	if err := t.dir.Apply(t.batch); err != nil {
		return err
	}
	t.unsynced = append(t.unsynced, t.batch)
	t.batch = nil
	sh.meta, sh.known = m, true
	t.remember()
	return nil
}

// writeMeta adds the shard's numbers to the batch, and its name when that was not
// stored yet.
func (t *turn) writeMeta(m meta) error {
	sh := t.sh
	t.key = appendPrefix(t.key[:0], sh.number, tableMeta)
	t.value = m.append(t.value[:0])
	if err := t.set(t.key, t.value); err != nil || sh.known {
		return err
	}
	t.value = binary.BigEndian.AppendUint32(t.value[:0], sh.number)
	return t.set(shardKey(sh.name), t.value)
}

// writeHolds adds the group of what began or was extended to the batch, and takes
// out those that nothing is left of. It is called once the batch will be applied,
// or the store has failed.
func (t *turn) writeHolds(number uint64) error {
	if live := len(t.begun) + len(t.extended); live > 0 {
		g := &group{number: number, live: live}
		t.value = appendGroup(t.value[:0], t.begun, t.extended)
		t.key = g.appendKey(t.key[:0], t.sh.number)
		if err := t.set(t.key, t.value); err != nil {
			return err
		}
		for _, h := range t.begun {
			h.group = g
		}
		for _, h := range t.extended {
			if err := t.leave(h.group); err != nil {
				return err
			}
			h.group = g
		}
	}
	for _, h := range t.ended {
		if err := t.leave(h.group); err != nil {
			return err
		}
	}
	return nil
}

// writeIndexes moves what is added to indexes to the end of the batch.
func (t *turn) writeIndexes() error {
	if t.indexes == nil {
		return nil
	}
	err := t.batch.Apply(t.indexes, nil)
	t.indexes.Close() //nolint:errcheck // it always returns nil
	t.indexes = nil
	return err
}

// writeIndexState adds what the index is complete for to the batch, if that changed.
func (t *turn) writeIndexState(m *meta) error {
	if t.indexed == nil {
		return nil
	}
	m.indexed = true
	t.key = appendPrefix(t.key[:0], t.sh.number, tableIndexed)
	return t.set(t.key, []byte(t.indexed.Ready))
}

// leave counts a hold out of its group.
func (t *turn) leave(g *group) error {
	if g.live--; g.live > 0 {
		return nil
	}
	t.key = g.appendKey(t.key[:0], t.sh.number)
	return t.remove(t.key, false)
}

// remember makes the shard's memory agree with what was applied.
func (t *turn) remember() {
	if t.owner != nil {
		t.sh.owner = *t.owner
	}
	if t.life != nil {
		t.sh.life = *t.life
	}
	if t.indexed != nil {
		t.sh.index = *t.indexed
	}
	if t.dropped {
		t.sh.holds.drop()
		t.sh.firstDue, t.sh.firstTrim = math.MaxInt64, math.MaxInt64
	}
	for _, h := range t.ended {
		t.sh.holds.remove(h)
	}
	for _, h := range t.begun {
		t.sh.holds.add(h)
	}
	for _, h := range t.extended {
		t.sh.holds.replace(h)
	}
	clear(t.begun)
	clear(t.extended)
	clear(t.ended)
	t.begun, t.extended, t.ended = t.begun[:0], t.extended[:0], t.ended[:0]
	t.pending, t.done, t.dead, t.becamePending = 0, 0, 0, false
	t.owner, t.life, t.dropped, t.sealed, t.opened, t.indexed = nil, nil, false, false, false, nil
	t.log, t.trimmed = nil, 0
}

// forgetSeen has the next look at the shard see it as it is then.
func (t *turn) forgetSeen() error {
	err := t.tasks.close()
	if t.line != nil {
		if lineErr := t.line.Close(); lineErr != nil {
			err = errors.Join(err, t.dir.ReadError(lineErr))
		}
		t.line = nil
	}
	return err
}

// stamp is the number of the batch that the turn collects.
func (t *turn) stamp() uint64 { return t.sh.meta.batches + 1 }

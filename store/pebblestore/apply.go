package pebblestore

import "encoding/binary"

// apply makes what was collected visible, and leaves it to end to wait for its sync.
func (t *transaction) apply() error {
	if t.puts == nil && !t.next.holds() {
		return nil
	}
	if t.dir.Brimming() {
		return t.dir.FullError()
	}
	if err := t.forgetSeen(); err != nil {
		return err
	}
	marked, err := t.sh.layout.mark(&t.batch, t.next.layout())
	applied := false
	defer func() { marked(applied) }()
	if err != nil {
		return err
	}
	m, err := t.finish()
	if err != nil {
		return err
	}
	sh := t.sh
	sh.unsynced.Add(1)
	if err := t.dir.Apply(t.puts); err != nil {
		return err
	}
	applied = true
	t.unsynced = append(t.unsynced, t.puts)
	t.puts = nil
	sh.meta, sh.known, sh.dropped = m, true, t.next.dropped
	t.next.apply(sh)
	t.next.reset()
	return nil
}

// finish adds to the batch what every one has, and returns the shard's numbers behind it.
func (t *transaction) finish() (meta, error) {
	m := t.sh.meta
	t.next.count(&m)
	m.newest = t.ids.newest
	if t.next.becamePending && !t.seqRaised {
		m.seq++
		t.seqRaised = true
	}
	if err := t.writeIndexState(); err != nil {
		return m, err
	}
	if err := t.log.write(&m.log); err != nil {
		return m, err
	}
	if err := t.writeMeta(m); err != nil {
		return m, err
	}
	if err := t.writeHolds(m.batches); err != nil {
		return m, err
	}
	return m, t.join()
}

// writeMeta adds the shard's numbers to the batch, and its name when that was not
// stored yet.
func (t *transaction) writeMeta(m meta) error {
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
func (t *transaction) writeHolds(number uint64) error {
	x := &t.next
	if live := len(x.begun) + len(x.extended); live > 0 {
		g := &group{number: number, live: live}
		t.value = appendGroup(t.value[:0], x.begun, x.extended)
		t.key = g.appendKey(t.key[:0], t.sh.number)
		if err := t.set(t.key, t.value); err != nil {
			return err
		}
		for _, h := range x.begun {
			h.group = g
		}
		for _, h := range x.extended {
			if err := t.leaveGroup(h.group); err != nil {
				return err
			}
			h.group = g
		}
	}
	for _, h := range x.ended {
		if err := t.leaveGroup(h.group); err != nil {
			return err
		}
	}
	return nil
}

// leaveGroup counts a hold out of its group.
func (t *transaction) leaveGroup(g *group) error {
	if g.live--; g.live > 0 {
		return nil
	}
	t.key = g.appendKey(t.key[:0], t.sh.number)
	return t.remove(t.key, false)
}

// writeIndexState adds what the index is complete for to the batch, if that changed.
func (t *transaction) writeIndexState() error {
	if t.next.indexed == nil {
		return nil
	}
	t.key = appendPrefix(t.key[:0], t.sh.number, tableIndexed)
	return t.set(t.key, []byte(t.next.indexed.Ready))
}

package memstore

import (
	"context"
	"slices"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/life"
)

// Checkpoint implements store.Writer.
func (m writer) Checkpoint(ctx context.Context, s store.Shard, checkpoints []store.Checkpoint) (store.Stamp, []store.Status, error) {
	return batch(ctx, m.core, s, access{}, checkpoints, func(sh *shard, now clock, c store.Checkpoint) store.Status {
		r := sh.tasks[c.ID]
		t := r.life()
		if status := life.Checkpoint(&t, c.Token); status != store.OK {
			return status
		}
		return r.write(c.JournalEntry, now.Millis())
	})
}

// Journal implements store.Reader.
func (m reader) Journal(ctx context.Context, s store.Shard, id string) ([]store.JournalEntry, error) {
	if err := m.enter(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	r := m.shard(s).tasks[id]
	if r == nil {
		return nil, nil
	}
	return copyJournal(r.journal), nil
}

// write adds an entry to the journal of a running task.
func (r *record) write(e store.JournalEntry, now store.Millis) store.Status {
	known, bytes := false, 0
	for i := range r.journal {
		bytes += r.journal[i].Size()
		known = known || r.journal[i].Name == e.Name
	}
	status := life.Journal(&e, len(r.journal), bytes, known)
	if status == store.OK {
		r.journal = append(r.journal, store.JournalEntry{Name: e.Name, Value: slices.Clone(e.Value), Kept: now, Encrypted: e.Encrypted})
	}
	return status
}

// copyJournal returns a copy that shares no memory with the journal; nil of an empty one.
func copyJournal(journal []store.JournalEntry) []store.JournalEntry {
	if len(journal) == 0 {
		return nil
	}
	copied := make([]store.JournalEntry, len(journal))
	for i, e := range journal {
		e.Value = slices.Clone(e.Value)
		copied[i] = e
	}
	return copied
}

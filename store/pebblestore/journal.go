package pebblestore

import (
	"bytes"
	"context"
	"encoding/binary"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/life"
	"github.com/ddq-io/ddq/store/record"
)

// journals are what names of tasks returned, each under a key of its own, which has the length
// of the id, the id, and the name; when it was kept is in front of the value. The hold of a task that
// is held says whether there are some, and the entry of any other.
type journals struct{ *batch }

// appendJournal appends what the keys of a task begin with.
func appendJournal(b []byte, number uint32, id string) []byte {
	b = binary.AppendUvarint(appendPrefix(b, number, tableJournal), uint64(len(id)))
	return append(b, id...)
}

// walk calls f for each entry of a task. The value is valid during the call only.
func (j *journals) walk(id string, f func(e *store.JournalEntry) error) error {
	prefix := appendJournal(nil, j.sh.number, id)
	behind := append(bytes.Clone(prefix), bytes.Repeat([]byte{0xff}, store.MaxJournalName+1)...)
	return j.dir.Scan(prefix, behind, func(key, value []byte) (bool, error) {
		e := store.JournalEntry{Name: string(key[len(prefix):])}
		record.DecodeKept(value, &e)
		return true, f(&e)
	})
}

// Journal returns the journal of a task.
func (s *taskReader) Journal(ctx context.Context, name store.Shard, id string) (entries []store.JournalEntry, err error) {
	_, err = s.change(ctx, name, access{}, func(t *transaction) (err error) {
		entries, err = t.journals.read(id)
		return err
	})
	return entries, err
}

// of returns the journal of the task of a hold.
func (j *journals) of(h *hold) ([]store.JournalEntry, error) {
	if !h.taskJournal {
		return nil, nil
	}
	return j.read(h.id)
}

// read returns the journal of a task.
func (j *journals) read(id string) (entries []store.JournalEntry, err error) {
	err = j.walk(id, func(e *store.JournalEntry) error {
		e.Value = bytes.Clone(e.Value)
		entries = append(entries, *e)
		return nil
	})
	return entries, err
}

// write adds an entry to the journal of a task, if it has room for it.
func (j *journals) write(id string, e *store.JournalEntry, now store.Millis) (store.Status, error) {
	names, size, known := 0, 0, false
	err := j.walk(id, func(other *store.JournalEntry) error {
		names, size = names+1, size+other.Size()
		known = known || other.Name == e.Name
		return nil
	})
	if err != nil {
		return 0, err
	}
	if status := life.Journal(e, names, size, known); status != store.OK {
		return status, nil
	}
	j.next.newer = true
	return store.OK, j.set(append(appendJournal(nil, j.sh.number, id), e.Name...), record.AppendKept(nil, now, e))
}

// forget deletes the journal of a task.
func (j *journals) forget(id string) error {
	return j.walk(id, func(e *store.JournalEntry) error {
		j.key = append(appendJournal(j.key[:0], j.sh.number, id), e.Name...)
		return j.remove(j.key, true)
	})
}

package pebblestore

import (
	"bytes"
	"encoding/binary"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/life"
)

// journals are what names of tasks returned, each under a key of its own, which has the length
// of the id, the id, and the name. The hold of a task that is held says whether there are
// some, and the entry of any other.
type journals struct{ *batch }

// appendJournal appends what the keys of a task begin with.
func appendJournal(b []byte, number uint32, id string) []byte {
	b = binary.AppendUvarint(appendPrefix(b, number, tableJournal), uint64(len(id)))
	return append(b, id...)
}

// walk calls f for each entry of a task. Name and value are valid during the call only.
func (j *journals) walk(id string, f func(name, value []byte) error) error {
	prefix := appendJournal(nil, j.sh.number, id)
	behind := append(bytes.Clone(prefix), bytes.Repeat([]byte{0xff}, store.MaxJournalName+1)...)
	return j.dir.Scan(prefix, behind, func(key, value []byte) (bool, error) {
		return true, f(key[len(prefix):], value)
	})
}

// of returns the journal of the task of a hold.
func (j *journals) of(h *hold) (entries []store.JournalEntry, err error) {
	if !h.taskJournal {
		return nil, nil
	}
	err = j.walk(h.id, func(name, value []byte) error {
		entries = append(entries, store.JournalEntry{Name: string(name), Value: bytes.Clone(value)})
		return nil
	})
	return entries, err
}

// write adds an entry to the journal of a task, if it has room for it.
func (j *journals) write(id string, e *store.JournalEntry) (store.Status, error) {
	names, size, known := 0, 0, false
	err := j.walk(id, func(name, value []byte) error {
		names, size = names+1, size+len(name)+len(value)
		known = known || string(name) == e.Name
		return nil
	})
	if err != nil {
		return 0, err
	}
	if status := life.Journal(e, names, size, known); status != store.OK {
		return status, nil
	}
	j.next.newer = true
	return store.OK, j.set(append(appendJournal(nil, j.sh.number, id), e.Name...), e.Value)
}

// forget deletes the journal of a task.
func (j *journals) forget(id string) error {
	return j.walk(id, func(name, _ []byte) error {
		j.key = append(appendJournal(j.key[:0], j.sh.number, id), name...)
		return j.remove(j.key, true)
	})
}

package pebblestore

import (
	"bytes"
	"time"
)

const (
	maxRecents = 256 << 10   // bytes of those of a shard, about
	maxRecent  = 4 << 10     // bytes of one that is kept
	recentDue  = time.Second // one that is due later is not kept
)

// recents are entries of tasks of a shard as they are stored, by key: of those that tell a cell, were
// added of late and due, and have a hash for an id. Such a task is held soon, and a search for it would go
// through what is not written to tables yet from the top. One that is not here may be there all the same.
//
// Invariant: what is here is what a read would find. Every write of its key takes it out.
type recents struct {
	byKey map[string][]byte
	size  int
}

// recent is what a batch writes under a key of recents: an entry, or something that is not kept.
type recent struct {
	key   string
	entry []byte // nil: not kept
}

func (r *recents) has(key []byte) bool {
	_, there := r.byKey[string(key)]
	return there
}

// apply makes r agree with a batch that was written.
func (r *recents) apply(changes []recent) {
	for _, c := range changes {
		r.drop(c.key)
		if c.entry == nil {
			continue
		}
		n := len(c.key) + len(c.entry)
		if r.size+n > maxRecents || r.byKey == nil {
			r.byKey, r.size = make(map[string][]byte), 0
		}
		r.byKey[c.key] = c.entry
		r.size += n
	}
}

func (r *recents) drop(key string) {
	if entry, there := r.byKey[key]; there {
		delete(r.byKey, key)
		r.size -= len(key) + len(entry)
	}
}

// written notes that a key is written, with something that is not kept.
func (b *batch) written(key []byte) {
	task := len(key) > prefixLen && table(key[prefixLen-1]) == tableTasks
	if task && (len(b.next.recents) > 0 || b.sh.recents.has(key)) {
		b.next.recents = append(b.next.recents, recent{key: string(key)})
	}
}

// keep notes the entry of a new task that was written under its key.
func (b *batch) keep(key, value []byte, e *entry) {
	if e.tells != "" && e.due <= b.ms.Add(recentDue) && len(value) <= maxRecent && hashedID(key) {
		b.next.recents = append(b.next.recents, recent{key: string(key), entry: bytes.Clone(value)})
	}
}

// findRecent is find for tasks that may have been added just now.
func (b *batch) findRecent(id string) (entry, found, error) {
	b.key = appendIDKey(b.key[:0], b.sh.number, tableTasks, id)
	if value, there := b.sh.recents.byKey[string(b.key)]; there {
		if e, err := decodeEntry(value); err == nil {
			return e, readable, nil
		}
	}
	return b.find(id)
}

// hashedID reports whether the id of a task's key does not follow the time.
func hashedID(key []byte) bool {
	id := key[prefixLen:]
	return id[0] == idUUID && id[7]>>4 == 8
}

package memstore

import (
	"maps"
	"slices"

	"github.com/ddq-io/ddq/store"
)

// Clone returns another store with everything that this one has now: what a replica
// that lags behind would have, or a backup.
func (m *Store) Clone() *Store {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := New()
	c.ahead, c.closed, c.server = m.ahead, m.closed, m.server
	maps.Copy(c.sessions, m.sessions)
	maps.Copy(c.topics, m.topics)
	c.table = m.table.Clone()
	for id, sh := range m.shards {
		c.shards[id] = sh.clone()
	}
	return c
}

func (sh *shard) clone() *shard {
	c := newShard()
	c.owner, c.fence, c.seq, c.sealed, c.life = sh.owner, sh.fence, sh.seq, sh.sealed, sh.life
	c.index = sh.index
	c.watching, c.log, c.logged = sh.watching, slices.Clone(sh.log), sh.logged
	c.cells = sh.cells.clone()
	c.in, c.out = box{sh.in.last, slices.Clone(sh.in.parcels)}, box{sh.out.last, slices.Clone(sh.out.parcels)}
	c.queues = sh.queues.clone()
	for key, m := range sh.marks {
		copied := *m
		c.marks[key] = &copied
		c.looks.insert(store.Entry{Due: m.look, ID: key})
	}
	for _, r := range sh.tasks {
		copied := *r
		copied.task, copied.journal = copyTask(&r.task), copyJournal(r.journal)
		if r.past != nil {
			copied.past = &store.History{Attempts: slices.Clone(r.past.Attempts), Result: r.past.Result}
		}
		c.put(&copied)
	}
	return c
}

// Restore makes this store what another one is now, as a failover to it would: it is
// another server then.
func (m *Store) Restore(to *Store) {
	c := to.Clone()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.shards, m.sessions, m.topics, m.table = c.shards, c.sessions, c.topics, c.table
	m.server++
}

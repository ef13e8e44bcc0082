package pebblestore

import (
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/record"
)

// changelog tells those who watch a shard what happens to its tasks.
type changelog struct {
	*batch
	changes []byte // as record keeps them
	n       int
}

// watched reports whether what happens is to be told.
func (l *changelog) watched() bool { return l.sh.meta.log.watching.Retention > 0 }

// tell appends to the shard's log what is happening to the task of an entry, when it
// keeps one.
func (l *changelog) tell(c store.Change, e *entry) {
	if l.watched() {
		c.Attributes = e.attributes()
		l.append(&c)
	}
}

// tellHeld is tell of what happens to a task that is held.
func (l *changelog) tellHeld(h *hold, c store.Change, e *entry) {
	if l.watched() {
		c.ID = h.id
		c.Worker, _ = h.who()
		l.tell(c, e)
	}
}

// tellNew is tell of a task as it came, which may be held at once.
func (l *changelog) tellNew(c store.Change, task *store.Task) {
	if l.watched() {
		c.ID, c.Due, c.Attributes = task.ID, task.Due, task.Indexed.Of(task.Attributes)
		l.append(&c)
	}
}

func (l *changelog) append(c *store.Change) {
	l.changes = record.AppendChange(l.changes, c)
	l.n++
}

// writeEntry adds what was told to the batch, and takes out what is too much of it: not
// each time, as ranges that were deleted cost something as well.
func (l *changelog) writeEntry(m *logMeta) error {
	if l.n == 0 {
		return nil
	}
	m.last += int64(l.n)
	l.value = append(record.AppendLogEntry(l.value[:0], l.now, l.n), l.changes...)
	if err := l.set(appendLogKey(nil, l.sh.number, m.last), l.value); err != nil {
		return err
	}
	l.reset()
	if kept := int64(m.watching.Max); m.last-m.forgotten > kept+kept/8 {
		return l.forget(m, m.last-kept)
	}
	return nil
}

// forget takes the entries out that end at or before a position.
func (l *changelog) forget(m *logMeta, upTo int64) error {
	last := m.forgotten
	err := l.dir.Scan(appendLogKey(nil, l.sh.number, upTo), appendPrefix(nil, l.sh.number, tableLog+1), func(key, value []byte) (bool, error) {
		position, n, err := logEntry(key, value)
		last = position - int64(n) // of the entry before the first that stays
		if position == upTo {
			last = position
		}
		return false, err
	})
	if err != nil || last <= m.forgotten {
		return err
	}
	err = l.writer().DeleteRange(appendPrefix(nil, l.sh.number, tableLog), appendLogKey(nil, l.sh.number, last+1), nil)
	m.forgotten = last
	return err
}

// write adds to the batch what becomes of the log, besides what operations wrote of it
// already.
func (l *changelog) write(m *logMeta) error {
	if l.next.watching != nil {
		m.watch(*l.next.watching)
	}
	if l.next.dropped {
		m.watching = store.Watching{}
		m.forgotten = m.last
	}
	m.forgotten = max(m.forgotten, l.next.trimmed)
	return l.writeEntry(m)
}

// reset forgets what was told, and keeps the memory that it took.
func (l *changelog) reset() { l.changes, l.n = l.changes[:0], 0 }

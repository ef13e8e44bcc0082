package pebblestore

import (
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/record"
)

// told are the changes that a turn collects.
type told struct {
	changes []byte // as record keeps them
	n       int
}

// watched reports whether what happens is to be told.
func (t *turn) watched() bool { return t.sh.meta.log.watching.Retention > 0 }

// tell appends to the shard's log what is happening to the task of an entry, when it
// keeps one.
func (t *turn) tell(c store.Change, e *entry) {
	if t.watched() {
		c.Attributes = e.attributes()
		t.append(&c)
	}
}

// tellHeld is tell of what happens to a task that is held.
func (t *turn) tellHeld(h *hold, c store.Change, e *entry) {
	if t.watched() {
		c.ID = h.id
		c.Worker, _ = h.who()
		t.tell(c, e)
	}
}

// tellNew is tell of a task as it came, which may be held at once.
func (t *turn) tellNew(c store.Change, task *store.Task) {
	if t.watched() {
		c.ID, c.Due, c.Attributes = task.ID, task.Due, task.Indexed.Of(task.Attributes)
		t.append(&c)
	}
}

// tellUnread is tellHeld of a task whose entry was not read. It is read for that if it
// has attributes.
func (t *turn) tellUnread(h *hold, c store.Change) error {
	e := entry{unreadable: true}
	if t.watched() && h.taskIndexed {
		stored, f, err := t.find(h.id)
		if err != nil {
			return err
		}
		if f == readable {
			e = stored
		}
	}
	t.tellHeld(h, c, &e)
	return nil
}

func (t *turn) append(c *store.Change) {
	t.told.changes = record.AppendChange(t.told.changes, c)
	t.told.n++
}

// writeLog adds what was told to the batch, and takes out what is too much of it: not
// each time, as ranges that were deleted cost something as well.
func (t *turn) writeLog(m *logMeta) error {
	if t.told.n == 0 {
		return nil
	}
	m.last += int64(t.told.n)
	t.value = append(record.AppendLogEntry(t.value[:0], t.now, t.told.n), t.told.changes...)
	if err := t.set(appendLogKey(nil, t.sh.number, m.last), t.value); err != nil {
		return err
	}
	t.told = told{changes: t.told.changes[:0]}
	if kept := int64(m.watching.Max); m.last-m.forgotten > kept+kept/8 {
		return t.forgetLog(m, m.last-kept)
	}
	return nil
}

// forgetLog takes the entries out that end at or before a position.
func (t *turn) forgetLog(m *logMeta, upTo int64) error {
	last := m.forgotten
	err := t.dir.Scan(appendLogKey(nil, t.sh.number, upTo), appendPrefix(nil, t.sh.number, tableLog+1), func(key, value []byte) (bool, error) {
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
	err = t.writer().DeleteRange(appendPrefix(nil, t.sh.number, tableLog), appendLogKey(nil, t.sh.number, last+1), nil)
	m.forgotten = last
	return err
}

// applyLog is what the turn does to the log, besides what it wrote already.
func (t *turn) applyLog(m *logMeta) error {
	if t.log != nil {
		m.watch(*t.log)
	}
	if t.dropped {
		m.watching = store.Watching{}
		m.forgotten = m.last
	}
	m.forgotten = max(m.forgotten, t.trimmed)
	return t.writeLog(m)
}

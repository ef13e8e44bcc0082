package pebblestore

import (
	"context"

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
	err := t.s.scan(appendLogKey(nil, t.sh.number, upTo), appendPrefix(nil, t.sh.number, tableLog+1), func(key, value []byte) (bool, error) {
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

// Watch has a shard keep a log, or ends it.
func (s *Store) Watch(ctx context.Context, name store.Shard, w store.Watching) error {
	_, err := s.change(ctx, name, access{owned: w.Retention > 0}, func(t *turn) error {
		if t.sh.number == 0 || t.sh.meta.log.watching == w {
			return nil
		}
		t.log = &w
		t.writer() // it is written with the numbers
		if w.Retention > 0 {
			return nil
		}
		return t.writer().DeleteRange(appendPrefix(nil, t.sh.number, tableLog), appendPrefix(nil, t.sh.number, tableLog+1), nil)
	})
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

// Changes reads logs.
func (s *Store) Changes(ctx context.Context, reads []store.LogRead) ([]store.LogPage, error) {
	pages := make([]store.LogPage, len(reads))
	for i, r := range reads {
		_, err := s.change(ctx, r.Shard, access{}, func(t *turn) (err error) {
			pages[i], err = t.changes(r)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return pages, nil
}

func (t *turn) changes(r store.LogRead) (store.LogPage, error) {
	m := t.sh.meta.log
	page := store.LogPage{Watched: m.watching.Retention > 0, Last: m.last}
	after := r.After
	if after == store.FromOldest {
		after = m.forgotten
	}
	if page.Next = after; after < m.forgotten || after > m.last {
		page.Gap, page.Next = true, m.last
		return page, nil
	}
	if after == m.last || r.Limit <= 0 {
		return page, nil
	}
	lower, upper := appendLogKey(nil, t.sh.number, after+1), appendPrefix(nil, t.sh.number, tableLog+1)
	err := t.s.scan(lower, upper, func(key, value []byte) (bool, error) {
		last, n, err := logEntry(key, value)
		if err != nil {
			return false, err
		}
		known := max(0, int(page.Next-(last-int64(n)))) // of the first entry, a part may be
		had := len(page.Changes)
		page.Changes, err = record.DecodeLogEntry(page.Changes, value, last, func(id []byte) string { return string(id) })
		if err != nil {
			return false, err
		}
		page.Changes = append(page.Changes[:had], page.Changes[had+known:]...)
		page.Next = last
		return len(page.Changes) < r.Limit, nil
	})
	if over := len(page.Changes) - r.Limit; over > 0 {
		page.Changes = page.Changes[:r.Limit]
		page.Next -= int64(over)
	}
	return page, err
}

// TrimLog forgets changes that are older than the retention.
func (s *Store) TrimLog(ctx context.Context, name store.Shard, limit int) (trimmed int, err error) {
	_, err = s.change(ctx, name, access{}, func(t *turn) error {
		m := t.sh.meta.log
		if trimmed = 0; m.last == m.forgotten || limit <= 0 {
			return nil
		}
		kept := t.now.Add(-m.watching.Retention)
		last := m.forgotten
		lower, upper := appendLogKey(nil, t.sh.number, m.forgotten+1), appendPrefix(nil, t.sh.number, tableLog+1)
		err := t.s.scan(lower, upper, func(key, value []byte) (bool, error) {
			position, n, err := logEntry(key, value)
			if err != nil || !record.LogEntryTime(value).Before(kept) {
				return false, err
			}
			trimmed, last = trimmed+n, position
			return trimmed < limit, nil
		})
		if err != nil || trimmed == 0 {
			return err
		}
		t.trimmed = last
		return t.writer().DeleteRange(appendPrefix(nil, t.sh.number, tableLog), appendLogKey(nil, t.sh.number, last+1), nil)
	})
	if err != nil {
		return 0, err
	}
	return trimmed, nil
}

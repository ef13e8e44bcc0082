package pebblestore

import (
	"context"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/record"
)

// Watch has a shard keep a log, or ends it.
func (s logs) Watch(ctx context.Context, name store.Shard, w store.Watching) error {
	_, err := s.change(ctx, name, access{owned: w.Retention > 0}, func(t *transaction) error {
		if t.sh.number == 0 || t.sh.meta.log.watching == w {
			return nil
		}
		t.next.watching = &w
		t.writer() // it is written with the numbers
		if w.Retention > 0 {
			return nil
		}
		return t.writer().DeleteRange(appendPrefix(nil, t.sh.number, tableLog), appendPrefix(nil, t.sh.number, tableLog+1), nil)
	})
	return err
}

// Changes reads logs.
func (s logs) Changes(ctx context.Context, reads []store.LogRead) ([]store.LogPage, error) {
	pages := make([]store.LogPage, len(reads))
	for i, r := range reads {
		_, err := s.change(ctx, r.Shard, access{}, func(t *transaction) (err error) {
			pages[i], err = logReader{t}.changes(r)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return pages, nil
}

// logReader reads the log of a shard.
type logReader struct{ *transaction }

func (t logReader) changes(r store.LogRead) (store.LogPage, error) {
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
	err := t.dir.Scan(lower, upper, func(key, value []byte) (bool, error) {
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
func (s retention) TrimLog(ctx context.Context, name store.Shard, limit int) (trimmed int, err error) {
	_, err = s.change(ctx, name, access{}, func(t *transaction) error {
		m := t.sh.meta.log
		if trimmed = 0; m.last == m.forgotten || limit <= 0 {
			return nil
		}
		kept := t.now.Add(-m.watching.Retention)
		last := m.forgotten
		lower, upper := appendLogKey(nil, t.sh.number, m.forgotten+1), appendPrefix(nil, t.sh.number, tableLog+1)
		err := t.dir.Scan(lower, upper, func(key, value []byte) (bool, error) {
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
		t.next.trimmed = last
		return t.writer().DeleteRange(appendPrefix(nil, t.sh.number, tableLog), appendLogKey(nil, t.sh.number, last+1), nil)
	})
	if err != nil {
		return 0, err
	}
	return trimmed, nil
}

package pebblestore

import (
	"context"
	"fmt"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/record"
)

// rewriter is store.Rewriter.
type rewriter struct{ *base }

// written are the tables with something that users wrote, in the order in which they are written anew.
var written = [...]table{tableTasks, tableHistory, tableJournal, tableCells}

// kindRewrite marks the cursors of rewrites. It is none of store's kinds.
const kindRewrite store.Kind = 0xfc

// Rewrite implements store.Rewriter. Its cursor is the number of a table and the rest of the last key that
// was read there.
func (s *rewriter) Rewrite(ctx context.Context, name store.Shard, r store.Rewrite, cursor string, limit int) (next string, err error) {
	position, err := parseCursor(kindRewrite, cursor)
	if err != nil {
		return "", err
	}
	w := rewriting{by: r, left: max(limit, 1)}
	if position != nil {
		if w.at = int(position[0]); w.at >= len(written) {
			return "", fmt.Errorf("%w: %q", store.ErrBadCursor, cursor)
		}
		w.after = position[1:]
	}
	_, err = s.change(ctx, name, access{}, func(t *transaction) error {
		w.transaction = t
		return w.run()
	})
	if err != nil || w.at == len(written) {
		return "", err
	}
	return formatCursor(kindRewrite, append([]byte{byte(w.at)}, w.after...)), nil
}

// rewriting is one call's part of a walk.
type rewriting struct {
	*transaction
	by    store.Rewrite
	at    int    // in written
	after []byte // last key read there, behind its prefix
	left  int    // keys to read
	read  store.Bodies
}

func (w *rewriting) run() error {
	for ; w.at < len(written); w.at++ {
		more, err := w.table(written[w.at])
		if err != nil || more {
			return err
		}
		w.after = nil
	}
	return nil
}

// table goes through a table, and reports whether it has more than there was room for.
func (w *rewriting) table(t table) (more bool, err error) {
	lower := appendPrefix(nil, w.sh.number, t)
	if len(w.after) > 0 {
		lower = append(append(lower, w.after...), 0)
	}
	err = w.dir.Scan(lower, appendPrefix(nil, w.sh.number, t+1), func(key, value []byte) (bool, error) {
		if w.left == 0 || w.read.Full() {
			more = true
			return false, nil
		}
		w.left--
		w.read += store.Bodies(len(value))
		w.after = append([]byte(nil), key[prefixLen:]...)
		return true, w.one(t, key, value)
	})
	return more, err
}

// one writes a value anew. What cannot be read is for others to repair.
func (w *rewriting) one(t table, key, value []byte) error {
	switch t {
	case tableTasks:
		return w.task(key, value)
	case tableHistory:
		return w.past(key, value)
	case tableJournal:
		return w.entry(key, value)
	}
	return w.cell(key, value)
}

// task writes the entry of a task anew with the stamp that it has, by which the task's hold knows it, and so
// that whoever deletes it may do so as before.
func (w *rewriting) task(key, value []byte) error {
	e, err := decodeEntry(value)
	if err != nil || e.unreadable {
		return nil //nolint:nilerr // Hold and Sweep deal with it
	}
	var task store.Task
	if record.DecodeBody(e.body, &task) != nil {
		return nil
	}
	text, failed := w.by.Value([]byte(e.lastError))
	if failed {
		e.lastError = string(text)
	}
	switch {
	case w.by.Task(&task):
		if e.body, err = record.AppendBody(nil, &task); err != nil {
			return err
		}
	case !failed:
		return nil
	}
	w.value = append(e.appendHeader(w.value[:0]), e.body...)
	return w.replace(key, w.value)
}

func (w *rewriting) past(key, value []byte) error {
	h, err := record.DecodeHistory(value)
	if err != nil || !h.Rewrite(w.by) {
		return nil //nolint:nilerr // it is left out wherever it is read
	}
	if w.value, err = record.AppendHistory(w.value[:0], h); err != nil {
		return err
	}
	return w.set(key, w.value)
}

func (w *rewriting) entry(key, value []byte) error {
	var e store.JournalEntry
	if record.DecodeKept(value, &e); !w.by.Entry(&e) {
		return nil
	}
	w.value = record.AppendKept(w.value[:0], e.Kept, &e)
	return w.set(key, w.value)
}

func (w *rewriting) cell(key, value []byte) error {
	h, body, err := decodeCell(value)
	if err != nil {
		return nil //nolint:nilerr // whoever reads it says so
	}
	other, changed := w.by.Value(body)
	if !changed {
		return nil
	}
	c := h.cell("", nil)
	c.Body = other
	w.value = appendCell(w.value[:0], &c)
	return w.set(key, w.value)
}

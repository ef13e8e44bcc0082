package pebblestore

import (
	"context"
	"fmt"

	"github.com/ddq-io/ddq/store"
)

// Running pages through holds in the order in which they began, as far as this
// process knows it: after a restart a walk begins again.
func (s *taskReader) Running(ctx context.Context, name store.Shard, cursor string, limit int) ([]store.Running, string, error) {
	var running []store.Running
	next, err := s.walkHolds(ctx, name, cursor, limit, func(_ *transaction, h *hold) (bool, error) {
		running = append(running, h.running())
		return true, nil
	})
	if err != nil {
		return nil, "", err
	}
	return running, next, nil
}

// walkHolds visits a page of holds, which visit may end.
func (s *taskReader) walkHolds(ctx context.Context, name store.Shard, cursor string, limit int, visit func(*transaction, *hold) (bool, error)) (next string, err error) {
	position, err := parseCursor(store.KindRunning, cursor)
	if err != nil {
		return "", err
	}
	after, err := s.boot.serial(position)
	if err != nil {
		return "", err
	}
	_, err = s.change(ctx, name, access{}, func(t *transaction) error {
		page, more := t.sh.holds.after(after, limit)
		for i, h := range page {
			goOn, err := visit(t, h)
			if err != nil {
				return err
			}
			if !goOn && i+1 < len(page) {
				page, more = page[:i+1], true
				break
			}
		}
		if more && len(page) > 0 {
			next = formatCursor(store.KindRunning, s.boot.position(page[len(page)-1].serial))
		}
		return nil
	})
	return next, err
}

// List pages through tasks of a kind.
func (s *taskReader) List(ctx context.Context, name store.Shard, kind store.Kind, cursor string, limit int) (tasks []store.Snapshot, next string, err error) {
	var bodies store.Bodies
	see := func(t *transaction, id string) (bool, error) {
		snap, err := t.snapshot(id)
		if err == nil && snap.State != store.StateUnknown {
			tasks = append(tasks, snap)
			bodies.Add(&snap.Task)
		}
		return !bodies.Full(), err
	}
	switch kind {
	case store.KindRunning:
		next, err = s.walkHolds(ctx, name, cursor, limit, func(t *transaction, h *hold) (bool, error) { return see(t, h.id) })
	case store.KindPending:
		next, err = s.walkIndex(ctx, name, kind, tablePending, cursor, limit, see)
	case store.KindDone:
		next, err = s.walkIndex(ctx, name, kind, tableDone, cursor, limit, see)
	case store.KindDead:
		next, err = s.walkIndex(ctx, name, kind, tableDead, cursor, limit, see)
	default:
		err = fmt.Errorf("no such kind of task: %d", kind)
	}
	if err != nil {
		return nil, "", err
	}
	return tasks, next, nil
}

// walkIndex visits a page of an index, which visit may end. The position of a cursor is the rest of the
// last key, behind its prefix.
func (s *taskReader) walkIndex(ctx context.Context, name store.Shard, kind store.Kind, index table, cursor string, limit int, visit func(*transaction, string) (bool, error)) (next string, err error) {
	position, err := parseCursor(kind, cursor)
	if err != nil {
		return "", err
	}
	_, err = s.change(ctx, name, access{}, func(t *transaction) error {
		lower := appendPrefix(nil, t.sh.number, index)
		if position != nil {
			lower = append(append(lower, position...), 0)
		} else if index == tablePending {
			lower = appendMillis(lower, t.sh.firstDue)
		}
		var last []byte
		seen, goOn := 0, true
		return s.dir.Scan(lower, appendPrefix(nil, t.sh.number, index+1), func(key, _ []byte) (bool, error) {
			if seen == limit || !goOn {
				next = formatCursor(kind, last)
				return false, nil
			}
			seen++
			last = append(last[:0], key[prefixLen:]...)
			_, id, ok := decodeTimeKey(key)
			if !ok {
				return true, nil
			}
			goOn, err = visit(t, id)
			return true, err
		})
	})
	return next, err
}

package pebblestore

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/ddq-io/ddq/store"
)

// swept are the tables in the order in which a sweep walks them: the tasks first,
// so that what it repairs is in place when it looks for entries of nothing.
var swept = [...]table{tableTasks, tablePending, tableHolds, tableDead, tableDone, tableTrim, tableLanes, tableHistory, tableOrder, tableIndex, tableJournal}

// kindSweep marks the cursors of sweeps. It is none of store's kinds.
const kindSweep store.Kind = 0xff

// Sweep checks up to limit keys of a shard. Its cursor is the number of a table and
// the rest of the last key that was checked there.
func (s *shardOwner) Sweep(ctx context.Context, name store.Shard, f store.Fence, cursor string, limit int) (repaired int, next string, err error) {
	position, err := parseCursor(kindSweep, cursor)
	if err != nil {
		return 0, "", err
	}
	w := sweep{left: max(limit, 1)}
	if position != nil {
		if w.at = int(position[0]); w.at >= len(swept) {
			return 0, "", fmt.Errorf("%w: %q", store.ErrBadCursor, cursor)
		}
		w.after = position[1:]
	}
	_, err = s.change(ctx, name, access{fence: &f}, func(t *transaction) error {
		next = ""
		w.transaction = t
		return w.run()
	})
	if err != nil {
		return 0, "", err
	}
	if w.at < len(swept) {
		next = formatCursor(kindSweep, append([]byte{byte(w.at)}, w.after...))
	}
	return w.repaired, next, nil
}

// sweep is one call's part of a walk.
type sweep struct {
	*transaction
	at       int                // in swept
	after    []byte             // last key checked there, behind its prefix
	left     int                // keys to check
	groups   map[uint64][]*hold // by number, when needed
	repaired int
}

func (w *sweep) run() error {
	for ; w.at < len(swept); w.at++ {
		if w.left == 0 {
			return nil
		}
		keys, more, err := w.keys()
		if err != nil {
			return err
		}
		for _, key := range keys {
			fixed, err := w.check(swept[w.at], key)
			if err != nil {
				return err
			}
			if fixed {
				w.repaired++
			}
		}
		if more {
			w.after = keys[len(keys)-1][prefixLen:]
			return nil
		}
		w.after = nil
		// What was repaired here is looked at by the tables that follow.
		if err := w.apply(); err != nil {
			return err
		}
	}
	return w.recount()
}

// recount corrects the numbers of a shard once a walk that found them doubtful is
// over. It reads the indexes.
func (w *sweep) recount() error {
	if !w.sh.doubtful {
		return nil
	}
	m := w.sh.meta
	for _, c := range []struct {
		index table
		had   int64
		diff  *int64
	}{{tablePending, m.pending, &w.next.pending}, {tableDone, m.done, &w.next.done}, {tableDead, m.dead, &w.next.dead}} {
		*c.diff -= c.had
		err := w.dir.Scan(appendPrefix(nil, w.sh.number, c.index), appendPrefix(nil, w.sh.number, c.index+1), func(_, _ []byte) (bool, error) {
			*c.diff++
			return true, nil
		})
		if err != nil {
			return err
		}
	}
	w.writer() // the numbers are written with whatever else there is
	w.sh.doubtful = false
	return nil
}

// keys returns the next keys of the table, as many as are left, and whether there
// are more.
func (w *sweep) keys() (keys [][]byte, more bool, err error) {
	lower := appendPrefix(nil, w.sh.number, swept[w.at])
	if len(w.after) > 0 {
		lower = append(append(lower, w.after...), 0)
	}
	err = w.dir.Scan(lower, appendPrefix(nil, w.sh.number, swept[w.at]+1), func(key, _ []byte) (bool, error) {
		if len(keys) == w.left {
			more = true
			return false, nil
		}
		keys = append(keys, append([]byte(nil), key...))
		return true, nil
	})
	w.left -= len(keys)
	return keys, more, err
}

// check looks at one key, and repairs it if it must.
func (w *sweep) check(index table, key []byte) (repaired bool, err error) {
	switch index {
	case tableTasks:
		if id, ok := decodeID(key[prefixLen:]); ok {
			added, err := w.checkEntries(id)
			if err == nil {
				repaired, err = w.checkTask(id)
			}
			return added || repaired, err
		}
		return true, w.remove(key, true)
	case tableHolds:
		return w.checkGroup(key)
	case tableHistory:
		return w.checkHistory(key)
	case tableJournal:
		return w.checkJournal(key)
	case tableLanes:
		return w.checkLane(key)
	case tableIndex:
		return w.checkEntry(key)
	case tableOrder:
		return w.checkOrder(key)
	}
	at, id, ok := decodeTimeKey(key)
	if !ok {
		return true, w.remove(key, true)
	}
	return w.checkIndex(index, at, id, key)
}

// checkTask looks whether a task that is not held is in the indexes of its state.
func (w *sweep) checkTask(id string) (repaired bool, err error) {
	e, f, err := w.find(id)
	switch {
	case w.sh.holds.get(id) != nil && err == nil && f == readable:
		return w.checkLine(id, &e)
	case w.sh.holds.get(id) != nil:
		return false, err
	case err != nil || f == absent:
		return false, err
	case f == broken:
		return true, w.bury(id, &e, f)
	}
	missing := false
	for _, index := range e.indexes() {
		key := appendTimeKey(nil, w.sh.number, index, e.timeIn(index), id)
		has, err := w.has(key)
		if err != nil {
			return false, err
		}
		missing = missing || !has
	}
	switch {
	case missing:
		return true, w.adopt(id, &e)
	case e.state != pending:
		return false, nil
	}
	if repaired, err = w.checkLine(id, &e); err != nil {
		return false, err
	}
	key := appendLaneKey(nil, w.sh.number, e.traits(), e.due, id)
	if key == nil {
		return repaired, nil
	}
	if has, err := w.has(key); err != nil || has {
		return repaired, err
	}
	return true, w.replace(key, e.traits())
}

// adopt puts a task that is missing in an index of its state into them again. One
// that was pending is due now, or dead if it cannot be read.
func (w *sweep) adopt(id string, e *entry) error {
	if e.state != pending {
		for _, index := range e.indexes() {
			key := appendTimeKey(nil, w.sh.number, index, e.timeIn(index), id)
			if err := w.replace(key, nil); err != nil {
				return err
			}
		}
		w.sh.firstTrim = min(w.sh.firstTrim, e.trim)
		w.sh.doubt()
		return nil
	}
	w.sh.doubt()
	if err := e.check(id); err != nil {
		e.unreadable = true
		if err := w.tellEnd(store.Change{Kind: store.ChangeDead, ID: id, Attempt: e.attempt, Reason: store.ReasonCorrupt}, e, nil, nil, nil); err != nil {
			return err
		}
		return w.tasks.addDead(id, e, store.ReasonCorrupt)
	}
	if err := w.line.leave(e.traits(), e.standsAt(), id); err != nil {
		return err
	}
	e.due = w.ms
	w.log.tell(store.Change{Kind: store.ChangeUpdated, ID: id, Due: e.due, Attempt: e.attempt}, e)
	if err := w.line.enter(e.traits(), e.standsAt(), id); err != nil {
		return err
	}
	if err := w.tasks.rewrite(id, e); err != nil {
		return err
	}
	return w.tasks.addPending(e.due, id, e.traits())
}

// checkGroup looks whether the holds of a group have their tasks.
func (w *sweep) checkGroup(key []byte) (repaired bool, err error) {
	live := 0
	for _, h := range w.members(key) {
		e, f, err := w.find(h.id)
		switch {
		case err != nil:
			return false, err
		case f == absent || f == readable && e.stamp != h.stamp:
			w.next.end(h)
			repaired = true
		default:
			live++
		}
	}
	if live == 0 && !repaired { // not readable when the shard was loaded
		return true, w.remove(key, true)
	}
	return repaired, nil
}

// members returns the holds of the group that lies under a key.
func (w *sweep) members(key []byte) []*hold {
	if len(key) != prefixLen+8 {
		return nil
	}
	if w.groups == nil {
		w.groups = make(map[uint64][]*hold)
		for _, h := range w.sh.holds.byID {
			w.groups[h.group.number] = append(w.groups[h.group.number], h)
		}
	}
	return w.groups[binary.BigEndian.Uint64(key[prefixLen:])]
}

// checkIndex looks whether the task of an index entry is in that state.
func (w *sweep) checkIndex(index table, at store.Millis, id string, key []byte) (repaired bool, err error) {
	e, f, err := w.find(id)
	if err != nil {
		return false, err
	}
	held := w.sh.holds.get(id) != nil
	if f == broken && index == tablePending && !held {
		return false, nil // Hold will find it
	}
	if f == readable && !held && e.timeIn(index) == at && e.isIn(index) {
		return false, nil
	}
	w.sh.doubt()
	return true, w.remove(key, true)
}

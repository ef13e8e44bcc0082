package memstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/ddq-io/ddq/store"
)

// Get implements store.Reader.
func (m reader) Get(ctx context.Context, s store.Shard, ids []string) (store.Stamp, []store.Snapshot, error) {
	var bodies store.Bodies
	n := 0
	stamp, found, err := batch(ctx, m.core, s, access{}, ids, func(sh *shard, now clock, id string) (t store.Snapshot) {
		if bodies.Full() {
			return t
		}
		n++
		t = sh.snapshot(id, now)
		bodies.Add(&t.Task)
		return t
	})
	return stamp, found[:n], err
}

// Window implements store.Reader.
func (m reader) Window(ctx context.Context, s store.Shard, w store.WindowQuery) (store.Stamp, []store.Entry, error) {
	if err := m.enter(ctx); err != nil {
		return store.Stamp{}, nil, err
	}
	defer m.mu.Unlock()
	sh := m.shard(s)
	var entries []store.Entry
	pending := sh.indexes[store.KindPending].after(w.After)
	if w.Lane != nil {
		pending = sh.lanes.after(*w.Lane, w.After)
	}
	for e := range pending {
		if e.Due > w.To || len(entries) >= w.Limit {
			break
		}
		entries = append(entries, e)
	}
	return sh.stamp(m.now()), entries, nil
}

// Lanes implements store.Reader.
func (m reader) Lanes(ctx context.Context, s store.Shard, after *store.Lane, limit int) ([]store.LaneHead, error) {
	if err := m.enter(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	return m.shard(s).lanes.heads(after, limit), nil
}

// Running implements store.Reader.
func (m reader) Running(ctx context.Context, s store.Shard, cursor string, limit int) ([]store.Running, string, error) {
	if err := m.enter(ctx); err != nil {
		return nil, "", err
	}
	defer m.mu.Unlock()
	sh := m.shard(s)
	page, next, err := sh.page(store.KindRunning, cursor, limit)
	if err != nil {
		return nil, "", err
	}
	holds := make([]store.Running, len(page))
	for i, e := range page {
		r := sh.tasks[e.ID]
		holds[i] = store.Running{
			ID: e.ID, Token: r.token, Deadline: r.deadline, Attempt: r.task.Attempt, Worker: r.worker,
			Node: r.node, Started: r.started, Cancelled: r.cancelled,
		}
	}
	return holds, next, nil
}

// List implements store.Reader.
func (m reader) List(ctx context.Context, s store.Shard, kind store.Kind, cursor string, limit int) ([]store.Snapshot, string, error) {
	if err := m.enter(ctx); err != nil {
		return nil, "", err
	}
	defer m.mu.Unlock()
	sh, now := m.shard(s), m.now()
	page, last, err := sh.page(kind, cursor, limit)
	if err != nil {
		return nil, "", err
	}
	next := ""
	tasks := make([]store.Snapshot, 0, len(page))
	var bodies store.Bodies
	for _, e := range page {
		if bodies.Full() {
			return tasks, next, nil
		}
		t := sh.snapshot(e.ID, now)
		tasks, next = append(tasks, t), formatCursor(kind, e)
		bodies.Add(&t.Task)
	}
	return tasks, last, nil
}

// Stats implements store.Reader.
func (m reader) Stats(ctx context.Context, shards []store.Shard) ([]store.Stats, error) {
	return m.numbers(ctx, shards, (*shard).stats)
}

// Counts implements store.Reader.
func (m reader) Counts(ctx context.Context, shards []store.Shard) ([]store.Stats, error) {
	return m.numbers(ctx, shards, (*shard).counts)
}

// numbers asks each shard for its own.
func (m reader) numbers(ctx context.Context, shards []store.Shard, of func(*shard, clock) store.Stats) ([]store.Stats, error) {
	if err := m.enter(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	now := m.now()
	stats := make([]store.Stats, len(shards))
	for i, s := range shards {
		stats[i] = of(m.shard(s), now)
		stats[i].Server = m.server
	}
	return stats, nil
}

// Sweep finds nothing to repair: one record here is both a task and its index entries.
func (m *owner) Sweep(ctx context.Context, s store.Shard, f store.Fence, cursor string, _ int) (int, string, error) {
	if err := m.enter(ctx); err != nil {
		return 0, "", err
	}
	defer m.mu.Unlock()
	if !m.shard(s).ownedUnder(f) {
		return 0, "", store.ErrFenced
	}
	if cursor != "" {
		return 0, "", fmt.Errorf("%w: %q", store.ErrBadCursor, cursor)
	}
	return 0, "", nil
}

func (sh *shard) counts(now clock) store.Stats {
	return store.Stats{
		Stamp:   sh.stamp(now),
		Pending: int64(sh.indexes[store.KindPending].len()),
		Running: int64(sh.indexes[store.KindRunning].len()),
		Done:    int64(sh.indexes[store.KindDone].len()),
		Dead:    int64(sh.indexes[store.KindDead].len()),
		Keys:    len(sh.marks) > 0,
		Logged:  len(sh.log) > 0,
		Cells:   int64(len(sh.cells.byID)),
		Parcels: int64(len(sh.in.parcels)+len(sh.out.parcels)) + sh.queues.len(),
		Owner:   sh.owner,
		Epoch:   sh.fence.Epoch,
		Index:   sh.index,
		Life:    sh.life,
	}
}

func (sh *shard) stats(now clock) store.Stats {
	stats := sh.counts(now)
	for e := range sh.indexes[store.KindPending].after(store.Entry{}) {
		if stats.OldestMs == 0 {
			stats.OldestMs = e.Due
		}
		if e.Due > now.Millis() {
			break
		}
		stats.Ready++
	}
	return stats
}

// page returns a page of the tasks of a kind, and the cursor of the next one.
func (sh *shard) page(kind store.Kind, cursor string, limit int) ([]store.Entry, string, error) {
	after, err := parseCursor(kind, cursor)
	if err != nil {
		return nil, "", err
	}
	page, more := sh.indexes[kind].page(after, limit)
	if !more {
		return page, "", nil
	}
	return page, formatCursor(kind, page[len(page)-1]), nil
}

// formatCursor writes the position of the last entry of a page: kind:time:id.
func formatCursor(kind store.Kind, last store.Entry) string {
	return fmt.Sprintf("%d:%d:%s", kind, last.Due, last.ID)
}

// parseCursor reads a cursor; the empty one is the zero Entry.
func parseCursor(kind store.Kind, cursor string) (store.Entry, error) {
	if cursor == "" {
		return store.Entry{}, nil
	}
	position, ofKind := strings.CutPrefix(cursor, fmt.Sprintf("%d:", kind))
	ms, id, found := strings.Cut(position, ":")
	due, err := strconv.ParseInt(ms, 10, 64)
	if !ofKind || !found || err != nil {
		return store.Entry{}, fmt.Errorf("%w: %q", store.ErrBadCursor, cursor)
	}
	return store.Entry{Due: store.Millis(due), ID: id}, nil
}

// InOrder implements store.Reader.
func (m reader) InOrder(ctx context.Context, s store.Shard, keys []string, limit int) (store.Stamp, [][]store.Ordered, error) {
	return batch(ctx, m.core, s, access{}, keys, func(sh *shard, _ clock, key string) (found []store.Ordered) {
		for id := range sh.orders.of(key) {
			if len(found) >= limit {
				break
			}
			r := sh.tasks[id]
			o := store.Ordered{Entry: store.Entry{ID: id, Due: r.task.Due, Traits: r.task.Traits}}
			if o.Held = r.kind == store.KindRunning; o.Held {
				o.Due = 0
			}
			found = append(found, o)
		}
		return found
	})
}

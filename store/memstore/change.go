package memstore

import (
	"context"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/life"
)

// Remove implements store.Writer.
func (m writer) Remove(ctx context.Context, s store.Shard, removals []store.Removal) (store.Stamp, []store.RemoveResult, error) {
	return batch(ctx, m.core, s, access{}, removals, func(sh *shard, now clock, m store.Removal) store.RemoveResult {
		if r := sh.tasks[m.ID]; r != nil && r.kind == store.KindPending && !m.Takes(r.task.Version()) {
			return store.RemoveResult{Status: store.Stale}
		}
		return sh.change(m.ID, now, func(r *record) { sh.drop(r, now) })
	})
}

// drop deletes r because somebody said so.
func (sh *shard) drop(r *record, now clock) {
	if r.kind == store.KindPending {
		sh.leave(r, store.Ended{Kind: store.ChangeDeleted}, now)
	}
	sh.take(r)
	sh.tell(r, store.Change{Kind: store.ChangeDeleted}, now)
}

// change does something to a pending task.
func (sh *shard) change(id string, now clock, do func(*record)) store.RemoveResult {
	r := sh.tasks[id]
	switch status := life.Change(r.phase()); status {
	case store.OK:
	case store.WrongState:
		return store.RemoveResult{Status: status, State: r.state(now)}
	default:
		return store.RemoveResult{Status: status}
	}
	do(r)
	return store.RemoveResult{Status: store.OK}
}

// Requeue implements store.Writer.
func (m writer) Requeue(ctx context.Context, s store.Shard, ids []string) (store.Stamp, []store.RemoveResult, error) {
	return batch(ctx, m.core, s, access{}, ids, func(sh *shard, now clock, id string) store.RemoveResult {
		result := store.RemoveResult{}
		if r := sh.tasks[id]; r != nil && r.kind == store.KindDead && r.task.Traits.Ordering() != "" && sh.closedTo(r.task.Traits) {
			return store.RemoveResult{Status: store.Closed}
		}
		result.Status = sh.changeDead(id, func(r *record) {
			r.task.Attempt, r.task.Expires = 0, 0
			sh.pend(r, now.Millis())
			sh.leave(r, store.Ended{Kind: store.ChangeRequeued}, now)
			sh.tell(r, store.Change{Kind: store.ChangeRequeued}, now)
			result.Due, result.Traits = now.Millis(), r.task.Traits
		})
		return result
	})
}

// RemoveDead implements store.Writer.
func (m writer) RemoveDead(ctx context.Context, s store.Shard, ids []string) (store.Stamp, []store.Status, error) {
	return batch(ctx, m.core, s, access{}, ids, func(sh *shard, now clock, id string) store.Status {
		return sh.changeDead(id, func(r *record) { sh.drop(r, now) })
	})
}

// changeDead does something to a dead task.
func (sh *shard) changeDead(id string, do func(*record)) store.Status {
	r := sh.tasks[id]
	if status := life.Requeue(r.phase()); status != store.OK {
		return status
	}
	do(r)
	return store.OK
}

// Trim implements store.Retention.
func (m retention) Trim(ctx context.Context, s store.Shard, limit int) (int, error) {
	if err := m.enter(ctx); err != nil {
		return 0, err
	}
	defer m.mu.Unlock()
	sh, now := m.shard(s), m.now()
	page, _ := sh.trims.page(store.Entry{}, limit)
	return sh.trim(page, func(e store.Entry) bool { return e.Due <= now.Millis() }), nil
}

// trim deletes the tasks of a page up to the first one that is not over, and returns how
// many those are.
func (sh *shard) trim(page []store.Entry, over func(store.Entry) bool) int {
	for i, e := range page {
		if !over(e) {
			return i
		}
		sh.take(sh.tasks[e.ID])
	}
	return len(page)
}

// Seal implements store.Retention.
func (m retention) Seal(ctx context.Context, s store.Shard) error {
	if err := m.enter(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	sh, ours := m.shard(s), false
	if sh.life, ours = sh.life.Sealing(s.Life); ours {
		sh.sealed = true
	}
	return nil
}

// DropShard implements store.Retention.
func (m retention) DropShard(ctx context.Context, s store.Shard) error {
	if err := m.enter(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	sh, ours := m.shard(s), false
	if sh.life, ours = sh.life.Dropping(s.Life); ours {
		sh.clear()
	}
	return nil
}

// OpenShard implements store.Retention.
func (m retention) OpenShard(ctx context.Context, s store.Shard, was store.ShardLife) error {
	if err := m.enter(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	sh := m.shard(s)
	if next, opens := sh.life.Opening(s.Life, was); opens {
		sh.life, sh.sealed = next, sh.sealed && was == (store.ShardLife{})
	}
	return nil
}

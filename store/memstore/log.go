package memstore

import (
	"context"
	"slices"

	"github.com/ddq-io/ddq/store"
)

// tell appends to the shard's log what has just happened to r: c says what, and r the
// rest.
func (sh *shard) tell(r *record, c store.Change, now clock) {
	if sh.watching.Retention == 0 {
		return
	}
	sh.logged++
	c.Position, c.At = sh.logged, now.At
	c.ID, c.Attempt = r.task.ID, r.task.Attempt
	switch c.Kind {
	case store.ChangeEnqueued, store.ChangeUpdated, store.ChangeRequeued:
		c.Version = r.task.Version()
	case store.ChangeHeld:
		c.Version, c.Worker = r.task.Version(), r.worker
	case store.ChangeDead:
		c.Reason = r.reason
	}
	if c.Kind == store.ChangeHeld || c.State().Pending() {
		c.Due = r.task.Due
	}
	c.Attributes = r.task.Indexed.Of(r.task.Attributes)
	sh.log = append(sh.log, c)
	if over := len(sh.log) - sh.watching.Max; over > 0 {
		sh.log = sh.log[over:]
	}
}

// Watch implements store.Log.
func (m changeLog) Watch(ctx context.Context, s store.Shard, w store.Watching) error {
	if err := m.enter(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	sh := m.shard(s)
	if sh.watching == w {
		return nil
	}
	sh.watching = w
	if w.Retention == 0 {
		sh.log = nil
		sh.logged++
	}
	return nil
}

// Changes implements store.Log.
func (m changeLog) Changes(ctx context.Context, reads []store.LogRead) ([]store.LogPage, error) {
	if err := m.enter(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	pages := make([]store.LogPage, len(reads))
	for i, r := range reads {
		pages[i] = m.shard(r.Shard).changes(r)
	}
	return pages, nil
}

func (sh *shard) changes(r store.LogRead) store.LogPage {
	page := store.LogPage{Watched: sh.watching.Retention > 0, Last: sh.logged}
	forgotten := sh.logged - int64(len(sh.log))
	after := r.After
	if after == store.FromOldest {
		after = forgotten
	}
	if after < forgotten || after > sh.logged {
		page.Gap, page.Next = true, sh.logged
		return page
	}
	kept := sh.log[after-forgotten:]
	page.Changes = slices.Clone(kept[:min(max(r.Limit, 0), len(kept))])
	page.Next = after + int64(len(page.Changes))
	return page
}

// TrimLog implements store.Retention.
func (m retention) TrimLog(ctx context.Context, s store.Shard, limit int) (int, error) {
	if err := m.enter(ctx); err != nil {
		return 0, err
	}
	defer m.mu.Unlock()
	sh := m.shard(s)
	kept := m.now().At.Add(-sh.watching.Retention)
	n := 0
	for n < min(limit, len(sh.log)) && sh.log[n].At.Before(kept) {
		n++
	}
	sh.log = sh.log[n:]
	return n, nil
}

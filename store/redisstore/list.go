package redisstore

import (
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"github.com/ddq-io/ddq/store"
)

// List implements store.Reader. A task that leaves the list between the look at
// the index and the look at the tasks is not in the page.
func (s *reader) List(ctx context.Context, shard store.Shard, kind store.Kind, cursor string, limit int) ([]store.Snapshot, string, error) {
	if err := s.enter(ctx); err != nil {
		return nil, "", err
	}
	page, next, err := s.listed(ctx, shard, kind, cursor, limit)
	if err != nil || len(page) == 0 {
		return nil, next, err
	}
	all, err := s.entries(ctx, shard, page)
	if len(all) < len(page) && err == nil {
		if kind == store.KindRunning {
			return s.listAgain(ctx, shard, cursor, len(all))
		}
		next = formatListCursor(kind, page[len(all)-1])
	}
	if err != nil {
		return nil, "", err
	}
	return ofKind(all, kind), next, nil
}

// listAgain is List of running tasks whose page had more bodies than fit. There
// is no cursor in the middle of a page, so smaller ones are read until one fits. Redis may
// keep several tasks in one slot, and then a page of one has them all.
func (s *reader) listAgain(ctx context.Context, shard store.Shard, cursor string, fit int) ([]store.Snapshot, string, error) {
	for ; ; fit /= 2 {
		page, next, err := s.listed(ctx, shard, store.KindRunning, cursor, fit)
		var all []store.Snapshot
		for err == nil && len(all) < len(page) && (len(all) == 0 || fit == 1) {
			var some []store.Snapshot
			some, err = s.entries(ctx, shard, page[len(all):])
			all = append(all, some...)
		}
		switch {
		case err != nil:
			return nil, "", err
		case len(all) == len(page):
			return ofKind(all, store.KindRunning), next, nil
		}
	}
}

// entries returns the tasks of entries, as Get does.
func (s *reader) entries(ctx context.Context, shard store.Shard, page []store.Entry) ([]store.Snapshot, error) {
	ids := make([]string, len(page))
	for i, e := range page {
		ids[i] = e.ID
	}
	_, all, err := s.Get(ctx, shard, ids)
	return all, err
}

func ofKind(all []store.Snapshot, kind store.Kind) []store.Snapshot {
	tasks := all[:0]
	for _, t := range all {
		if isOfKind(t.State, kind) {
			tasks = append(tasks, t)
		}
	}
	return tasks
}

func isOfKind(state store.State, kind store.Kind) bool {
	switch kind {
	case store.KindPending:
		return state.Pending()
	case store.KindRunning:
		return state == store.StateRunning
	case store.KindDone:
		return state == store.StateDone
	}
	return state == store.StateDead || state == store.StateExpired
}

// listed returns a page of the entries of a kind.
func (s *reader) listed(ctx context.Context, shard store.Shard, kind store.Kind, cursor string, limit int) (page []store.Entry, next string, err error) {
	keys := s.keys(shard)
	var index int
	switch kind {
	case store.KindPending:
		index = tasksKey
	case store.KindDone:
		index = doneKey
	case store.KindDead:
		index = dlqKey
	case store.KindRunning:
		return s.listRunning(ctx, keys, cursor, limit)
	default:
		return nil, "", fmt.Errorf("list: unknown kind %d", kind)
	}
	after, err := parseListCursor(kind, cursor)
	if err != nil {
		return nil, "", err
	}
	limit = min(max(limit, 1), maxItems)
	_, page, err = s.page(ctx, keys.pick(ownerKey, index, traitsKey), after, "(+inf", limit)
	if err == nil && len(page) == limit {
		next = formatListCursor(kind, page[limit-1])
	}
	return page, next, err
}

func (s *reader) listRunning(ctx context.Context, keys *shardKeys, cursor string, limit int) (page []store.Entry, next string, err error) {
	position, ofKind := strings.CutPrefix(cursor, "r")
	if cursor != "" && !ofKind {
		return nil, "", fmt.Errorf("%w: %q", store.ErrBadCursor, cursor)
	}
	fields, next, err := s.scan(ctx, keys[runningKey], position, limit)
	for _, f := range fields {
		page = append(page, store.Entry{ID: parseID(f.name)})
	}
	if next != "" {
		next = "r" + next
	}
	return page, next, err
}

// formatListCursor writes the position of the last entry of a page.
func formatListCursor(kind store.Kind, last store.Entry) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d:%d:%s", kind, last.Due, last.ID))
}

// parseListCursor reads a cursor; the empty one is the zero Entry.
func parseListCursor(kind store.Kind, cursor string) (store.Entry, error) {
	if cursor == "" {
		return store.Entry{}, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	position, ofKind := strings.CutPrefix(string(raw), fmt.Sprintf("%d:", kind))
	ms, id, found := strings.Cut(position, ":")
	due, errDue := strconv.ParseInt(ms, 10, 64)
	if err != nil || !ofKind || !found || errDue != nil {
		return store.Entry{}, fmt.Errorf("%w: %q", store.ErrBadCursor, cursor)
	}
	return store.Entry{Due: store.Millis(due), ID: id}, nil
}

// Counts implements store.Reader. Stats costs little more here.
func (s *reader) Counts(ctx context.Context, shards []store.Shard) ([]store.Stats, error) {
	stats, err := s.Stats(ctx, shards)
	for i := range stats {
		stats[i].Ready = 0
	}
	return stats, err
}

package redisstore

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ddq-io/ddq/store"
)

// sweepOrder are the keys that Sweep walks: tasks first, then what points to them.
var sweepOrder = [...]int{dataKey, tasksKey, runningKey, dlqKey, doneKey, notesKey, keptKey, traitsKey, lanesKey, historyKey, orderKey, attrsKey, indexKey}

// Sweep implements store.Reader. The cursor is the number of the key in
// sweepOrder and the cursor of Redis in that key.
func (s *Store) Sweep(ctx context.Context, shard store.Shard, f store.Fence, cursor string, limit int) (int, string, error) {
	if err := s.enter(ctx); err != nil {
		return 0, "", err
	}
	step, position, err := parseSweepCursor(cursor)
	if err != nil {
		return 0, "", err
	}
	page, next, err := s.sweepPage(ctx, s.keys(shard), step, position, limit)
	if err != nil {
		return 0, "", err
	}
	repaired, script := 0, s.lua.sweep
	switch sweepOrder[step] {
	case lanesKey:
		script = s.lua.sweepLanes
	case indexKey:
		script = s.lua.sweepIndex
	case orderKey:
		script = s.lua.sweepOrder
	}
	for i, ids := range [][]string{page.unreadable, page.readable} {
		n, lost, err := s.repair(ctx, script, shard, f, i, ids)
		if err != nil {
			return 0, "", err
		}
		again, err := s.restoreAttributes(ctx, shard, f, page.tasks, lost)
		if err != nil {
			return 0, "", err
		}
		repaired += n + again
	}
	if next == "" && step+1 == len(sweepOrder) {
		return repaired, "", nil
	}
	if next == "" {
		step, next = step+1, "0"
	}
	return repaired, fmt.Sprintf("%d:%s", step, next), nil
}

func parseSweepCursor(cursor string) (step int, position string, err error) {
	if cursor == "" {
		return 0, "", nil
	}
	first, position, found := strings.Cut(cursor, ":")
	step, err = strconv.Atoi(first)
	if !found || err != nil || step < 0 || step >= len(sweepOrder) {
		return 0, "", fmt.Errorf("%w: %q", store.ErrBadCursor, cursor)
	}
	_, err = parseScanCursor(position)
	return step, position, err
}

// sweepPage are stored ids of one of the keys, those apart whose record cannot be read.
type sweepPage struct {
	readable, unreadable []string
	tasks                map[string]*store.Task // of the readable ones those with attributes, in a page of the data
}

func (s *Store) sweepPage(ctx context.Context, keys *shardKeys, step int, position string, limit int) (page sweepPage, next string, err error) {
	key := sweepOrder[step]
	var fields []field
	switch key {
	case dataKey, runningKey, notesKey, traitsKey, historyKey, attrsKey:
		fields, next, err = s.scan(ctx, keys[key], position, limit)
	default:
		fields, next, err = s.scanSet(ctx, keys[key], position, limit)
	}
	if key == dataKey {
		page.tasks = make(map[string]*store.Task)
	}
	for _, f := range fields {
		if key == dataKey {
			t := new(store.Task)
			if decodeRecord(f.value, t) != nil {
				page.unreadable = append(page.unreadable, f.name)
				continue
			}
			if len(t.Attributes) > 0 {
				page.tasks[f.name] = t
			}
		}
		page.readable = append(page.readable, f.name)
	}
	return page, next, err
}

func (s *Store) scanSet(ctx context.Context, key, cursor string, limit int) (fields []field, next string, err error) {
	at, err := parseScanCursor(cursor)
	if err != nil {
		return nil, "", err
	}
	flat, after, err := s.scanOnce(ctx, "zscan", key, at, max(limit, 1))
	if err != nil {
		return nil, "", err
	}
	for i := 0; i+1 < len(flat); i += 2 {
		if flat[i] != guard {
			fields = append(fields, field{name: flat[i]})
		}
	}
	if after != 0 {
		next = strconv.FormatUint(after, 10)
	}
	return fields, next, nil
}

// repair looks at stored ids once more, in a script, and repairs what is broken.
// readable is 1 when their records can be read. It checks the fence even when
// there are no ids. It returns the tasks that may have lost their attributes.
func (s *Store) repair(ctx context.Context, lua *script, shard store.Shard, f store.Fence, readable int, members []string) (repaired int, lost bare, err error) {
	for start := 0; start == 0 || start < len(members); start += maxItems {
		a := newArgs(maxItems+3, 32*maxItems)
		a.fence(f)
		if lua == s.lua.sweep {
			a.int(int64(readable))
		}
		for _, m := range members[start:min(start+maxItems, len(members))] {
			a.str(m)
		}
		v, err := s.swept(ctx, lua, shard, a)
		if err != nil {
			return 0, lost, err
		}
		if all := list(v); len(all) > 2 {
			v = all[0]
			lost.indexed = text(all[1])
			lost.ids = append(lost.ids, texts(all[2:])...)
		}
		repaired += int(number(v))
	}
	return repaired, lost, nil
}

// swept runs a script of a sweep.
func (s *Store) swept(ctx context.Context, lua *script, shard store.Shard, a *args) (any, error) {
	v, err := s.run(ctx, lua, s.keys(shard)[:], a.values())
	if err != nil {
		return nil, writeError("sweep", err)
	}
	if number(v) < 0 {
		return nil, fmt.Errorf("sweep: %w", store.ErrFenced)
	}
	return v, nil
}

// bare are tasks, by stored id, that no attributes are kept of beside their records, and
// what the owner record says is indexed.
type bare struct {
	indexed string
	ids     []string
}

// restoreAttributes indexes those of the tasks again whose records say that they have
// attributes for it.
func (s *Store) restoreAttributes(ctx context.Context, shard store.Shard, f store.Fence, tasks map[string]*store.Task, lost bare) (repaired int, err error) {
	state := parseIndexState(lost.indexed)
	set := state.Ready
	if state.Walk != (store.Token{}) {
		set = state.Building // those that the walk has seen have what it is for
	}
	ids := slices.DeleteFunc(lost.ids, func(id string) bool { return tasks[id] == nil || set.In(tasks[id].Attributes) == "" })
	for part := range slices.Chunk(ids, maxItems) {
		a := newArgs(4*len(part)+3, 64*len(part)+64)
		a.fence(f)
		a.str(lost.indexed)
		for _, id := range part {
			a.str(id)
			a.indexed(tasks[id], set)
		}
		v, err := s.swept(ctx, s.lua.sweepAttrs, shard, a)
		if err != nil {
			return repaired, err
		}
		repaired += int(number(v))
	}
	return repaired, nil
}

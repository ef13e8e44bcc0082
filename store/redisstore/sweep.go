package redisstore

import (
	"context"
	"fmt"
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
	readable, unreadable, next, err := s.sweepPage(ctx, s.keys(shard), step, position, limit)
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
	for i, ids := range [][]string{unreadable, readable} {
		n, err := s.repair(ctx, script, shard, f, i, ids)
		if err != nil {
			return 0, "", err
		}
		repaired += n
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

// sweepPage returns ids of one of the keys, those apart whose record cannot be read.
func (s *Store) sweepPage(ctx context.Context, keys *shardKeys, step int, position string, limit int) (readable, unreadable []string, next string, err error) {
	key := sweepOrder[step]
	var fields []field
	switch key {
	case dataKey, runningKey, notesKey, traitsKey, historyKey, attrsKey:
		fields, next, err = s.scan(ctx, keys[key], position, limit)
	default:
		fields, next, err = s.scanSet(ctx, keys[key], position, limit)
	}
	for _, f := range fields {
		if key == dataKey && decodeRecord(f.value, new(store.Task)) != nil {
			unreadable = append(unreadable, f.name)
			continue
		}
		readable = append(readable, f.name)
	}
	return readable, unreadable, next, err
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
// there are no ids.
func (s *Store) repair(ctx context.Context, lua *script, shard store.Shard, f store.Fence, readable int, members []string) (int, error) {
	repaired := 0
	for start := 0; start == 0 || start < len(members); start += maxItems {
		a := newArgs(maxItems+3, 32*maxItems)
		a.fence(f)
		if lua == s.lua.sweep {
			a.int(int64(readable))
		}
		for _, m := range members[start:min(start+maxItems, len(members))] {
			a.str(m)
		}
		v, err := s.run(ctx, lua, s.keys(shard)[:], a.values())
		if err != nil {
			return 0, writeError("sweep", err)
		}
		n := int(number(v))
		if n < 0 {
			return 0, fmt.Errorf("sweep: %w", store.ErrFenced)
		}
		repaired += n
	}
	return repaired, nil
}

package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/redisstore/conn"
)

// sweepOrder are the keys that Sweep walks: tasks first, then what points to them; cells, then
// what points to those.
var sweepOrder = [...]int{dataKey, tasksKey, runningKey, dlqKey, doneKey, notesKey, keptKey, traitsKey, lanesKey, historyKey, orderKey, attrsKey, tellsKey, indexKey, cellsKey, partsKey, wakesKey, listsKey}

// Sweep implements store.Owner. The cursor is the number of the key in
// sweepOrder and the cursor of Redis in that key.
func (s *sweeper) Sweep(ctx context.Context, shard store.Shard, f store.Fence, cursor string, limit int) (int, string, error) {
	if err := s.enter(ctx); err != nil {
		return 0, "", err
	}
	step, position, err := parseSweepCursor(cursor)
	if err != nil {
		return 0, "", err
	}
	members, next, err := s.sweepPage(ctx, s.keys(shard), step, position, limit)
	if err != nil {
		return 0, "", err
	}
	var repaired int
	switch sweepOrder[step] {
	case lanesKey:
		repaired, err = s.drop(ctx, s.lua.sweepLanes, shard, f, members)
	case indexKey:
		repaired, err = s.drop(ctx, s.lua.sweepIndex, shard, f, members)
	case orderKey:
		repaired, err = s.drop(ctx, s.lua.sweepOrder, shard, f, members)
	case cellsKey, partsKey, wakesKey:
		repaired, err = s.repairCells(ctx, s.lua.sweepCells, shard, f, members)
	case listsKey:
		repaired, err = s.repairCells(ctx, s.lua.sweepLists, shard, f, members)
	default:
		repaired, err = s.repairAll(ctx, shard, f, members)
	}
	if err != nil {
		return 0, "", err
	}
	if next == "" && step+1 == len(sweepOrder) {
		return repaired, "", nil
	}
	if next == "" {
		step++
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
	_, err = parsePosition(position)
	return step, position, err
}

// sweepPage returns members of one of the keys. Values are not read: bodies may be large.
func (s *sweeper) sweepPage(ctx context.Context, keys *shardKeys, step int, position string, limit int) (members []string, next string, err error) {
	key := sweepOrder[step]
	var fields []field
	switch key {
	case dataKey, runningKey, notesKey, traitsKey, historyKey, attrsKey, tellsKey, cellsKey, partsKey:
		fields, next, err = s.scanBytes(ctx, keys[key], position, limit, false)
	default:
		fields, next, err = s.scanSet(ctx, keys[key], position, limit)
	}
	for _, f := range fields {
		members = append(members, f.name)
	}
	if key == tellsKey {
		members = tasksOfTells(members)
	}
	return members, next, err
}

// drop has a script remove those of the members that point to nothing. It checks the fence
// even when there are none.
func (s *sweeper) drop(ctx context.Context, lua *conn.Script, shard store.Shard, f store.Fence, members []string) (repaired int, err error) {
	for start := 0; start == 0 || start < len(members); start += maxItems {
		a := newArgs(maxItems+3, 32*maxItems)
		a.fence(f)
		for _, m := range members[start:min(start+maxItems, len(members))] {
			a.str(m)
		}
		v, err := s.swept(ctx, lua, shard, a)
		if err != nil {
			return repaired, err
		}
		repaired += int(number(v))
	}
	return repaired, nil
}

// repairCells has a script look at cells or what points to some, as many as it does at once.
func (s *sweeper) repairCells(ctx context.Context, lua *conn.Script, shard store.Shard, f store.Fence, members []string) (repaired int, err error) {
	for first := true; first || len(members) > 0; first = false {
		a := newArgs(maxItems+2, 32*maxItems)
		a.fence(f)
		for _, m := range members[:min(len(members), maxItems)] {
			a.str(m)
		}
		v, err := s.swept(ctx, lua, shard, a)
		if err != nil {
			return repaired, err
		}
		looked := int(number(at(list(v), 1)))
		if len(members) > 0 && looked < 1 {
			return repaired, conn.ReadError("sweep", conn.ErrReply)
		}
		repaired += int(number(at(list(v), 0)))
		members = members[min(looked, len(members)):]
	}
	return repaired, nil
}

// What is known of the records of tasks that are to be repaired.
const (
	recordsUnknown    = ""
	recordsUnreadable = "0"
	recordsReadable   = "1"
)

// repairAll repairs what is broken of tasks, by stored id. It reads the records of those
// only that are in no index, or may have lost their attributes.
func (s *sweeper) repairAll(ctx context.Context, shard store.Shard, f store.Fence, ids []string) (repaired int, err error) {
	for start := 0; start == 0 || start < len(ids); start += maxItems {
		n, doubtful, lost, err := s.repair(ctx, shard, f, recordsUnknown, ids[start:min(start+maxItems, len(ids))])
		if repaired += n; err != nil {
			return repaired, err
		}
		n, err = s.repairRead(ctx, shard, f, doubtful)
		if repaired += n; err != nil {
			return repaired, err
		}
		n, err = s.restoreAttributes(ctx, shard, f, lost)
		if repaired += n; err != nil {
			return repaired, err
		}
	}
	return repaired, nil
}

// repairRead repairs tasks that are in no index by what their records say.
func (s *sweeper) repairRead(ctx context.Context, shard store.Shard, f store.Fence, ids []string) (repaired int, err error) {
	err = s.readRecords(ctx, shard, ids, func(ids []string, records []any) error {
		byState, byID := map[string][]string{}, make(map[string]any, len(ids))
		for i, id := range ids {
			byID[id] = records[i]
			state := recordsReadable
			if decodeRecord(text(records[i]), new(store.Task)) != nil {
				state = recordsUnreadable
			}
			byState[state] = append(byState[state], id)
		}
		for state, ids := range byState {
			n, _, lost, err := s.repair(ctx, shard, f, state, ids)
			if repaired += n; err != nil {
				return err
			}
			known := make([]any, len(lost.ids))
			for i, id := range lost.ids {
				known[i] = byID[id]
			}
			n, err = s.indexAgain(ctx, shard, f, lost, known)
			if repaired += n; err != nil {
				return err
			}
		}
		return nil
	})
	return repaired, err
}

// readRecords calls do with the records of tasks, by stored id, page by page.
func (s *sweeper) readRecords(ctx context.Context, shard store.Shard, ids []string, do func(ids []string, records []any) error) error {
	for len(ids) > 0 {
		a := newArgs(maxItems, 32*maxItems)
		for _, id := range ids[:min(len(ids), maxItems)] {
			a.str(id)
		}
		v, err := s.conn.Run(ctx, s.lua.records, s.keys(shard).pick(ownerKey, tasksKey, dataKey), a.values())
		if err != nil {
			return conn.ReadError("sweep", err)
		}
		records := list(v)
		n := min(len(ids), len(records))
		if n == 0 {
			return conn.ReadError("sweep", conn.ErrReply)
		}
		if err := do(ids[:n], records[:n]); err != nil {
			return err
		}
		ids = ids[n:]
	}
	return nil
}

// repair looks at tasks, by stored id, once more, in a script, and repairs what is broken.
// It checks the fence even when there are no ids. It returns the tasks that it can only
// repair once it is known whether their records can be read, and those that may have lost
// their attributes.
func (s *sweeper) repair(ctx context.Context, shard store.Shard, f store.Fence, records string, ids []string) (repaired int, doubtful []string, lost bare, err error) {
	a := newArgs(len(ids)+3, 32*len(ids)+64)
	a.fence(f)
	a.str(records)
	for _, id := range ids {
		a.str(id)
	}
	v, err := s.swept(ctx, s.lua.sweep, shard, a)
	if err != nil {
		return 0, nil, lost, err
	}
	all := list(v)
	return int(number(at(all, 0))), texts(list(at(all, 1))), bare{text(at(all, 2)), texts(list(at(all, 3)))}, nil
}

// swept runs a script of a sweep.
func (s *sweeper) swept(ctx context.Context, lua *conn.Script, shard store.Shard, a *args) (any, error) {
	v, err := s.conn.Run(ctx, lua, s.keys(shard).of(lua), a.values())
	if err != nil {
		return nil, conn.WriteError("sweep", err)
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
func (s *sweeper) restoreAttributes(ctx context.Context, shard store.Shard, f store.Fence, lost bare) (repaired int, err error) {
	if lost.set() == "" {
		return 0, nil
	}
	err = s.readRecords(ctx, shard, lost.ids, func(ids []string, records []any) error {
		n, err := s.indexAgain(ctx, shard, f, bare{lost.indexed, ids}, records)
		repaired += n
		return err
	})
	return repaired, err
}

// set is what a task of the shard is indexed by, if it has seen it: those that a walk has
// seen have what that is for.
func (b bare) set() store.IndexSet {
	state := parseIndexState(b.indexed)
	if state.Walk != (store.Token{}) {
		return state.Building
	}
	return state.Ready
}

// indexAgain is restoreAttributes for tasks whose records are known.
func (s *sweeper) indexAgain(ctx context.Context, shard store.Shard, f store.Fence, lost bare, records []any) (repaired int, err error) {
	set := lost.set()
	a := newArgs(4*len(lost.ids)+3, 64*len(lost.ids)+64)
	a.fence(f)
	a.str(lost.indexed)
	none := len(a.ends)
	for i, id := range lost.ids {
		var t store.Task
		if decodeRecord(text(records[i]), &t) == nil && set.In(t.Attributes) != "" {
			a.str(id)
			a.indexed(&t, set)
		}
	}
	if len(a.ends) == none {
		return 0, nil
	}
	v, err := s.swept(ctx, s.lua.sweepAttrs, shard, a)
	return int(number(v)), err
}

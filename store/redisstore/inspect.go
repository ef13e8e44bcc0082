package redisstore

import (
	"context"
	"slices"
	"strconv"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/redisstore/conn"
)

// Get implements store.Reader.
func (s *reader) Get(ctx context.Context, shard store.Shard, ids []string) (store.Stamp, []store.Snapshot, error) {
	snapshots := make([]store.Snapshot, len(ids))
	read := make([]bool, len(ids))
	full := false
	stamp, err := s.batch(ctx, call{
		what: "get", read: true, lua: s.lua.get, shard: shard, parts: 2,
		ids:  func(i int) string { return ids[i] },
		args: idArgs(ids, false),
		take: func(chunk []int, r reply) {
			places, records, cells := list(r.more[0]), list(r.more[1]), list(at(r.more, 2))
			full = len(records) < len(chunk)
			for k, i := range chunk[:min(len(chunk), len(records))] {
				p := parsePlace(list(at(places, k)))
				if records[k] == nil {
					p.kind = 0 // its record is gone: Hold and Sweep make a dead letter of it
				}
				read[i], snapshots[i] = true, snapshot(ids[i], p, text(records[k]), r.now())
				if snapshots[i].State != store.StateUnknown {
					snapshots[i].Tells = store.CellID(text(at(cells, k)))
				}
			}
		},
		full: func() bool { return full },
	}, len(ids))
	if err != nil {
		return store.Stamp{}, nil, err
	}
	if n := slices.Index(read, false); n >= 0 {
		snapshots = snapshots[:n]
	}
	return stamp, snapshots, nil
}

// snapshot puts together what the keys say about a task. Of a record that cannot
// be read it shows what is known without it.
func snapshot(id string, p place, record string, now store.Millis) store.Snapshot {
	t := store.Snapshot{Task: store.Task{ID: id}, State: p.state(now)}
	if t.State == store.StateUnknown {
		return t
	}
	_ = decodeRecord(record, &t.Task) // Hold and Sweep deal with what cannot be read
	t.Due, t.Attempt, t.LastError = p.note.due, p.note.attempt, p.note.lastError
	switch p.kind {
	case store.KindPending:
		t.Due = p.time()
	case store.KindRunning:
		h, _ := decodeHold(p.detail)
		t.Due, t.Attempt = h.due, h.Attempt
		t.Token, t.Deadline, t.Worker = h.Token, h.Deadline, h.Worker
		t.Node, t.Started, t.Cancelled = h.Node, h.Started, h.Cancelled
	case store.KindDead:
		t.Reason, t.Finished = p.note.reason, p.time()
	case store.KindDone:
		t.Token, t.Finished = p.note.token, p.time()
	}
	return t
}

// Window implements store.Reader.
func (s *reader) Window(ctx context.Context, shard store.Shard, w store.WindowQuery) (store.Stamp, []store.Entry, error) {
	if err := s.enter(ctx); err != nil {
		return store.Stamp{}, nil, err
	}
	keys := s.keys(shard)
	read := func(after store.Entry, limit int) (reply, []store.Entry, error) {
		if w.Lane != nil {
			return s.lanePage(ctx, keys, w, after, limit)
		}
		return s.page(ctx, keys.pick(ownerKey, tasksKey, traitsKey), after, strconv.FormatInt(int64(w.To), 10), limit)
	}
	var stamp store.Stamp
	var entries []store.Entry
	after := w.After
	for first := true; first || len(entries) < w.Limit; first = false {
		want := min(w.Limit-len(entries), maxItems)
		r, page, err := read(after, want)
		if err != nil {
			return store.Stamp{}, nil, err
		}
		if first {
			stamp = r.Stamp // what came after this one may be missing
		}
		entries = append(entries, page...)
		if len(page) < want {
			break
		}
		after = page[len(page)-1]
	}
	return stamp, entries, nil
}

// page returns entries of an ordered set behind a position, up to a score.
func (s *reader) page(ctx context.Context, keys []string, after store.Entry, to string, limit int) (reply, []store.Entry, error) {
	a := newArgs(4, 64)
	if after.ID == "" && after.Due == 0 {
		a.str("")
		a.str("")
	} else {
		a.int(int64(after.Due))
		a.id(after.ID)
	}
	a.str(to)
	a.int(int64(max(limit, 0)))
	v, err := s.conn.Run(ctx, s.lua.window, keys, a.values())
	if err != nil {
		return reply{}, nil, conn.ReadError("window", err)
	}
	return parseEntries(v)
}

// Running implements store.Reader.
func (s *reader) Running(ctx context.Context, shard store.Shard, cursor string, limit int) ([]store.Running, string, error) {
	if err := s.enter(ctx); err != nil {
		return nil, "", err
	}
	fields, next, err := s.scan(ctx, s.keys(shard)[runningKey], cursor, limit)
	if err != nil {
		return nil, "", err
	}
	holds := make([]store.Running, 0, len(fields))
	for _, f := range fields {
		if h, err := decodeHold(f.value); err == nil { // Sweep deals with the others
			h.ID = parseID(f.name)
			holds = append(holds, h.Running)
		}
	}
	return holds, next, nil
}

// Stats implements store.Reader.
func (s *reader) Stats(ctx context.Context, shards []store.Shard) ([]store.Stats, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	if len(shards) == 0 {
		return nil, nil
	}
	keys, servers := make([][]string, len(shards)), make([]uint64, len(shards))
	for i, shard := range shards {
		servers[i] = s.conn.Server(ctx, s.keys(shard)[ownerKey])
		keys[i] = s.keys(shard).pick(ownerKey, tasksKey, runningKey, dlqKey, doneKey, looksKey, logKey, cellsKey, partsKey, outKey)
	}
	replies, err := s.conn.RunEach(ctx, s.lua.stats, keys, guard)
	if err != nil {
		return nil, conn.ReadError("stats", err)
	}
	stats := make([]store.Stats, len(shards))
	for i, v := range replies {
		r, err := parseReply(v, 14)
		if err != nil {
			return nil, conn.ReadError("stats", err)
		}
		epoch, _ := strconv.ParseInt(text(r.more[6]), 10, 64)
		oldest, _ := parseMillis(text(r.more[7]))
		stats[i] = store.Stats{
			Stamp: r.Stamp, Pending: number(r.more[0]), Ready: number(r.more[1]), Running: number(r.more[2]),
			Dead: number(r.more[3]), Done: number(r.more[4]), Owner: text(r.more[5]), Epoch: epoch, OldestMs: oldest,
			Keys: number(r.more[8]) > 0, Index: parseIndexState(text(r.more[9])), Logged: number(r.more[10]) > 0,
			Life: parseShardLife(text(r.more[11])), Cells: number(r.more[12]), Parcels: number(r.more[13]),
		}
		stats[i].Server = servers[i]
	}
	return stats, nil
}

package redisstore

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/record"
	"github.com/ddq-io/ddq/store/redisstore/conn"
)

// A member of the index is the name of an attribute and its value, as record.AppendIndexName
// and AppendIndexValue write them, and the stored form of the id. Scripts know this too, in
// lua/attrs.lua.

// word adds the set that the tasks of a chunk all speak of, and the attributes of each that
// are indexed: see lua/put_attrs.lua.
func (a *args) word(tasks []*store.Task, chunk []int) { a.wordOf(spokenBy(tasks, chunk), tasks, chunk) }

// wordOf is word, with the set of more tasks than those.
func (a *args) wordOf(set store.IndexSet, tasks []*store.Task, chunk []int) {
	start := len(a.buf)
	a.buf = append(binary.BigEndian.AppendUint16(a.buf, uint16(len(set))), set...)
	said := set != ""
	for k, i := range chunk {
		t := tasks[i]
		if t.Indexed == "" {
			continue
		}
		header := len(a.buf)
		a.buf = append(a.buf, 0, 0, 0, 0, 0, 0)
		a.buf = record.AppendIndexed(a.buf, t.Indexed.Of(t.Attributes))
		size := len(a.buf) - header - 6
		if size == 0 {
			a.buf = a.buf[:header]
			continue
		}
		said = true
		binary.BigEndian.PutUint16(a.buf[header:], uint16(k+1))
		binary.BigEndian.PutUint32(a.buf[header+2:], uint32(size))
	}
	if !said {
		a.buf = a.buf[:start]
	}
	a.end()
}

// indexed adds what tells whether a task is still what it was, and its attributes that are
// in a set.
func (a *args) indexed(t *store.Task, set store.IndexSet) {
	a.buf = binary.BigEndian.AppendUint64(a.buf, t.Fingerprint)
	a.end()
	a.int(t.Edits)
	a.buf = record.AppendIndexed(a.buf, set.Of(t.Attributes))
	a.end()
}

func spokenBy(tasks []*store.Task, chunk []int) store.IndexSet {
	set := tasks[chunk[0]].Indexed
	for _, i := range chunk {
		set = set.And(tasks[i].Indexed)
	}
	return set
}

// spoken is the set that all of some tasks speak of.
func spoken(tasks []*store.Task) store.IndexSet {
	set := tasks[0].Indexed
	for _, t := range tasks {
		set = set.And(t.Indexed)
	}
	return set
}

// Lookup implements store.Index.
func (s *index) Lookup(ctx context.Context, shard store.Shard, q store.IndexQuery) ([]store.IndexEntry, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	from, to := record.IndexRange(nil, &q, appendID)
	name := string(record.AppendIndexName(nil, q.Name))
	var entries []store.IndexEntry
	for {
		want := max(q.Limit-len(entries), 0)
		v, err := s.conn.Run(ctx, s.lua.lookup, s.keys(shard).pick(ownerKey, indexKey), []any{name, from, to, want})
		if err != nil {
			return nil, conn.ReadError("lookup", err)
		}
		if number(v) == -3 {
			return nil, fmt.Errorf("lookup: %w", store.ErrNotIndexed)
		}
		members := list(v)
		for _, member := range members {
			if _, e, id, ok := record.CutIndexEntry([]byte(text(member))); ok { // Sweep removes the others, and more may be behind them
				e.ID = parseID(string(id))
				entries = append(entries, e)
			}
		}
		if len(members) < want || len(entries) >= q.Limit {
			return entries, nil
		}
		from = append([]byte(text(members[len(members)-1])), 0)
	}
}

// Reindex implements store.Index. A cursor is the token of the walk and the cursor of
// Redis in the hash of tasks.
func (s *index) Reindex(ctx context.Context, shard store.Shard, set store.IndexSet, cursor string, limit int) (string, error) {
	if err := s.enter(ctx); err != nil {
		return "", err
	}
	walk, position := store.NewToken(), ""
	if cursor == "" {
		done, err := s.reindex(ctx, shard, set, walk, "b", nil)
		if done || err != nil {
			return "", err
		}
	} else {
		token, rest, found := strings.Cut(cursor, ":")
		b, err := hex.DecodeString(token)
		if err != nil || len(b) != len(walk) || !found {
			return "", fmt.Errorf("%w: %q", store.ErrBadCursor, cursor)
		}
		copy(walk[:], b)
		position = rest
	}
	fields, next, err := s.scanBytes(ctx, s.keys(shard)[dataKey], position, limit, true)
	if err != nil {
		return "", err
	}
	mode := ""
	if next == "" {
		mode = "e"
	}
	if _, err := s.reindex(ctx, shard, set, walk, mode, fields); err != nil || next == "" {
		return "", err
	}
	return hex.EncodeToString(walk[:]) + ":" + next, nil
}

// reindex indexes tasks that still are as they were read, and reports whether there is
// nothing to do.
func (s *index) reindex(ctx context.Context, shard store.Shard, set store.IndexSet, walk store.Token, mode string, fields []field) (done bool, err error) {
	for start := 0; start == 0 || start < len(fields); start += maxItems {
		part := fields[start:min(start+maxItems, len(fields))]
		a := newArgs(4*len(part)+3, 64*len(part)+64)
		a.str(string(set))
		a.tok(walk)
		if start+maxItems < len(fields) {
			a.str("")
		} else {
			a.str(mode)
		}
		for _, f := range part {
			var t store.Task
			if decodeRecord(f.value, &t) != nil {
				continue // what it says is not known
			}
			a.str(f.name)
			a.indexed(&t, set)
		}
		v, err := s.conn.Run(ctx, s.lua.reindex, s.keys(shard).of(s.lua.reindex), a.values())
		if err != nil {
			return false, conn.WriteError("reindex", err)
		}
		if number(v) == -3 {
			return false, fmt.Errorf("reindex: %w", store.ErrReindexed)
		}
		done = number(v) == 1
	}
	return done, nil
}

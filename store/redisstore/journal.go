package redisstore

import (
	"context"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/record"
	"github.com/ddq-io/ddq/store/redisstore/conn"
)

// Checkpoint implements store.Writer.
func (s *writer) Checkpoint(ctx context.Context, shard store.Shard, checkpoints []store.Checkpoint) (store.Stamp, []store.Status, error) {
	results := make([]store.Status, len(checkpoints))
	stamp, err := s.batch(ctx, call{
		what: "checkpoint", lua: s.lua.checkpoint, shard: shard, parts: 1,
		ids:   func(i int) string { return checkpoints[i].ID },
		sizes: func(i int) int { return overhead + checkpoints[i].Size() },
		args: func(chunk []int, _ count) (*args, error) {
			a := newArgs(5*len(chunk), 96*len(chunk))
			for _, i := range chunk {
				c := &checkpoints[i]
				a.id(c.ID)
				a.tok(c.Token)
				a.str(c.Name)
				a.flag(c.Encrypted)
				a.buf = append(a.buf, c.Value...)
				a.end()
			}
			return a, nil
		},
		take: func(chunk []int, r reply) { takeStatuses(results, chunk, r) },
	}, len(checkpoints))
	if err != nil {
		return store.Stamp{}, nil, err
	}
	return stamp, results, nil
}

// markJournal is the first byte of an entry of tells whose task has a journal, and tellsHead
// what there is before the cell then. No cell begins with that byte.
const (
	markJournal = 0
	tellsHead   = 5
)

// parseTells reads an entry of tells: the cell that its task tells, and whether it has a journal.
func parseTells(s string) (cell store.CellID, journal bool) {
	if len(s) >= tellsHead && s[0] == markJournal {
		return store.CellID(s[tellsHead:]), true
	}
	return store.CellID(s), false
}

// journalMark is the first byte of fields of tells that are journals; behind it are the
// length of an id, and the id.
const journalMark = '\xff'

// tellsID is the stored id of the task that a field of tells is of.
func tellsID(field string) string {
	if len(field) < 2 || field[0] != journalMark || len(field) < 2+int(field[1]) {
		return field
	}
	return field[2 : 2+int(field[1])]
}

// tasksOfTells are the tasks, by stored id, that fields of tells are of, each once.
func tasksOfTells(fields []string) (ids []string) {
	seen := make(map[string]bool, len(fields))
	for _, field := range fields {
		if id := tellsID(field); !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	return ids
}

// readJournals reads the journals of tasks that were held, by position. The holds stand, so
// when it fails the outcome of the call is not known: the same call returns them again.
func (s *owner) readJournals(ctx context.Context, shard store.Shard, results []store.HoldResult, held []int) error {
	if len(held) == 0 {
		return nil
	}
	a := newArgs(len(held), 40*len(held))
	for _, i := range held {
		a.id(results[i].Task.ID)
	}
	v, err := s.conn.Run(ctx, s.lua.journals, s.keys(shard).pick(tellsKey), a.values())
	if err != nil {
		return conn.AfterPart(conn.ReadError("hold", err))
	}
	all := list(v)
	for k, i := range held {
		results[i].Task.Journal = parseJournal(list(at(all, k)))
	}
	return nil
}

// Journal implements store.Reader.
func (s *reader) Journal(ctx context.Context, shard store.Shard, id string) ([]store.JournalEntry, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	a := newArgs(1, 40)
	a.id(id)
	v, err := s.conn.Run(ctx, s.lua.journals, s.keys(shard).pick(tellsKey), a.values())
	if err != nil {
		return nil, conn.ReadError("journal", err)
	}
	return parseJournal(list(at(list(v), 0))), nil
}

// parseJournal reads what journals.lua says of one task.
func parseJournal(flat []any) (entries []store.JournalEntry) {
	for n := 0; n+1 < len(flat); n += 2 {
		e := store.JournalEntry{Name: text(flat[n])}
		record.DecodeKept([]byte(text(flat[n+1])), &e)
		entries = append(entries, e)
	}
	return entries
}

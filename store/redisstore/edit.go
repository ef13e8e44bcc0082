package redisstore

import (
	"context"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/record"
)

// Edit implements store.Writer.
func (s *writer) Edit(ctx context.Context, shard store.Shard, edits []store.Edit) (store.Stamp, []store.EditResult, error) {
	lua := s.lua.move
	for i := range edits {
		if err := checkDue(edits[i].ID, edits[i].Due); err != nil {
			return store.Stamp{}, nil, err
		}
		if edits[i].Task != nil {
			lua = s.lua.update
		}
	}
	results := make([]store.EditResult, len(edits))
	stamp, err := s.batch(ctx, call{
		what: "edit", lua: lua, shard: shard, parts: 4, pends: true,
		ids:   func(i int) string { return edits[i].ID },
		sizes: func(i int) int { return overhead + payloadOf(&edits[i]) },
		args: func(chunk []int, n count) (*args, error) {
			return editArgs(edits, chunk, n)
		},
		take: func(chunk []int, r reply) {
			versions, dues, traits := list(r.more[0]), list(r.more[1]), list(r.more[2])
			for k, i := range chunk {
				results[i] = store.EditResult{Status: store.OK, Version: number(at(versions, k)), Traits: traitsAt(traits, k)}
				if v := results[i].Version; v < 0 {
					results[i].Version, results[i].Moved = -v, true
				}
				results[i].Due, _ = parseMillis(text(at(dues, k)))
			}
			odd(r.more[3], len(chunk), func(k int, status store.Status, rest []any) {
				results[chunk[k]] = notEdited(status, rest, r.now())
			})
		},
	}, len(edits))
	if err != nil {
		return store.Stamp{}, nil, err
	}
	return stamp, results, nil
}

// notEdited is the result for a task that stayed as it was.
func notEdited(status store.Status, rest []any, now store.Millis) store.EditResult {
	result := store.EditResult{Status: status}
	switch status {
	case store.WrongState:
		result.State = parsePlace(rest).state(now)
	case store.Stale:
		result.Version = number(at(rest, 3))
	}
	return result
}

func payloadOf(e *store.Edit) int {
	if e.Task == nil {
		return 0
	}
	return len(e.Task.Payload)
}

func editArgs(edits []store.Edit, chunk []int, n count) (*args, error) {
	size := 64
	for _, i := range chunk {
		size += overhead + payloadOf(&edits[i])
	}
	a := newArgs(6*len(chunk)+2, size)
	a.int(int64(n))
	a.str(string(spokenByEdits(edits, chunk)))
	for _, i := range chunk {
		e := &edits[i]
		a.id(e.ID)
		a.int(e.Wants())
		switch {
		case e.Due != 0:
			a.int(int64(e.Due))
		case e.Now:
			a.str("now")
		default:
			a.str("")
		}
		if e.Task == nil {
			a.str("")
			a.str("")
			a.str("")
			continue
		}
		next := *e.Task
		next.Edits++
		if err := a.record(&next); err != nil {
			return nil, err
		}
		a.buf = record.AppendTraits(a.buf, next.Traits)
		a.end()
		a.buf = record.AppendIndexed(a.buf, next.Indexed.Of(next.Attributes))
		a.end()
	}
	return a, nil
}

// spokenByEdits is the set that all edits with other contents speak of.
func spokenByEdits(edits []store.Edit, chunk []int) store.IndexSet {
	var tasks []*store.Task
	var all []int
	for _, i := range chunk {
		if t := edits[i].Task; t != nil {
			tasks, all = append(tasks, t), append(all, len(all))
		}
	}
	if len(tasks) == 0 {
		return ""
	}
	return spokenBy(tasks, all)
}

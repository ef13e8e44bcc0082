package redisstore

import (
	"context"
	"fmt"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/record"
	"github.com/ddq-io/ddq/store/redisstore/conn"
)

// maxKeyed is the most tasks with idempotency keys of a script, which looks at each
// key on its own.
const maxKeyed = 200

// AddKeyed implements store.Writer.
func (s *writer) AddKeyed(ctx context.Context, shard store.Shard, tasks []*store.Task) (store.Stamp, []store.AddResult, error) {
	if err := checkDues(tasks); err != nil {
		return store.Stamp{}, nil, err
	}
	results := make([]store.AddResult, len(tasks))
	stamp, err := s.batch(ctx, call{
		what: "add keyed", lua: s.lua.addKeyed, shard: shard, parts: 1, pends: true, adds: true,
		ids:   func(i int) string { return tasks[i].ID },
		sizes: func(i int) int { return max(maxBytes/maxKeyed, overhead+len(tasks[i].Payload)) },
		args: func(chunk []int, n count) (*args, error) {
			a := newArgs(9*len(chunk)+4, taskBytes(tasks, chunk))
			a.int(int64(n))
			a.str(string(spokenBy(tasks, chunk)))
			for _, i := range chunk {
				if err := a.keyed(tasks[i]); err != nil {
					return nil, err
				}
			}
			return a, nil
		},
		take: func(chunk []int, r reply) {
			answers := list(r.more[0])
			for k, i := range chunk {
				results[i] = keyedResult(tasks[i].ID, list(at(answers, k)), r.now())
			}
		},
		left: func(i int) bool { return results[i].Status == store.LeftOut },
	}, len(tasks))
	if err != nil {
		return store.Stamp{}, nil, err
	}
	return stamp, results, nil
}

// keyed adds what add_keyed takes of a task.
func (a *args) keyed(t *store.Task) error {
	key := t.Key
	if key == nil {
		key = &store.Key{}
	}
	a.id(t.ID)
	a.int(int64(t.Due))
	if err := a.record(t); err != nil {
		return err
	}
	if t.Traits != nil {
		a.buf = record.AppendTraits(a.buf, t.Traits)
	}
	a.end()
	a.buf = record.AppendIndexed(a.buf, t.Indexed.Of(t.Attributes))
	a.end()
	a.str(string(t.Tells))
	if t.Key != nil {
		a.str(t.Mark())
	} else {
		a.str("")
	}
	a.wait(key.Window)
	rule := int64(key.OnConflict)
	if key.OnConflict == store.KeyReject && key.SameRepeats {
		rule = keyRejectOthers
	}
	a.int(rule)
	return nil
}

// keyRejectOthers is KeyReject for a task that is its own duplicate when it comes again.
const keyRejectOthers = 3

// keyedResult reads the answer about a task that was asked for under an id.
func keyedResult(asked string, v []any, now store.Millis) store.AddResult {
	r := store.AddResult{Status: store.Status(number(at(v, 0))), ID: asked}
	if r.Status == store.Closed || len(v) < 4 {
		return r
	}
	r.ID = parseID(text(v[1]))
	r.Due, _ = parseMillis(fmt.Sprint(v[2]))
	if status := r.Status; status == store.Passed {
		amend(&r, store.Added, parsePlace(v[3:]), now)
		r.Status = status
		return r
	}
	amend(&r, r.Status, parsePlace(v[3:]), now)
	r.Token = store.Token{}
	return r
}

// TrimKeys implements store.Retention.
func (s *retention) TrimKeys(ctx context.Context, shard store.Shard, limit int) (int, error) {
	if err := s.enter(ctx); err != nil {
		return 0, err
	}
	looked := 0
	for looked < limit {
		want := min(limit-looked, maxItems)
		v, err := s.conn.Run(ctx, s.lua.trimKeys, s.keys(shard).of(s.lua.trimKeys), []any{want})
		if err != nil {
			return looked, conn.WriteError("trim keys", err)
		}
		n := int(number(v))
		looked += n
		if n < want {
			break
		}
	}
	return looked, nil
}

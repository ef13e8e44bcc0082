package redisstore

import (
	"context"
	"fmt"

	"github.com/ddq-io/ddq/store"
)

// Add implements store.Writer.
func (s *writer) Add(ctx context.Context, shard store.Shard, tasks []*store.Task) (store.Stamp, []store.AddResult, error) {
	if err := checkDues(tasks); err != nil {
		return store.Stamp{}, nil, err
	}
	results := make([]store.AddResult, len(tasks))
	stamp, err := s.batch(ctx, call{
		what: "add", lua: s.lua.add, shard: shard, parts: 1, pends: true, adds: true,
		ids:   func(i int) string { return tasks[i].ID },
		sizes: func(i int) int { return overhead + tasks[i].Bytes() },
		args: func(chunk []int, n count) (*args, error) {
			a := newArgs(3*len(chunk)+6, taskBytes(tasks, chunk))
			a.int(int64(n))
			return a, appendTasks(a, tasks, chunk)
		},
		take: func(chunk []int, r reply) {
			for _, i := range chunk {
				results[i] = store.AddResult{Status: store.Added, Due: tasks[i].Due}
			}
			odd(r.more[0], len(chunk), func(k int, status store.Status, rest []any) {
				amend(&results[chunk[k]], status, parsePlace(rest), r.now())
			})
		},
		left: func(i int) bool { return results[i].Status == store.LeftOut },
	}, len(tasks))
	if err != nil {
		return store.Stamp{}, nil, err
	}
	return stamp, results, nil
}

// HoldNew implements store.Owner.
func (s *owner) HoldNew(ctx context.Context, shard store.Shard, f store.Fence, tasks []*store.Task, holds []store.Hold) (store.Stamp, []store.AddResult, error) {
	if len(tasks) != len(holds) {
		return store.Stamp{}, nil, fmt.Errorf("hold new: %d tasks and %d holds", len(tasks), len(holds))
	}
	if err := checkDues(tasks); err != nil {
		return store.Stamp{}, nil, err
	}
	results := make([]store.AddResult, len(tasks))
	request := func(i int) store.Hold {
		h := holds[i]
		h.Ahead = 0
		if tasks[i].Visibility > 0 {
			h.Visibility = tasks[i].Visibility
		}
		return h
	}
	stamp, err := s.batch(ctx, call{
		what: "hold new", lua: s.lua.holdNew, shard: shard, parts: 1, pends: true, adds: true, fence: &f,
		ids:   func(i int) string { return tasks[i].ID },
		sizes: func(i int) int { return overhead + tasks[i].Bytes() },
		args: func(chunk []int, n count) (*args, error) {
			a := newArgs(3*len(chunk)+10, taskBytes(tasks, chunk)+16*len(chunk))
			a.fence(f)
			a.int(int64(n))
			a.runs(chunk, request)
			return a, appendTasks(a, tasks, chunk)
		},
		take: func(chunk []int, r reply) {
			for _, i := range chunk {
				results[i] = store.AddResult{Status: store.Held, Due: tasks[i].Due, Deadline: r.later(request(i).Visibility), Attempt: 1}
			}
			odd(r.more[0], len(chunk), func(k int, status store.Status, rest []any) {
				amend(&results[chunk[k]], status, parsePlace(rest), r.now())
			})
		},
		left: func(i int) bool { return results[i].Status == store.LeftOut },
	}, len(tasks))
	if err != nil {
		return store.Stamp{}, nil, err
	}
	return stamp, results, nil
}

// amend makes r, the result of a task that went as expected, that of one that
// did not; was is where a task of its id was before.
func amend(r *store.AddResult, status store.Status, was place, now store.Millis) {
	r.Status = status
	if status != store.Held {
		r.Deadline, r.Attempt = 0, 0
	}
	if status == store.Held || status == store.Added {
		if was.kind == store.KindDone || was.kind == store.KindDead {
			r.Replaced = was.state(now)
		}
		return
	}
	r.State = was.state(now)
	switch was.kind {
	case store.KindPending:
		r.Due = was.time()
	case store.KindRunning:
		if h, err := decodeHold(was.detail); err == nil {
			r.Due = h.due
			if status == store.Duplicate {
				r.Token = h.Token
			}
		}
	}
}

func taskBytes(tasks []*store.Task, chunk []int) (n int) {
	for _, i := range chunk {
		n += overhead + tasks[i].Bytes()
	}
	return n
}

func checkDues(tasks []*store.Task) error {
	for _, t := range tasks {
		if err := checkDue(t.ID, t.Due); err != nil {
			return err
		}
	}
	return nil
}

// checkDue refuses times that a sorted set would not keep exactly.
func checkDue(id string, due store.Millis) error {
	if due > maxScore || due < -maxScore {
		return fmt.Errorf("task %q: due time %d is out of range", id, due)
	}
	return nil
}

// appendTasks adds the indexed attributes, the cells that they tell and the traits of those
// tasks that have some, and id, due time and record of each.
func appendTasks(a *args, tasks []*store.Task, chunk []int) error {
	a.word(tasks, chunk)
	a.tells(tasks, chunk)
	a.traits(tasks, chunk)
	for _, i := range chunk {
		t := tasks[i]
		a.id(t.ID)
		a.int(int64(t.Due))
		if err := a.newRecord(t); err != nil {
			return err
		}
	}
	return nil
}

package redisstore

import (
	"context"

	"github.com/ddq-io/ddq/store"
)

// Hold implements store.Owner.
func (s *owner) Hold(ctx context.Context, shard store.Shard, f store.Fence, holds []store.Hold) (store.Stamp, []store.HoldResult, error) {
	results := make([]store.HoldResult, len(holds))
	for i := range results {
		results[i].Status = store.LeftOut
	}
	var corrupt []int // held, but their body cannot be read
	var resumed []int // held, with a journal
	full := false
	stamp, err := s.batch(ctx, call{
		what: "hold", lua: s.lua.hold, shard: shard, parts: 3, fence: &f,
		ids: func(i int) string { return holds[i].ID },
		args: func(chunk []int, _ count) (*args, error) {
			a := newArgs(len(chunk)+8, 64*len(chunk)+64)
			a.fence(f)
			a.runs(chunk, func(i int) store.Hold { return holds[i] })
			for _, i := range chunk {
				a.id(holds[i].ID)
			}
			return a, nil
		},
		take: func(chunk []int, r reply) {
			bad, journals := takeHeld(results, holds, chunk, r)
			corrupt, resumed = append(corrupt, bad...), append(resumed, journals...)
			full = results[chunk[len(chunk)-1]].Status == store.LeftOut
		},
		full: func() bool { return full },
	}, len(holds))
	if err != nil {
		return store.Stamp{}, nil, err
	}
	if len(corrupt) > 0 {
		s.bury(ctx, shard, holds, corrupt)
	}
	if err := s.readJournals(ctx, shard, results, resumed); err != nil {
		return store.Stamp{}, nil, err
	}
	return stamp, results, nil
}

// takeHeld reads the reply to a hold of a chunk, which may be about its first tasks
// only, and returns the positions of tasks that are held but cannot be read, and of those
// that have a journal.
func takeHeld(results []store.HoldResult, holds []store.Hold, chunk []int, r reply) (corrupt, journals []int) {
	dues, records, cells := texts(r.more[0]), list(r.more[1]), list(at(r.more, 3))
	chunk = chunk[:min(len(chunk), len(records))]
	tasks := make([]store.Task, len(chunk))
	for k, i := range chunk {
		cell, _ := parseTells(text(at(cells, k)))
		tasks[k] = store.Task{ID: holds[i].ID, Attempt: 1, Tells: cell}
		results[i] = store.HoldResult{Status: store.OK}
		if k < len(dues) {
			results[i].Due, _ = parseMillis(dues[k])
		}
	}
	odd(r.more[2], len(chunk), func(k int, status store.Status, rest []any) {
		result := &results[chunk[k]]
		result.Status = status
		switch status {
		case store.OK:
			h, err := decodeHold(text(at(rest, 0)))
			if err != nil {
				return
			}
			result.Due, result.Deadline = h.due, h.Deadline
			tasks[k].Attempt, tasks[k].LastError = h.Attempt, decodeNote(text(at(rest, 1))).lastError
		case store.Behind:
			result.Head, result.Due = parseID(text(at(rest, 0))), 0
			if due := at(rest, 1); due != nil {
				result.Due, _ = parseMillis(text(due))
			}
		case store.NotDue:
		default:
			result.Due = 0
		}
	})
	for k, i := range chunk {
		result, t := &results[i], &tasks[k]
		if result.Status != store.OK {
			continue
		}
		if err := decodeRecord(text(at(records, k)), t); err != nil {
			*result = store.HoldResult{Status: store.Corrupt}
			corrupt = append(corrupt, i)
			continue
		}
		t.Due, result.Task = result.Due, t
		if _, has := parseTells(text(at(cells, k))); has {
			journals = append(journals, i)
		}
		if result.Deadline == 0 {
			result.Deadline = bounded(max(r.later(0), result.Due).Add(max(0, holds[i].Visibility)), holds[i].Until)
		}
	}
	return corrupt, journals
}

// bury dead-letters tasks that were held and turned out to be unreadable. Where
// that fails they stay held until their deadline, and come here again.
func (s *owner) bury(ctx context.Context, shard store.Shard, holds []store.Hold, corrupt []int) {
	nacks := make([]store.Nack, len(corrupt))
	for k, i := range corrupt {
		nacks[k] = store.Nack{ID: holds[i].ID, Token: holds[i].Token, Reason: store.ReasonCorrupt, Uncount: true}
	}
	if _, _, err := s.endHolds(ctx, "nack", shard, nil, nacks); err != nil {
		s.log.Warn("unreadable tasks stay held until their deadline", "topic", shard.Topic, "shard", shard.N, "err", err)
		return
	}
	s.log.Warn("unreadable tasks were dead-lettered", "topic", shard.Topic, "shard", shard.N, "tasks", len(corrupt))
}

package redisstore

import (
	"context"
	"time"

	"github.com/ddq-io/ddq/store"
)

// Ack implements store.Writer.
func (s *writer) Ack(ctx context.Context, shard store.Shard, acks []store.Ack, retention time.Duration) (store.Stamp, []store.Status, error) {
	results := make([]store.Status, len(acks))
	stamp, err := s.batch(ctx, call{
		what: "ack", lua: s.lua.ack, shard: shard, parts: 1,
		ids:   func(i int) string { return acks[i].ID },
		sizes: func(i int) int { return len(acks[i].Result) + len(acks[i].Say) },
		args:  func(chunk []int, _ count) (*args, error) { return ackArgs(acks, chunk, retention), nil },
		take:  func(chunk []int, r reply) { takeStatuses(results, chunk, r) },
		left:  func(i int) bool { return results[i] == store.LeftOut },
	}, len(acks))
	if err != nil {
		return store.Stamp{}, nil, err
	}
	return stamp, results, nil
}

func ackArgs(acks []store.Ack, chunk []int, retention time.Duration) *args {
	a := newArgs(len(chunk)+2, 64*len(chunk)+16)
	a.wait(retention)
	for _, i := range chunk {
		a.buf = append(a.buf, acks[i].Token[:]...)
	}
	a.end()
	for _, i := range chunk {
		a.id(acks[i].ID)
	}
	for k, i := range chunk {
		if len(acks[i].Result) > 0 {
			a.int(int64(k + 1))
			a.buf = append(a.buf, acks[i].Result...)
			a.end()
		}
		if len(acks[i].Say) > 0 {
			a.int(-int64(k + 1))
			a.buf = append(a.buf, acks[i].Say...)
			a.end()
		}
		if acks[i].Trace != (store.TraceID{}) && retention > 0 {
			a.int(int64(len(chunk) + k + 1))
			a.trace(acks[i].Trace)
		}
	}
	return a
}

// takeStatuses reads a reply that says no more than a status about odd items.
func takeStatuses(results []store.Status, chunk []int, r reply) {
	for _, i := range chunk {
		results[i] = store.OK
	}
	odd(r.more[0], len(chunk), func(k int, status store.Status, _ []any) { results[chunk[k]] = status })
}

// Nack implements store.Writer.
func (s *writer) Nack(ctx context.Context, shard store.Shard, nacks []store.Nack) (store.Stamp, []store.NackResult, error) {
	return s.endHolds(ctx, "nack", shard, nil, nacks)
}

// Recover implements store.Owner.
func (s *owner) Recover(ctx context.Context, shard store.Shard, f store.Fence, nacks []store.Nack) (store.Stamp, []store.NackResult, error) {
	return s.endHolds(ctx, "recover", shard, &f, nacks)
}

func (s *core) endHolds(ctx context.Context, what string, shard store.Shard, f *store.Fence, nacks []store.Nack) (store.Stamp, []store.NackResult, error) {
	results := make([]store.NackResult, len(nacks))
	stamp, err := s.batch(ctx, call{
		what: what, lua: s.lua.nack, shard: shard, parts: 3, pends: true, fence: f,
		ids:   func(i int) string { return nacks[i].ID },
		sizes: func(i int) int { return overhead + len(nacks[i].Error) + len(nacks[i].Say) },
		args:  func(chunk []int, n count) (*args, error) { return nackArgs(f, nacks, chunk, n), nil },
		take: func(chunk []int, r reply) {
			attempts, traits := list(r.more[0]), list(r.more[1])
			for k, i := range chunk {
				results[i] = store.NackResult{Status: store.OK, Attempt: int(number(at(attempts, k)))}
				if nacks[i].Reason == store.ReasonNone {
					results[i].Due, results[i].Traits = r.due(nacks[i].Delay), traitsAt(traits, k)
				}
			}
			odd(r.more[2], len(chunk), func(k int, status store.Status, rest []any) {
				if status == store.OK {
					if due := at(rest, 0); due != nil { // it was held ahead of it
						results[chunk[k]].Due = store.Millis(number(due))
						return
					}
					results[chunk[k]].Due, results[chunk[k]].Traits = 0, nil // dead, as its cancellation was asked for
					return
				}
				results[chunk[k]] = notEnded(status, rest, r.now())
			})
		},
	}, len(nacks))
	if err != nil {
		return store.Stamp{}, nil, err
	}
	return stamp, results, nil
}

// notEnded is the result for a task that stayed where it was.
func notEnded(status store.Status, rest []any, now store.Millis) store.NackResult {
	result := store.NackResult{Status: status}
	switch status {
	case store.WrongState:
		result.State = parsePlace(rest).state(now)
	case store.NotDue:
		result.Deadline = store.Millis(number(at(rest, 2)))
	}
	return result
}

func nackArgs(f *store.Fence, nacks []store.Nack, chunk []int, n count) *args {
	a := newArgs(9*len(chunk)+3, 128*len(chunk)+64)
	if f != nil {
		a.fence(*f)
	} else {
		a.str("")
		a.str("")
	}
	a.int(int64(n))
	for _, i := range chunk {
		nack := &nacks[i]
		a.id(nack.ID)
		a.tok(nack.Token)
		a.int(int64(nack.Reason))
		if nack.Delay > 0 {
			a.wait(nack.Delay)
		} else {
			a.str("-1")
		}
		a.int(int64(bit(nack.Uncount)))
		a.int(int64(nack.Outcome))
		a.str(nack.Error)
		a.trace(nack.Trace)
		a.str(string(nack.Say))
	}
	return a
}

// Extend implements store.Writer.
func (s *writer) Extend(ctx context.Context, shard store.Shard, extends []store.Extend) (store.Stamp, []store.ExtendResult, error) {
	results := make([]store.ExtendResult, len(extends))
	stamp, err := s.batch(ctx, call{
		what: "extend", lua: s.lua.extend, shard: shard, parts: 1,
		ids: func(i int) string { return extends[i].ID },
		args: func(chunk []int, _ count) (*args, error) {
			a := newArgs(3*len(chunk), 80*len(chunk))
			for _, i := range chunk {
				a.id(extends[i].ID)
				a.tok(extends[i].Token)
				a.lasting(&store.Hold{Visibility: extends[i].Visibility, Until: extends[i].Until})
			}
			return a, nil
		},
		take: func(chunk []int, r reply) {
			for _, i := range chunk {
				results[i] = store.ExtendResult{Status: store.OK, Deadline: bounded(r.later(extends[i].Visibility), extends[i].Until)}
			}
			odd(r.more[0], len(chunk), func(k int, status store.Status, _ []any) {
				if status == store.OK {
					results[chunk[k]].Cancelled = true
					return
				}
				results[chunk[k]] = store.ExtendResult{Status: status}
			})
		},
	}, len(extends))
	if err != nil {
		return store.Stamp{}, nil, err
	}
	return stamp, results, nil
}

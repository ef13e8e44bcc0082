package store

import (
	"context"
	"fmt"
)

// MaxBodies is about how many bytes of bodies, which are payloads and attributes, one
// call returns, with journals: it stops with the body that reaches it. So one call returns at least one
// body, and less than MaxBodies and that of one more task.
const MaxBodies = 4 << 20

// Bodies counts the bytes of the bodies in an answer.
type Bodies int

// Add counts the body of a task.
func (b *Bodies) Add(t *Task) { *b += Bodies(t.BodySize()) }

// Full reports whether the answer takes no more bodies.
func (b Bodies) Full() bool { return b >= MaxBodies }

// BodySize is about how many bytes the body of the task has, with its journal.
func (t *Task) BodySize() int {
	n := len(t.Payload) + journalBytes(t.Journal)
	for _, a := range t.Attributes {
		n += len(a.Key) + len(a.Value)
	}
	return n
}

// GetAll returns tasks by id as Get does, all of them, however many calls that takes. Only
// the first of them, as many as Get returns at once, have payloads.
func GetAll(ctx context.Context, r Reader, s Shard, ids []string) (Stamp, []Snapshot, error) {
	stamp, all, err := r.Get(ctx, s, ids)
	for err == nil && len(all) < len(ids) {
		var more []Snapshot
		if stamp, more, err = r.Get(ctx, s, ids[len(all):]); len(more) == 0 && err == nil {
			err = fmt.Errorf("get: no task of %d", len(ids)-len(all))
		}
		for i := range more {
			more[i].Payload = nil
		}
		all = append(all, more...)
	}
	if err != nil {
		return Stamp{}, nil, err
	}
	return stamp, all, nil
}

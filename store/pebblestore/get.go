package pebblestore

import (
	"context"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/record"
)

// taskReader reads, and changes nothing.
type taskReader struct {
	*base
	boot boot
}

// Get returns tasks by id.
func (s *taskReader) Get(ctx context.Context, name store.Shard, ids []string) (store.Stamp, []store.Snapshot, error) {
	snapshots := make([]store.Snapshot, 0, len(ids))
	stamp, err := s.change(ctx, name, access{}, func(t *transaction) (err error) {
		var bodies store.Bodies
		for _, id := range ids {
			if bodies.Full() {
				break
			}
			snap, err := t.snapshot(id)
			if err != nil {
				return err
			}
			snapshots = append(snapshots, snap)
			bodies.Add(&snap.Task)
		}
		return nil
	})
	if err != nil {
		return store.Stamp{}, nil, err
	}
	return stamp, snapshots, nil
}

// snapshot returns a task as it stands. Of one that cannot be read it returns what
// is known of it.
func (t *transaction) snapshot(id string) (store.Snapshot, error) {
	snap := store.Snapshot{Task: store.Task{ID: id}}
	e, f, err := t.find(id)
	if err != nil || f == absent {
		return snap, err
	}
	e.fill(&snap.Task)
	if !e.unreadable {
		if err := record.DecodeBody(e.body, &snap.Task); err != nil {
			snap.Task = store.Task{ID: id}
			e.fill(&snap.Task)
		}
	}
	snap.State, snap.Token = e.stateAt(t.ms), e.token
	snap.Reason, snap.Finished = e.reason, e.finished
	if h := t.sh.holds.get(id); h != nil {
		snap.State, snap.Attempt = store.StateRunning, h.attempt
		snap.Token, snap.Deadline = h.token, h.deadline
		snap.Worker, snap.Node = h.who()
		snap.Started, snap.Cancelled = h.started, h.cancelled
	}
	return snap, nil
}

// History returns what the attempts of tasks left behind.
func (s *taskReader) History(ctx context.Context, name store.Shard, ids []string) ([]store.History, error) {
	all := make([]store.History, len(ids))
	_, err := s.change(ctx, name, access{}, func(t *transaction) (err error) {
		for i, id := range ids {
			if all[i], err = t.history.read(id); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

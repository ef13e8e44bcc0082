package service

import (
	"context"
	"errors"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// moveDead requeues a dead letter of a former shard in another one, because that is where
// the tasks of its ordering key go by now. It is stored there before it is deleted here, so
// when that breaks off it is done when it is asked for again.
func (s *DeadLetters) move(ctx context.Context, ref *actors.Topic, from store.Shard, id string) (store.Status, error) {
	_, found, err := s.store.Get(ctx, from, []string{id})
	if err != nil {
		return 0, err
	}
	if was := found[0].State; was != store.StateDead && was != store.StateExpired {
		return store.NotFound, nil
	}
	task := found[0].Task
	task.Due, task.Expires, task.Attempt, task.LastError = s.node.Clock().Millis(), 0, 0, ""
	for range rerouteTries {
		if err = s.addElsewhere(ctx, ref, from, &task); !errors.Is(err, store.ErrSealed) {
			break
		}
		if err := s.node.Topics().RefreshSealed(ctx, from.Topic); err != nil {
			return 0, err
		}
	}
	if err != nil {
		return 0, err
	}
	_, removed, err := s.store.RemoveDead(ctx, from, []string{id})
	if err != nil {
		return 0, err
	}
	return removed[0], nil
}

// addElsewhere stores a task of an ordering key where others of its key are, or else in
// the active shards.
func (s *DeadLetters) addElsewhere(ctx context.Context, ref *actors.Topic, from store.Shard, task *store.Task) error {
	t := ref.Config()
	places := place.Candidates(t, task.ID)
	for _, place := range append(places[1:len(places):len(places)], places[0]) {
		if place == from {
			continue
		}
		ordered := *task
		ordered.Key = nil // it is not looked for: another task may have it
		var stamp store.Stamp
		var results []store.AddResult
		_, err := s.node.Resolve(ctx, func() (err error) {
			if place == places[0] {
				stamp, results, err = s.store.Add(ctx, place.For(t.Life), []*store.Task{task})
			} else {
				stamp, results, err = s.store.AddKeyed(ctx, place.For(t.Life), []*store.Task{&ordered})
			}
			return err
		})
		switch {
		case err != nil:
			return err
		case results[0].Status == store.Closed:
			continue
		case results[0].Status == store.Added:
			ref.Pending(place.N, stamp.Seq, store.Entry{ID: task.ID, Due: task.Due, Traits: task.Traits})
		}
		return nil
	}
	return store.ErrSealed
}

// givenAnew looks whether the id of a dead letter of a former shard, which was requeued just
// now, has a new task in the active shards. That one stands, and the dead letter goes. Who adds
// a task looks back at the former shard in the same way, so one of the two sees the other.
func (s *DeadLetters) givenAnew(ctx context.Context, ref *actors.Topic, from store.Shard, id string) (bool, error) {
	active := place.Candidates(ref.Config(), id)[0]
	if active == from {
		return false, nil
	}
	_, found, err := s.store.Get(ctx, active, []string{id})
	if err != nil {
		return false, err
	}
	if at := found[0].State; !at.Pending() && at != store.StateRunning {
		return false, nil
	}
	_, _, err = s.store.Remove(ctx, from, []string{id})
	return true, err
}

package service

import (
	"context"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/entity/message"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// move requeues a dead letter of a former shard in another one, because that is where the tasks of its ordering
// key go by now. One commit deletes it here and sends it to its topic: of two who requeue it at once only one sends it,
// and it is a dead letter or on its way, whatever fails. It comes without its idempotency key, which another task may have.
func (s *DeadLetters) move(ctx context.Context, ref *actors.Topic, from store.Shard, id string) (store.Status, error) {
	_, found, err := s.store.Get(ctx, from, []string{id})
	if err != nil {
		return 0, err
	}
	if was := found[0].State; was != store.StateDead && was != store.StateExpired {
		return store.NotFound, nil
	}
	task := found[0].Task
	task.Due, task.Expires, task.Attempt, task.LastError, task.Key = s.node.Clock().Millis(), 0, 0, "", nil
	parcel, err := message.Parcel(from.Topic, &task)
	if err != nil {
		return 0, err
	}
	moves := []store.Commit{{Removes: []store.Remove{{ID: id, Dead: true}}, Send: []store.Message{parcel}}}
	var results []store.CommitResult
	repeated, err := s.node.Resolve(ctx, func() (err error) {
		_, results, err = s.node.Cells().Commit(ctx, from.For(ref.Config().Life), nil, moves)
		return err
	})
	switch {
	case err != nil:
		return 0, err
	case results[0].Status == store.OK, repeated: // the first try did it, or somebody else meanwhile
		ref.MessagesSent(from.N)
		return store.OK, nil
	case results[0].Status == store.WrongState:
		return store.NotFound, nil
	}
	return results[0].Status, nil
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
	_, _, err = s.store.Remove(ctx, from, store.Removals(id))
	return true, err
}

package service

import (
	"context"
	"errors"
	"fmt"

	"github.com/ddq-io/ddq/actors/entity/message"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/service/audiences"
	"github.com/ddq-io/ddq/api/service/schedules"
	"github.com/ddq-io/ddq/api/service/workflows"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// Delete deletes a topic, and with force what it has: tasks, schedules, workflows, and runs of
// audiences, which are cancelled. Otherwise it must be empty.
func (s *Topics) Delete(ctx context.Context, name string, force bool) error {
	status, err := s.Describe(ctx, name)
	if err != nil {
		return err
	}
	if !force {
		if err := s.checkEmpty(ctx, &status); err != nil {
			return problem.AsError(err)
		}
	}
	unlock, err := s.node.Topics().Lock(ctx, name)
	if err != nil {
		return problem.AsError(err)
	}
	defer unlock()
	s.node.Topics().CloseLocked(ctx, name)
	runs, err := s.audiences.In(ctx, everyShard(&status.Topic))
	if err != nil {
		return problem.AsError(err)
	}
	begun, err := s.erase(ctx, &status.Topic, runs)
	if begun && (errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrClosed)) {
		return problem.AsError(fmt.Errorf("%w: %s", store.ErrUnknown, err.Error())) // whose kind is no longer what it says
	}
	return problem.AsError(err)
}

// erase deletes a topic and what is in it, and cancels runs of audiences. It reports whether something is deleted.
func (s *Topics) erase(ctx context.Context, t *store.Topic, runs []audiences.OpenRun) (begun bool, err error) {
	if begun, err = s.dropShards(ctx, t); err != nil {
		return begun, err
	}
	if err := s.audiences.Lose(ctx, runs, store.Millis(s.node.Clock().Now().UnixMilli())); err != nil {
		return begun, err
	}
	if err := s.store.DeleteTopic(ctx, t.Name, t.Life); err != nil {
		return begun, err
	}
	s.node.Meter().Forget(t.Name)
	_, err = s.dropShards(ctx, t)
	return begun, err
}

// keptLists are those of cells that a topic is not deleted with unless that is forced.
var keptLists = []struct{ list, has string }{
	{schedules.List, "schedules"},
	{workflows.OpenList, "open workflows"},
	{message.List, "undeliverable tasks"},
}

// checkEmpty refuses a topic that has something.
func (s *Topics) checkEmpty(ctx context.Context, t *TopicStatus) error {
	if d := t.Depth; d.Scheduled+d.Ready+d.Running+d.Dead > 0 {
		return notEmpty("tasks")
	}
	if s.cells == nil {
		return nil
	}
	for _, shard := range place.Shards(&t.Topic) {
		if err := s.checkCells(ctx, shard); err != nil {
			return err
		}
	}
	return nil
}

// checkCells refuses a shard that has cells which are kept, or parcels that bring something. It looks in the
// order in which a schedule comes and goes that moves behind a reshard, and goes to later shards.
func (s *Topics) checkCells(ctx context.Context, shard store.Shard) error {
	if err := s.checkInBox(ctx, shard); err != nil {
		return err
	}
	for _, kept := range keptLists {
		cells, err := s.cells.Listed(ctx, shard, kept.list, store.Wake{}, 1)
		switch {
		case err != nil:
			return err
		case len(cells) > 0:
			return notEmpty(kept.has)
		}
	}
	queues, err := s.cells.Queues(ctx, shard, store.Queue{}, 1)
	if err != nil {
		return err
	}
	waiting, err := s.cells.Parcels(ctx, shard, store.OutBox, 0, 1)
	switch {
	case err != nil:
		return err
	case len(queues)+len(waiting) > 0:
		return notEmpty("tasks on their way to other topics")
	}
	return nil
}

// inBoxPage is how many parcels are read at a time.
const inBoxPage = 500

// checkInBox refuses a shard in whose in-box a schedule arrives, or the end of a task that a workflow of another
// topic waits for. What else is there is for cells of the shard, or for none.
func (s *Topics) checkInBox(ctx context.Context, shard store.Shard) error {
	for after := int64(0); ; {
		parcels, err := s.cells.Parcels(ctx, shard, store.InBox, after, inBoxPage)
		if err != nil || len(parcels) == 0 {
			return err
		}
		for i := range parcels {
			p := &parcels[i]
			switch after = p.Number; {
			case p.To == "":
			case p.To.Kind() == store.CellHome:
				return notEmpty("ends of tasks on their way to other topics")
			case schedules.Arrives(p):
				return notEmpty("schedules")
			}
		}
	}
}

func notEmpty(has string) *problem.Error {
	return &problem.Error{Kind: problem.Precondition, Reason: "TOPIC_NOT_EMPTY", Field: "name", Message: fmt.Sprintf("the topic has %s; force deletes them too", has)}
}

// everyShard are the shards of a topic, also those that went.
func everyShard(t *store.Topic) []store.Shard {
	shards := make([]store.Shard, t.End())
	for n := range shards {
		shards[n] = store.Shard{Topic: t.Name, N: n, Life: t.Life}
	}
	return shards
}

// dropShards deletes what is in a topic that is to be deleted: before its configuration goes,
// so that no topic of its name comes upon it, and what was added meanwhile after that. Shards
// that another topic has by then stay as they are. It reports whether one is deleted.
func (s *Topics) dropShards(ctx context.Context, t *store.Topic) (begun bool, err error) {
	for _, shard := range everyShard(t) {
		if err := s.store.DropShard(ctx, shard); err != nil {
			return begun, err
		}
		begun = true
	}
	return begun, nil
}

package service

import (
	"context"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/service/intake"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

func intakeOf(ref *actors.Topic) *intake.Topic {
	return ref.Companion(func() any { return new(intake.Topic) }).(*intake.Topic)
}

// admission lets the tasks of one request into topics with a backlog cap.
type admission struct {
	node    *actors.Node
	entered map[*actors.Topic]int // tasks that count as in flight until Leave
}

// Enter lets a task into a topic, or refuses it because too many wait there.
func (a *admission) Enter(ctx context.Context, topic *store.Topic) *problem.Error {
	if topic.MaxBacklog == 0 {
		return nil
	}
	ref, err := a.node.Topics().Open(ctx, topic.Name, false)
	if err != nil {
		return err
	}
	for {
		switch intakeOf(ref).Backlog.Take(time.Now(), topic.MaxBacklog) {
		case intake.LetIn:
			if a.entered == nil {
				a.entered = make(map[*actors.Topic]int)
			}
			a.entered[ref]++
			return nil
		case intake.TurnedAway:
			return problem.BacklogFull(topic.Name, topic.MaxBacklog)
		}
		if err := a.look(ctx, ref, topic); err != nil {
			return err
		}
	}
}

// look asks the store what waits in a topic, or waits for who does.
func (a *admission) look(ctx context.Context, ref *actors.Topic, topic *store.Topic) *problem.Error {
	backlog := &intakeOf(ref).Backlog
	mine, over := backlog.Begin()
	if !mine {
		select {
		case <-over:
			return nil
		case <-ctx.Done():
			return problem.FromStore(ctx.Err())
		}
	}
	defer backlog.End()
	stats, err := a.node.CountsOf(ctx, place.Shards(topic))
	if err != nil {
		return problem.FromStore(err)
	}
	waiting := int64(0)
	for i := range stats {
		waiting += stats[i].Pending
	}
	backlog.Seen(time.Now(), int(min(waiting, actors.MaxTasks)), topic.MaxBacklog, len(a.node.Members()))
	return nil
}

// Leave records that the tasks of the request are answered, or that nobody waits for
// their answers.
func (a *admission) Leave() {
	for ref, n := range a.entered {
		intakeOf(ref).Backlog.Leave(n)
	}
}

package service

import (
	"context"
	"sync"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

const (
	backlogGood  = time.Second           // how long a look at the backlog counts
	backlogPause = 10 * time.Millisecond // between two looks
)

// allowance is what this node may still add to a topic with a backlog cap. A look
// counts the tasks that wait in the store, and allows this node its share of the room
// that they leave; until that is used up, or a second has passed, nothing is asked.
// So an enqueue costs no round trip, and all of them together cost at most a hundred
// looks a second. A change of the cap is a look.
//
// One node is exact, but for what nacks, expired holds and requeues bring back: they
// are never refused. With n nodes each has at most the n-th part of the room that it
// saw within the last second. So the topic has never more than its cap and what the
// others were allowed in that second: less than the room that there was, and next to
// nothing once the topic is about full.
type allowance struct {
	mu      sync.Mutex
	left    int           // tasks that may be added without a look; guarded by mu, as all
	most    int           // the cap that the last look was for
	flying  int           // let in, and not answered yet
	until   time.Time     // the last look counts until then
	again   time.Time     // there is no look before that
	looking chan struct{} // closed when the look under way is over; nil: none is
}

// intake is what this node remembers of the enqueues to an open topic.
type intake struct {
	backlog allowance
	smooth  smoother
}

func intakeOf(ref *actors.Topic) *intake {
	return ref.Companion(func() any { return new(intake) }).(*intake)
}

func allowanceOf(ref *actors.Topic) *allowance { return &intakeOf(ref).backlog }

// verdict is what becomes of one more task.
type verdict uint8

const (
	letIn verdict = iota + 1
	turnedAway
	lookFirst
)

// take lets one task in, if that is known to be right for the cap that the topic has now.
func (b *allowance) take(now time.Time, most int) verdict {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.most != most:
		return lookFirst
	case b.left > 0 && now.Before(b.until):
		b.left--
		b.flying++
		return letIn
	case now.Before(b.again):
		return turnedAway
	}
	return lookFirst
}

// leave counts n tasks out that were let in and are answered.
func (b *allowance) leave(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.flying -= n
}

// begin says whether the caller is to look; else it is to wait for who does.
func (b *allowance) begin() (mine bool, over chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.looking == nil {
		b.looking, mine = make(chan struct{}), true
	}
	return mine, b.looking
}

// seen records how many tasks wait, of the most that may, among so many nodes. What
// is still in flight may be among them or not: it counts.
func (b *allowance) seen(now time.Time, waiting int64, most, nodes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	room := most - int(min(waiting, actors.MaxTasks)) - b.flying
	b.left, b.most = max(0, (room+nodes-1)/nodes), most
	b.until, b.again = now.Add(backlogGood), now.Add(backlogPause)
}

// end lets go of those that wait for a look.
func (b *allowance) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.looking)
	b.looking = nil
}

// enter lets a task into a topic, or refuses it because too many wait there.
func (r *router) enter(ctx context.Context, topic *store.Topic) *problem.Error {
	if topic.MaxBacklog == 0 {
		return nil
	}
	ref, err := r.node.Topics().Open(ctx, topic.Name, false)
	if err != nil {
		return err
	}
	for {
		switch allowanceOf(ref).take(time.Now(), topic.MaxBacklog) {
		case letIn:
			if r.entered == nil {
				r.entered = make(map[*actors.Topic]int)
			}
			r.entered[ref]++
			return nil
		case turnedAway:
			return problem.BacklogFull(topic.Name, topic.MaxBacklog)
		}
		if err := r.look(ctx, ref, topic); err != nil {
			return err
		}
	}
}

// look asks the store what waits in a topic, or waits for who does.
func (r *router) look(ctx context.Context, ref *actors.Topic, topic *store.Topic) *problem.Error {
	backlog := allowanceOf(ref)
	mine, over := backlog.begin()
	if !mine {
		select {
		case <-over:
			return nil
		case <-ctx.Done():
			return problem.FromStore(ctx.Err())
		}
	}
	defer backlog.end()
	stats, err := r.node.CountsOf(ctx, place.Shards(topic))
	if err != nil {
		return problem.FromStore(err)
	}
	waiting := int64(0)
	for i := range stats {
		waiting += stats[i].Pending
	}
	backlog.seen(time.Now(), waiting, topic.MaxBacklog, len(members(r.node)))
	return nil
}

// leave records that the tasks of the request are answered, or that nobody waits for
// their answers.
func (r *router) leave() {
	for ref, n := range r.entered {
		allowanceOf(ref).leave(n)
	}
}

package workflows

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ddq-io/ddq/api/client"
	sdk "github.com/ddq-io/ddq/api/worker"
	"github.com/ddq-io/ddq/bench/result"
)

const (
	followRounds  = 3
	followPayload = 200 // bytes
	followApart   = "apart"
)

// followLine is what tasks came to whose handler enqueues another one. Each way has the round of which
// the processor time is the median.
type followLine struct {
	Shape      string       `json:"shape"`
	Store      string       `json:"store"`
	Tasks      int          `json:"tasks"` // of a round, without those that they enqueue
	Ack        *followRound `json:"ack"`   // the next task is enqueued with the ack
	Apart      *followRound `json:"apart"` // by Enqueue, before the ack
	CPUOfApart float64      `json:"cpu_of_apart"`
	Machine    string       `json:"machine"`
}

// followRound is one round of one way.
type followRound struct {
	EndToEndPerS float64      `json:"end_to_end_per_s"` // tasks that were acked, and so was the next
	CPU          result.Roles `json:"cpu_s"`
	CPUPerTask   float64      `json:"cpu_us_per_task"` // of a task together with the next
	Repeat       int          `json:"repeat"`          // handlers that began again, with a higher attempt: legal
	Half         int          `json:"half"`            // tasks without a next one, or with two
}

// violation is what the shape broke; nil when nothing.
func (l *followLine) violation() error {
	if l.Ack.Half+l.Apart.Half == 0 {
		return nil
	}
	return fmt.Errorf("workflows %s: %d tasks without the next, or with two, by their ack; %d apart", l.Shape, l.Ack.Half, l.Apart.Half)
}

// followWay is a way to enqueue the next task of one.
type followWay struct {
	name    string
	enqueue func(ctx context.Context, t *sdk.Task, next client.Task) error
	rounds  []*followRound
	half    int // of all rounds
}

// follow has tasks enqueue one task each, with their ack and apart in turns.
func (s *show) follow(ctx context.Context) (*followLine, error) {
	ack := &followWay{name: "ack", enqueue: func(_ context.Context, t *sdk.Task, next client.Task) error { return t.Enqueue(next) }}
	apart := &followWay{name: followApart, enqueue: func(ctx context.Context, _ *sdk.Task, next client.Task) error {
		_, err := s.client.Enqueue(ctx, next)
		return err
	}}
	for i := range followRounds + 1 { // the first is the warm-up
		for _, way := range []*followWay{ack, apart} {
			if err := s.followRound(ctx, way, i); err != nil {
				return nil, fmt.Errorf("%s: %w", way.name, err)
			}
		}
	}
	line := &followLine{Shape: shapeFollow, Store: s.Store, Tasks: s.Tasks, Ack: ack.median(), Apart: apart.median(), Machine: result.Machine()}
	line.CPUOfApart = result.Round(line.Ack.CPUPerTask/line.Apart.CPUPerTask, 3)
	return line, nil
}

// median is the round with the median of the processor time, with what all rounds broke.
func (w *followWay) median() *followRound {
	slices.SortFunc(w.rounds, func(a, b *followRound) int { return cmp.Compare(a.CPUPerTask, b.CPUPerTask) })
	middle := w.rounds[len(w.rounds)/2]
	middle.Half = w.half
	return middle
}

// followRound has the tasks of a topic enqueue one more each, while they are enqueued. Round 0 is the
// warm-up.
func (s *show) followRound(ctx context.Context, way *followWay, round int) error {
	n := s.Tasks
	if round == 0 {
		n = max(1, n/10)
	}
	topic, books := fmt.Sprintf("follow-%s-%d", way.name, round), newFollowBooks(n, way.name == followApart)
	defer s.work(ctx, topic, s.Workers, func(ctx context.Context, t sdk.Task) error {
		i, next := books.write(&t, time.Now())
		if next {
			return nil
		}
		return way.enqueue(ctx, &t, client.Task{Topic: topic, Payload: stamp(i, true)})
	})()
	begun, before := time.Now(), s.usage()
	if err := s.enqueueAll(ctx, n, func(i int) client.Task { return client.Task{Topic: topic, Payload: stamp(i, false)} }); err != nil {
		return err
	}
	if err := books.wait(ctx); err != nil {
		return err
	}
	r := &followRound{CPU: s.usage().Minus(before)}
	r.CPUPerTask = perUnit(r.CPU, n)
	books.read(r, begun)
	way.half += r.Half
	if round > 0 {
		way.rounds = append(way.rounds, r)
	}
	return nil
}

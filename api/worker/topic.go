package worker

import (
	"context"
	"errors"
	"slices"
	"sync"

	"google.golang.org/grpc"

	"github.com/ddq-io/ddq/api/codec"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// topicWorker takes the tasks of one topic while run runs: it keeps the subscription
// connected, and winds it up. It owns the goroutines of that, and the sessions.
type topicWorker struct {
	sub    *subscription
	rpc    ddqv1.DelayQueueServiceClient
	cfg    *settings
	events *events
	fleet  *fleet // nil unless Direct

	mu       sync.Mutex
	sessions []*session // that speak for the subscription, or begin to; guarded by mu
	over     bool       // ends its last session; guarded by mu
}

// run keeps the subscription until ctx ends or the server refuses it for good,
// and then winds it up.
func (t *topicWorker) run(ctx context.Context) error {
	open, end := context.WithCancel(context.WithoutCancel(ctx))
	var own sync.WaitGroup
	defer func() {
		end()
		own.Wait()
		t.part() // with a session that came after those below
	}()
	own.Go(func() { t.sub.sweepUntil(open.Done()) })
	refused := make(chan error, 1)
	own.Go(func() { refused <- t.stay(open) })

	var err error
	select {
	case <-ctx.Done():
	case err = <-refused:
	}
	left := t.sub.stop()
	if err == nil {
		err = t.sub.flush()
	}
	t.mu.Lock()
	t.over = true
	t.mu.Unlock()
	t.part()
	return errors.Join(err, left)
}

// isOver reports whether the end of a session is meant.
func (t *topicWorker) isOver() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.over
}

// stay keeps the subscription connected until ctx ends. It returns an error when
// the server refuses for good.
func (t *topicWorker) stay(ctx context.Context) error {
	if t.fleet != nil {
		return t.stayDirect(ctx)
	}
	return t.stayConnected(ctx, &place{rpc: t.rpc, moved: func(bool) {}})
}

// handOver makes x speak for the subscription in place of old, if there is one,
// which is listened to for the answers that it still has, and retired.
func (t *topicWorker) handOver(old, x *session) {
	left := old != nil && t.leave(old)
	if left {
		old.hearOut()
		t.sub.reclaim(&old.link, old.broken())
	}
	t.join(x)
	if left {
		old.retire()
	}
}

// dismiss ends x, unless somebody did, without anything lost that it has to say.
func (t *topicWorker) dismiss(x *session) {
	if x == nil || !t.leave(x) {
		return
	}
	x.hearOut()
	t.sub.reclaim(&x.link, x.broken())
	x.retire()
}

// part ends every session when all is said, and gives back what crosses that.
func (t *topicWorker) part() {
	t.mu.Lock()
	all := slices.Clone(t.sessions)
	t.mu.Unlock()
	var retiring sync.WaitGroup
	for _, x := range all {
		if t.leave(x) {
			retiring.Go(x.retire)
		}
	}
	retiring.Wait()
	t.handBack()
}

func (t *topicWorker) join(x *session) {
	t.mu.Lock()
	t.sessions = append(t.sessions, x)
	t.mu.Unlock()
	t.sub.join(&x.link)
}

// leave ends that x speaks for the subscription; false means that it did not.
func (t *topicWorker) leave(x *session) bool {
	if !t.sub.leave(&x.link) {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sessions = slices.DeleteFunc(t.sessions, func(other *session) bool { return other == x })
	return true
}

// handBack releases, one by one, what came too late for any stream.
func (t *topicWorker) handBack() {
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	for _, h := range t.sub.takeUnsaid() {
		if h.nack == nil || !h.nack.Release {
			continue // its answer is missing, which flush has said
		}
		_, err := t.rpc.Nack(ctx, &ddqv1.NackRequest{Topic: t.sub.topic, Nack: h.nack}, grpc.ForceCodecV2(codec.Proto))
		if err != nil {
			t.cfg.Logger.Warn("task not given back", "topic", t.sub.topic, "task", h.ack.TaskId, "err", err)
			return // the others wait for their holds to end, too
		}
		t.events.report(Event{Kind: Released, Topic: t.sub.topic, Tasks: 1})
	}
}

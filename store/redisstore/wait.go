package redisstore

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ddq-io/ddq/store"
)

// wait is how a change is waited for to reach replicas.
type wait struct {
	replicas int // 0: it is not
	timeout  time.Duration
}

// newWait puts together what the URL and the configuration say.
func newWait(cfg Config, t target) (wait, error) {
	w := wait{cfg.WaitReplicas, cmp.Or(t.waitTimeout, cfg.WaitTimeout, time.Second)}
	if t.waitReplicas >= 0 {
		w.replicas = t.waitReplicas
	}
	switch {
	case w.replicas < 0:
		return wait{}, fmt.Errorf("redis: wait for %d replicas: want 0 or more", w.replicas)
	case w.timeout < time.Millisecond || w.timeout >= cfg.timeout():
		return wait{}, fmt.Errorf("redis: wait timeout is %v, want at least 1ms and less than the timeout of calls, %v", w.timeout, cfg.timeout())
	}
	return w, nil
}

// change sends a command that changes something, and waits for replicas to have
// it: WAIT goes along on the same connection, and answers for all that the
// command did.
func (s *Store) change(ctx context.Context, key string, cmd redis.Cmder) error {
	if s.wait.replicas == 0 {
		return s.nodes.send(ctx, key, cmd)
	}
	reached := redis.NewIntCmd(ctx, "wait", s.wait.replicas, s.wait.timeout.Milliseconds())
	if err := s.nodes.send(ctx, key, cmd, reached); err != nil {
		return err
	}
	if err := reached.Err(); err != nil {
		return fmt.Errorf("%w: done, but whether replicas have it is not known: %s", store.ErrUnknown, err.Error())
	}
	if n := int(reached.Val()); n < s.wait.replicas {
		return fmt.Errorf("%w: done, but only %d of %d replicas have it after %v", store.ErrUnknown, n, s.wait.replicas, s.wait.timeout)
	}
	return nil
}

// mark is what scripts get in front of the moment when their answer is to be
// waited for: they then write something in any case. A call that finds its work
// done by an earlier one, which did not reach the replicas, would else have
// nothing to wait for.
func (w wait) mark(c call) string {
	if w.replicas > 0 && !c.read {
		return "w"
	}
	return ""
}

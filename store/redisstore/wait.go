package redisstore

import (
	"cmp"
	"fmt"
	"time"
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

// mark is what scripts get in front of the moment when their answer is to be
// waited for: they then write something in any case. A call that finds its work
// done by an earlier one, which did not reach the replicas, would else have
// nothing to wait for.
func (w wait) mark(changes bool) string {
	if w.replicas > 0 && changes {
		return "w"
	}
	return ""
}

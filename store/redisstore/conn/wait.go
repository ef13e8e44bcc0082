package conn

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

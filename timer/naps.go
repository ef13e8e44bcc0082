package timer

import (
	"sync"
	"sync/atomic"
	"time"
)

// naps sleeps out the last part of a millisecond, to some 50 us. The runtime
// cannot: an idle one waits in whole milliseconds. The kernel's timers are
// waited for by the runtime's poller, so that a nap holds neither a thread nor
// a processor. They are made as needed, and reused; one to three is usual.
type naps struct {
	faked atomic.Bool // the clock is that of a testing/synctest bubble

	mu   sync.Mutex
	idle []*alarm // guarded by mu
}

// sleep waits for d, or a little longer. Where there is no alarm to be had it
// is time.Sleep, and no worse than the library alone.
func (n *naps) sleep(d time.Duration) {
	if n.faked.Load() {
		time.Sleep(d)
		return
	}
	a, err := n.take()
	if err != nil {
		time.Sleep(d)
		return
	}
	defer n.give(a)
	before := time.Now()
	if err := a.sleep(d); err != nil {
		time.Sleep(d)
		return
	}
	if time.Since(before) == 0 {
		n.faked.Store(true) // a bubble's clock stands still while the kernel's runs
	}
}

func (n *naps) take() (*alarm, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if last := len(n.idle) - 1; last >= 0 {
		a := n.idle[last]
		n.idle = n.idle[:last]
		return a, nil
	}
	return newAlarm()
}

func (n *naps) give(a *alarm) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.idle = append(n.idle, a)
}

// close frees the alarms. No nap may be under way.
func (n *naps) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, a := range n.idle {
		a.close()
	}
	n.idle = nil
}

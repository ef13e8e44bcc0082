package actors

import (
	"context"
	"slices"
	"sync"
	"time"
)

// beats is how many turns the ticks of all shards are spread over, so that they do
// not ask the store at the same moment.
const beats = 16

// beat has the shards look into the store at their intervals until ctx ends, but for
// those that doze.
func (s *System) beat(ctx context.Context) {
	load, watch := time.NewTicker(s.cfg.LoadEvery/beats), time.NewTicker(s.cfg.WatchdogInterval/beats)
	defer load.Stop()
	defer watch.Stop()
	loads, watches := 0, 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-load.C:
			loads++
			s.tick(&loadTick{}, loads%beats)
		case <-watch.C:
			watches++
			s.tick(&watchTick{}, watches%beats)
		}
	}
}

func (s *System) tick(m any, turn int) {
	for _, ref := range s.turns.at(turn) {
		for _, p := range *ref.layout.Load() {
			if p.pid != nil && !p.dozing.Load() {
				s.send(p.pid, m)
			}
		}
	}
}

// turns are the open topics by the turn at which their shards are ticked: to walk
// all of them for each would be most of what a node with many quiet topics does.
type turns struct {
	mu   sync.Mutex
	refs [beats][]*topicRef // guarded by mu; a slice does not change
}

func (t *turns) at(turn int) []*topicRef {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.refs[turn]
}

func (t *turns) add(ref *topicRef) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.refs[ref.turn] = append(slices.Clip(t.refs[ref.turn]), ref)
}

func (t *turns) remove(ref *topicRef) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.refs[ref.turn] = slices.DeleteFunc(slices.Clone(t.refs[ref.turn]), func(r *topicRef) bool { return r == ref })
}

package actors

import (
	"context"
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
	s.eachTopic(func(ref *topicRef) {
		if ref.turn != turn {
			return
		}
		for _, p := range *ref.layout.Load() {
			if p.pid != nil && !p.dozing.Load() {
				s.send(p.pid, m)
			}
		}
	})
}

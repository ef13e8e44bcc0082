package upkeep

import (
	"context"
	"time"

	"github.com/ddq-io/ddq/actors"
)

// beat has the shards look into the store at their intervals until ctx ends, but for
// those that doze.
func (s *Upkeep) beat(ctx context.Context) {
	load, watch := s.rhythm.each(s.loadBeat()), s.rhythm.each(s.watchBeat())
	loads, watches := 0, 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-load:
			loads++
			s.node.Topics().TickLoads(loads % actors.Beats)
		case <-watch:
			watches++
			s.node.Topics().TickWatches(watches % actors.Beats)
		}
	}
}

// loadBeat and watchBeat are the pauses between the ticks of one turn and the next.
func (s *Upkeep) loadBeat() time.Duration  { return s.node.Config().LoadEvery / actors.Beats }
func (s *Upkeep) watchBeat() time.Duration { return s.node.Config().WatchdogInterval / actors.Beats }

package upkeep

import (
	"context"
	"time"

	"github.com/ddq-io/ddq/actors"
)

// beat has the shards look into the store at their intervals until ctx ends, but for
// those that doze.
func (s *Upkeep) beat(ctx context.Context) {
	load, watch := time.NewTicker(s.node.Config().LoadEvery/actors.Beats), time.NewTicker(s.node.Config().WatchdogInterval/actors.Beats)
	defer load.Stop()
	defer watch.Stop()
	loads, watches := 0, 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-load.C:
			loads++
			s.node.Topics().TickLoads(loads % actors.Beats)
		case <-watch.C:
			watches++
			s.node.Topics().TickWatches(watches % actors.Beats)
		}
	}
}

package node

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/ddq-io/ddq/timer/timetable"
)

// rulesEvery is how often a node looks at the rules of its time zones: new files may be
// installed, and a year ends.
const rulesEvery = time.Hour

// ruleTeller tells the others the rules of this node's time zones. It owns one goroutine,
// from start to stop: the first look takes a tenth of a second of a core, and so does not
// hold up the start of the node.
type ruleTeller struct {
	fleet  interface{ SetRules(rules uint64) error }
	log    *slog.Logger
	cancel context.CancelFunc
	loop   sync.WaitGroup
}

func (t *ruleTeller) start() {
	ctx, cancel := context.WithCancel(context.Background())
	t.cancel = cancel
	t.loop.Go(func() { t.run(ctx) })
}

// stop may be called without start.
func (t *ruleTeller) stop() {
	if t.cancel != nil {
		t.cancel()
	}
	t.loop.Wait()
}

func (t *ruleTeller) run(ctx context.Context) {
	tick := time.NewTicker(rulesEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		if err := t.fleet.SetRules(uint64(timetable.ZoneRules(time.Now()))); err != nil && ctx.Err() == nil {
			t.log.Warn("rules of time zones not announced", "err", err)
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

package actors

import (
	"context"
	"fmt"
	"time"

	"github.com/ddq-io/ddq/actors/clock"
	"github.com/ddq-io/ddq/actors/runtime"
	"github.com/ddq-io/ddq/actors/shard"
	"github.com/ddq-io/ddq/store"
)

const (
	// ClockSpread is the difference between clocks of the store that is worth an alarm.
	ClockSpread = 100 * time.Millisecond

	// wellKnown is how exactly the store's clock is to be known for nobody to ask for it:
	// tasks of the next tick, of a millisecond, are on time by it.
	wellKnown = time.Millisecond
)

// Clocks are the clocks of the store that a node follows. It is safe for concurrent use.
type Clocks struct {
	rt     *runtime.Runtime
	topics *Topics
	jumps  clock.JumpLimit
	apart  bool // see WatchSpread
}

// Read asks for the store's clock.
func (s *Clocks) Read(ctx context.Context) error {
	sent := time.Now()
	now, err := s.rt.Store.Clock(ctx)
	if err != nil {
		return err
	}
	s.rt.Clock.Observe(sent, time.Now(), now)
	return nil
}

// Follow asks for the store's clock unless what was heard of it lately says enough.
func (s *Clocks) Follow(ctx context.Context) error {
	if s.rt.Clock.Known(wellKnown) {
		return nil
	}
	return s.Read(ctx)
}

// renewed learns from the renewal of the session, which comes more often than reads.
func (s *Clocks) renewed(sent, received, now time.Time) {
	if !s.rt.ManyClocks { // the session may lie anywhere
		s.rt.Clock.Observe(sent, received, now)
	}
}

// Many reports whether shards may be on machines whose clocks differ.
func (s *Clocks) Many() bool { return s.rt.ManyClocks }

// Of returns the clock that stamps of a shard tell of, nil when nobody here
// goes by it.
func (s *Clocks) Of(shard store.Shard) *clock.Clock {
	if !s.rt.ManyClocks {
		return s.rt.Clock
	}
	ref, open := s.topics.Opened(shard.Topic)
	if !open {
		return nil
	}
	return ref.layout.Load().at(shard.N).Clock
}

// NowAt is the time by the clock of a shard.
func (s *Clocks) NowAt(shard store.Shard) store.Millis {
	if c := s.Of(shard); c != nil {
		return c.Millis()
	}
	return s.rt.Clock.Millis()
}

// onClockJump is called by whichever goroutine saw a clock of the store step.
func (s *Clocks) onJump(by time.Duration) {
	s.rt.Metrics.ClockJumps.Inc()
	if !s.jumps.Ask() {
		return
	}
	s.rt.Log.Warn("store clock jumped", "by", by)
	s.react()
}

// LookForJumps reacts to jumps that came too soon after the last reaction.
func (s *Clocks) LookForJumps(context.Context) {
	if s.jumps.Again() {
		s.react()
	}
}

func (s *Clocks) react() {
	if s.rt.Running.Load() {
		s.rt.Wheel.Reset()
		s.topics.broadcast(&shard.ClockJumped{})
		s.topics.openSoon()
	}
}

// Spread returns by how much clocks of the store certainly differ.
func (s *Clocks) Spread() time.Duration {
	if !s.rt.ManyClocks {
		return 0
	}
	low, high := s.rt.Clock.Bounds()
	s.topics.Each(func(ref *Topic) {
		for _, p := range *ref.layout.Load() {
			if p.Clock != nil {
				l, h := p.Clock.Bounds()
				low, high = max(low, l), min(high, h)
			}
		}
	})
	return max(0, low-high)
}

// WatchSpread measures by how much the clocks of the store differ, and logs when that
// begins or ends to be too much.
func (s *Clocks) WatchSpread() {
	by := s.Spread()
	s.rt.Metrics.ClockSpread.Set(by.Seconds())
	switch wide := by > ClockSpread; {
	case wide && !s.apart:
		s.rt.Log.Warn(SpreadText(by))
	case !wide && s.apart:
		s.rt.Log.Info("clocks of the store's primaries agree again")
	default:
		return
	}
	s.apart = !s.apart
}

// SpreadText is the warning about clocks that differ.
func SpreadText(by time.Duration) string {
	return fmt.Sprintf("clocks of the store's primaries differ by %v: synchronize them", by.Round(time.Millisecond))
}

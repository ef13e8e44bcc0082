package upkeep

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestIntervalsOfARhythmAreKeptOnAverage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		r := &rhythm{base: 469 * time.Millisecond}
		go r.run(ctx)
		counts := make(map[time.Duration]*atomic.Int64)
		for _, interval := range []time.Duration{469 * time.Millisecond, 500 * time.Millisecond, time.Second, 15 * time.Second} {
			n := new(atomic.Int64)
			counts[interval] = n
			go r.every(ctx, interval, func(context.Context) { n.Add(1) })
			synctest.Wait()
		}
		time.Sleep(10*time.Minute + time.Second)
		cancel()
		synctest.Wait()
		for interval, count := range counts {
			n := int(count.Load())
			if want := int(10 * time.Minute / interval); n < want-1 || n > want+3 {
				t.Errorf("%d ticks of %v in ten minutes, want %d", n, interval, want)
			}
		}
	})
}

func TestTicksAreDroppedWhileSomebodyIsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		r := &rhythm{base: 100 * time.Millisecond}
		go r.run(ctx)
		var n atomic.Int64
		go r.every(ctx, time.Second, func(context.Context) {
			if n.Add(1) == 1 {
				time.Sleep(10 * time.Second)
			}
		})
		time.Sleep(15*time.Second + 200*time.Millisecond)
		cancel()
		synctest.Wait()
		if n := n.Load(); n < 5 || n > 7 { // one, one that waited, and those of the last four seconds
			t.Errorf("%d ticks, want six", n)
		}
	})
}

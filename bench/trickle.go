package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/ddq-io/ddq/bench/result"
)

// trickleDelay is how long after its call a task of trickle is due: longer than a call
// takes, so that lateness is that of the delivery alone.
const trickleDelay = time.Second

// trickleWarm is how many tasks pass through every party before a trickle.
const trickleWarm = 2_000

// trickle measures what an even stream of single calls costs, and how late its tasks
// start: one line for each rate.
func (l *lab) trickle(ctx context.Context) error {
	if err := l.host.work(ctx); err != nil {
		return err
	}
	warm := l.line("warm-up", trickleWarm)
	if err := l.endToEnd(ctx, "single", &warm); err != nil {
		return err
	}
	for _, rate := range l.o.Rates {
		line, err := l.trickleAt(ctx, rate)
		if err != nil {
			return err
		}
		if err := l.emit(line); err != nil {
			return err
		}
	}
	return l.host.pause(ctx)
}

func (l *lab) trickleAt(ctx context.Context, rate int) (result.Line, error) {
	n := l.o.tasks(max(1, int(float64(rate)*l.o.For.Seconds())))
	line, m := l.line("trickle", n), l.maker()
	line.Mode, line.Rate = "single", rate
	if err := l.host.expect(ctx, m.run, n); err != nil {
		return line, err
	}
	before := l.usage()
	calls := newLoad("single", l.o.Producers, n, func(i int) Task {
		return m.task(i, time.Now().Add(trickleDelay+time.Millisecond).Truncate(time.Millisecond))
	})
	calls.every = time.Second / time.Duration(rate)
	sent, err := calls.send(ctx, l.driver)
	if err != nil {
		return line, err
	}
	r, err := l.await(ctx, m.run, n, trickleDelay)
	if err != nil {
		return line, err
	}
	line.CPU, line.RSS = l.usage().Minus(before), l.memory()
	line.CPUPer100k = result.Round(line.CPU.Sum()/float64(n)*1e5, 3)
	line.EnqueuePerS, line.Seconds = result.Round(sent.rate(n), 1), result.Round(sent.to.Sub(sent.from).Seconds(), 3)
	if wanted := time.Duration(n) * calls.every; sent.to.Sub(sent.from) > wanted+wanted/10+time.Second {
		fmt.Fprintf(l.o.Log, "trickle: %.0f calls a second is what came, not the %d asked for\n", sent.rate(n), rate)
	}
	return line, settle(&line, r, n)
}

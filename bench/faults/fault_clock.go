package faults

import (
	"cmp"
	"context"
	_ "embed" // the source of the clock
	"errors"
	"fmt"
	"time"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/bench/faults/plan"
	"github.com/ddq-io/ddq/bench/faults/stand"
)

// clockFaults are those of clocks. What time it is the store says: Redis, or the node
// itself on the embedded store. Other nodes have no say in it.
func clockFaults() []Fault {
	skewed := func(s *setting) { s.system.Skewed = true }
	on := append(onRedis(), stand.Embedded)
	return []Fault{
		{
			Name: "clock-ahead", What: "the store's clock is set an hour ahead, and stays there", Stores: on, Compiler: true, tune: skewed, once: true,
			strike: func(ctx context.Context, r *round) error {
				return setClock(ctx, r, time.Hour, func() error { return nil })
			},
			Cost: "what was due within the hour is due at once, and holds run out: what they held comes again",
		},
		{
			Name: "clock-back", What: "the store's clock is set an hour back for some seconds", Stores: on, Compiler: true, tune: skewed, once: true,
			strike: func(ctx context.Context, r *round) error {
				return setClock(ctx, r, -time.Hour, func() error { return r.SetStoreClock(0) })
			},
			Cost: "nothing is due until it is right again; who edits a schedule meanwhile has its runs that wait for another try made anew",
		},
		{
			Name: "clock-ahead-and-back", What: "the store's clock is set an hour ahead for some seconds, and put right again", Stores: on, Compiler: true, once: true, Long: true,
			tune: func(s *setting) { s.system.Skewed, s.mix = true, s.mix.WithoutRetries() },
			strike: func(ctx context.Context, r *round) error {
				return setClock(ctx, r, time.Hour, func() error {
					if err := r.awaitNothingRetries(ctx); err != nil {
						return err
					}
					return r.SetStoreClock(0)
				})
			},
			Cost: "as clock-ahead; a retry whose backoff began meanwhile, and a child of a workflow that was made meanwhile and has not begun, wait for as long as the clock was ahead",
		},
		{
			Name: "clock-node", What: "the clock of a node is set an hour ahead or back for some seconds, not the store's", Stores: onAnyRedis(), strike: setNodeClock,
			Cost: "nothing",
		},
	}
}

// setClock sets the store's clock for a while, and then does what ends the fault.
func setClock(ctx context.Context, r *round, by time.Duration, end func() error) error {
	return r.broken(ctx, fmt.Sprintf("set the clock by %v", by), func() error {
		if err := r.SetStoreClock(by); err != nil {
			return err
		}
		if err := r.pause(ctx, r.hold, r.hold*2); err != nil {
			return err
		}
		if err := end(); err != nil {
			return err
		}
		return r.AwaitWhole(ctx)
	})
}

// awaitNothingRetries waits, while the clock is ahead, until every task whose hold ran out
// when it was set was delivered again. One that waits for a retry when the clock is put right
// rests for an hour, and so does what waits behind it: an ordering key, say.
func (r *round) awaitNothingRetries(ctx context.Context) error {
	return r.Nodes[0].Ask(func(c *client.Client) error {
		var last error
		for end := time.Now().Add(stand.UpWithin); time.Now().Before(end); {
			n, err := retrying(ctx, c)
			if n == 0 && err == nil {
				return nil
			}
			last = err // a busy machine may not answer in time
			if err := r.sleep(ctx, 5*time.Millisecond); err != nil {
				return err
			}
		}
		return cmp.Or(last, errRetried)
	})
}

var errRetried = errors.New("tasks are retried all the time")

// retrying counts the tasks that wait for a retry by a clock that is an hour ahead, and those
// whose hold began before it was set: it ran out then, and they are about to be retried.
func retrying(ctx context.Context, c *client.Client) (n int, err error) {
	apart := time.Now().Add(30 * time.Minute) // moments by the right clock lie before it, and those by the other one behind
	for _, name := range append(plan.Topics(), plan.Scheduled, plan.Spread) {
		for task, err := range c.List(ctx, name, client.StateUnknown) {
			if err != nil {
				return 0, err
			}
			held := !task.HoldDeadline.IsZero()
			if held && task.HoldDeadline.Before(apart) || !held && task.Due.After(apart) {
				n++
			}
		}
	}
	return n, nil
}

func setNodeClock(ctx context.Context, r *round) error {
	nd, by := r.anyNode(), time.Hour
	if r.rand.IntN(2) == 0 {
		by = -by
	}
	return r.broken(ctx, fmt.Sprintf("set the clock of %s by %v", nd.Name, by), func() error {
		if err := nd.ShiftClock(by); err != nil {
			return err
		}
		if err := r.pause(ctx, r.hold, r.hold*2); err != nil {
			return err
		}
		if err := nd.ShiftClock(0); err != nil {
			return err
		}
		return r.AwaitWhole(ctx)
	})
}

package faults

import (
	"context"
	_ "embed" // the source of the clock
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/bench"
)

// clockFaults are those of clocks. What time it is the store says: Redis, or the node
// itself on the embedded store. Other nodes have no say in it.
func clockFaults() []Fault {
	skewed := func(s *setting) { s.skewed = true }
	on := append(onRedis(), embedded)
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
				return setClock(ctx, r, -time.Hour, func() error { return r.setStoreClock(0) })
			},
			Cost: "nothing is due until it is right again",
		},
		{
			Name: "clock-ahead-and-back", What: "the store's clock is set an hour ahead for some seconds, and put right again", Stores: on, Compiler: true, once: true,
			tune: func(s *setting) { s.skewed, s.mix = true, s.mix.withoutRetries() },
			strike: func(ctx context.Context, r *round) error {
				return setClock(ctx, r, time.Hour, func() error {
					if err := r.awaitNothingRetries(ctx); err != nil {
						return err
					}
					return r.setStoreClock(0)
				})
			},
			Cost: "as clock-ahead; a retry whose backoff began meanwhile waits for as long as the clock was ahead",
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
		if err := r.setStoreClock(by); err != nil {
			return err
		}
		if err := r.pause(ctx, r.hold, r.hold*2); err != nil {
			return err
		}
		if err := end(); err != nil {
			return err
		}
		return r.awaitWhole(ctx)
	})
}

// awaitNothingRetries waits, while the clock is ahead, until every task whose hold ran out
// when it was set was delivered again. One that waits for a retry when the clock is put right
// rests for an hour, and so does what waits behind it: an ordering key, say.
func (r *round) awaitNothingRetries(ctx context.Context) error {
	return r.nodes[0].ask(func(c *client.Client) error {
		for end := time.Now().Add(upWithin); time.Now().Before(end); {
			n, err := retrying(ctx, c)
			if n == 0 || err != nil {
				return err
			}
			if err := r.sleep(ctx, 5*time.Millisecond); err != nil {
				return err
			}
		}
		return errors.New("tasks are retried all the time")
	})
}

// retrying counts the tasks that wait for a retry by a clock that is an hour ahead, and those
// whose hold began before it was set: it ran out then, and they are about to be retried.
func retrying(ctx context.Context, c *client.Client) (n int, err error) {
	apart := time.Now().Add(30 * time.Minute) // moments by the right clock lie before it, and those by the other one behind
	for _, name := range topics() {
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

// setStoreClock sets the clock of the store, which is the node's on the embedded one.
func (r *round) setStoreClock(by time.Duration) error {
	if r.skew != nil {
		return r.skew.set(by)
	}
	r.shift.mu.Lock()
	defer r.shift.mu.Unlock()
	r.shift.by = by
	return shiftClock(r.nodes[0].Process, by)
}

// shift is by how much the clock of the embedded store is wrong.
type shift struct {
	mu sync.Mutex
	by time.Duration // guarded by mu
}

// storeTime is what the clock of the store says.
func (r *round) storeTime(ctx context.Context) (time.Time, error) {
	if redis, ok := r.store.(*oneRedis); ok {
		return bench.RedisTime(ctx, redis.Addr)
	}
	r.shift.mu.Lock()
	defer r.shift.mu.Unlock()
	return time.Now().Add(r.shift.by), nil
}

func setNodeClock(ctx context.Context, r *round) error {
	nd, by := r.anyNode(), time.Hour
	if r.rand.IntN(2) == 0 {
		by = -by
	}
	return r.broken(ctx, fmt.Sprintf("set the clock of %s by %v", nd.name, by), func() error {
		if err := shiftClock(nd.Process, by); err != nil {
			return err
		}
		if err := r.pause(ctx, r.hold, r.hold*2); err != nil {
			return err
		}
		if err := shiftClock(nd.Process, 0); err != nil {
			return err
		}
		return r.awaitWhole(ctx)
	})
}

//go:embed skew/skew.c
var skewSource []byte

// skew is a clock that a redis-server is started with and that can be set.
type skew struct{ preload, file string }

// newSkew needs a C compiler.
func newSkew(box *bench.Box) (*skew, error) {
	if _, err := exec.LookPath("cc"); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPrivilege, err)
	}
	dir, err := box.Mkdir("skew")
	if err != nil {
		return nil, err
	}
	s := &skew{filepath.Join(dir, "skew.so"), filepath.Join(dir, "shift")}
	source := filepath.Join(dir, "skew.c")
	if err := errors.Join(os.WriteFile(source, skewSource, 0o644), s.set(0)); err != nil {
		return nil, err
	}
	return s, command("cc", "-O2", "-shared", "-fPIC", "-o", s.preload, source)
}

// set shifts the clock from now on.
func (s *skew) set(by time.Duration) error {
	f, err := os.OpenFile(s.file, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(by)), 0)
	return errors.Join(err, f.Close())
}

// under returns the command that runs with this clock.
func (s *skew) under(name string, args ...string) *exec.Cmd {
	return exec.Command("env", append([]string{"LD_PRELOAD=" + s.preload, "SKEW_FILE=" + s.file, name}, args...)...)
}

// readClock writes down what the store's clock says, until ctx ends.
func (r *round) readClock(ctx context.Context) {
	for r.sleep(ctx, 20*time.Millisecond) == nil {
		// A reading that fails is one that is missing.
		_ = r.ledger.ReadClock(func() (time.Time, error) { return r.storeTime(ctx) })
	}
}

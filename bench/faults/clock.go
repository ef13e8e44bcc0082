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
	"time"

	"github.com/ddq-io/ddq/bench"
)

// clockFaults are those of the store's clock, which is Redis'. Nodes have no say in
// what time it is: they follow the store.
func clockFaults() []Fault {
	skewed := func(s *setting) { s.skewed = true }
	return []Fault{
		{
			Name: "clock-ahead", What: "the clock of Redis is set an hour ahead, and stays there", Stores: onRedis(), Compiler: true, tune: skewed, once: true,
			strike: func(ctx context.Context, r *round) error {
				return setClock(ctx, r, time.Hour, func() error { return nil })
			},
			Cost: "what was due within the hour is due at once, and holds run out: what they held comes again",
		},
		{
			Name: "clock-back", What: "the clock of Redis is set an hour back for some seconds", Stores: onRedis(), Compiler: true, tune: skewed, once: true,
			strike: func(ctx context.Context, r *round) error {
				return setClock(ctx, r, -time.Hour, func() error { return r.skew.set(0) })
			},
			Cost: "nothing is due until it is right again",
		},
	}
}

// setClock sets it for a while, and then does what ends the fault.
func setClock(ctx context.Context, r *round, by time.Duration, end func() error) error {
	return r.broken(ctx, fmt.Sprintf("set the clock by %v", by), func() error {
		if err := r.skew.set(by); err != nil {
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
	redis := r.store.(*oneRedis)
	for r.sleep(ctx, 20*time.Millisecond) == nil {
		// A reading that fails is one that is missing.
		_ = r.ledger.ReadClock(func() (time.Time, error) { return bench.RedisTime(ctx, redis.Addr) })
	}
}

package stand

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

	"github.com/ddq-io/ddq/bench/box"
)

//go:embed skew/skew.c
var skewSource []byte

// skew is a clock that a redis-server is started with and that can be set.
type skew struct{ preload, file string }

// newSkew needs a C compiler.
func newSkew(b *box.Box) (*skew, error) {
	if _, err := exec.LookPath("cc"); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPrivilege, err)
	}
	dir, err := b.Mkdir("skew")
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

// shift is by how much the clock of the embedded store is wrong.
type shift struct {
	mu sync.Mutex
	by time.Duration // guarded by mu
}

// SetStoreClock sets the clock of the store, which is the node's on the embedded one.
func (s *Stand) SetStoreClock(by time.Duration) error {
	if s.skew != nil {
		return s.skew.set(by)
	}
	s.shift.mu.Lock()
	defer s.shift.mu.Unlock()
	s.shift.by = by
	return s.Nodes[0].ShiftClock(by)
}

// StoreTime is what the clock of the store says.
func (s *Stand) StoreTime(ctx context.Context) (time.Time, error) {
	if redis, ok := s.Store.(*Redis); ok {
		return box.RedisTime(ctx, redis.Addr)
	}
	s.shift.mu.Lock()
	defer s.shift.mu.Unlock()
	return time.Now().Add(s.shift.by), nil
}

// ShiftClock sets the clock of a node by whole seconds from its right time.
func (nd *Node) ShiftClock(by time.Duration) error { return shiftProcess(nd.Process, by) }

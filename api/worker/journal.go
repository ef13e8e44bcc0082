package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// The most that a task remembers. The server sees to 1,000 names, and 1 MiB of names and values.
const (
	MaxName  = 128       // bytes of a name
	MaxValue = 256 << 10 // bytes of what it returned
)

// What is wrong with names.
var (
	// ErrNameUsed is of a name that Once, Sleep, Checkpoint, Call or Await was given before in the
	// same attempt.
	ErrNameUsed = errors.New("name is used twice in one attempt")
	// ErrBadName is of one that is empty, too long, or of other characters than are allowed.
	ErrBadName = errors.New("bad name")
)

// journal is what names of a task returned, in this attempt and those before. The zero value
// is empty.
type journal struct {
	at    checkpointer // nil: of a task that no worker made, which only remembers
	clock *serverClock // nil: the server does not tell its time

	mu       sync.Mutex
	returned map[string][]byte // nil: nothing; guarded by mu
	used     map[string]bool   // in this attempt; nil: none; guarded by mu
	steps    map[string]bool   // names of steps that Call and Await use in it; nil: none; guarded by mu
}

// checkpointer has the server keep what a name returned.
type checkpointer interface {
	checkpoint(ctx context.Context, name string, value []byte) error
	// stepResult reads what a step of the task's workflow returned.
	stepResult(ctx context.Context, step string) ([]byte, error)
}

// serverClock is what the server's clock said when a frame came. What outlives an attempt goes by
// it: the clock of the worker that has the next one may be another.
type serverClock struct {
	said time.Time
	at   time.Time // on the worker's monotonic clock
}

func clockAt(serverTime int64, now time.Time) *serverClock {
	if serverTime == 0 {
		return nil
	}
	return &serverClock{time.UnixMilli(serverTime), now}
}

func (c *serverClock) now() time.Time {
	if c == nil {
		return time.Now()
	}
	return c.said.Add(time.Since(c.at))
}

// fill makes j the journal of a delivery, and returns how many bytes it has.
func (j *journal) fill(at checkpointer, entries []*ddqv1.JournalEntry) (bytes int) {
	j.at = at
	if len(entries) == 0 {
		return 0
	}
	j.returned = make(map[string][]byte, len(entries))
	for _, e := range entries {
		j.returned[e.GetName()] = e.GetValue()
		bytes += len(e.GetName()) + len(e.GetValue())
	}
	return bytes
}

// use takes a name for this attempt, and returns what it returned in one before.
func (j *journal) use(name string) (value []byte, known bool, err error) {
	if name == "" || len(name) > MaxName || !utf8.ValidString(name) {
		return nil, false, fmt.Errorf("%w: %.200q has %d bytes; it must be UTF-8 of 1 to %d", ErrBadName, name, len(name), MaxName)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.used[name] {
		return nil, false, fmt.Errorf("%w: %q", ErrNameUsed, name)
	}
	if j.used == nil {
		j.used = make(map[string]bool)
	}
	j.used[name] = true
	value, known = j.returned[name]
	return value, known, nil
}

// take takes names of steps for this attempt: a Call may be for one that an Await is for.
func (j *journal) take(steps []string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.steps == nil {
		j.steps = make(map[string]bool, len(steps))
	}
	for _, name := range steps {
		if j.steps[name] {
			return fmt.Errorf("%w: step %q", ErrNameUsed, name)
		}
		j.steps[name] = true
	}
	return nil
}

// free lets a name be used again that has returned nothing.
func (j *journal) free(name string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.used, name)
}

// keep has the server remember what a name returned.
func (j *journal) keep(ctx context.Context, name string, value []byte) error {
	if len(value) > MaxValue {
		return fmt.Errorf("%q returned %d bytes; at most %d are allowed", name, len(value), MaxValue)
	}
	if j.at != nil {
		if err := j.at.checkpoint(ctx, name, value); err != nil {
			return err
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.returned == nil {
		j.returned = make(map[string][]byte)
	}
	j.returned[name] = value
	return nil
}

// forget lets go of what was remembered.
func (j *journal) forget() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.returned, j.used, j.steps = nil, nil, nil
}

package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"
	"unicode/utf8"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// The most that a task remembers. The server sees to 1,000 names, and 1 MiB of names and values.
const (
	MaxName  = 128       // bytes of a name
	MaxValue = 256 << 10 // bytes of what it returned
)

// ErrNameUsed is of a name that Once, Sleep or Checkpoint was given before in the same attempt.
var ErrNameUsed = errors.New("name is used twice in one attempt")

// journal is what names of a task returned, in this attempt and those before. The zero value
// is empty.
type journal struct {
	of *held // nil: of a task that no worker made, which only remembers

	mu       sync.Mutex
	returned map[string][]byte // nil: nothing; guarded by mu
	used     map[string]bool   // in this attempt; nil: none; guarded by mu
}

// fill makes j the journal of a delivery, and returns how many bytes it has.
func (j *journal) fill(h *held, entries []*ddqv1.JournalEntry) (bytes int) {
	j.of = h
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
		return nil, false, fmt.Errorf("name %.200q has %d bytes; it must be UTF-8 of 1 to %d", name, len(name), MaxName)
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
	if j.of != nil {
		if err := j.of.sub.checkpoint(ctx, j.of, name, value); err != nil {
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
	j.returned, j.used = nil, nil
}

// Once calls f unless it has returned without error in an attempt before, whose value it returns
// then: what is done under a name is done once, as far as the server heard of it. The value is kept
// before Once returns; it has MaxValue bytes at most, and is not encoded by Config.Codec. An error
// of f is returned, and nothing is kept: the name may be used again. Otherwise a name is used once in
// an attempt, else ErrNameUsed. An attempt that no longer holds the task keeps nothing, ErrHoldLost.
//
// Calls of one handler may run beside each other. A name costs a call to the server; loops of
// thousands are for batches, or for tasks of their own. A handler may be changed while tasks are
// under way: a name that is new is called, and one that is gone is ignored.
func (t Task) Once(ctx context.Context, name string, f func(ctx context.Context) ([]byte, error)) ([]byte, error) {
	if t.journal == nil {
		return f(ctx)
	}
	value, known, err := t.journal.use(name)
	if err != nil || known {
		return value, err
	}
	if value, err = f(ctx); err != nil {
		t.journal.free(name)
		return nil, err
	}
	if err := t.journal.keep(ctx, name, value); err != nil {
		return nil, err
	}
	return value, nil
}

// Sleep lets d pass, from when it was first called under the name. Until then it returns an error
// for the handler to return: the task is given back, due again after d, and the attempt is not
// counted. Once d has passed it returns nil.
func (t Task) Sleep(ctx context.Context, name string, d time.Duration) error {
	until := time.Now().Add(d)
	if t.journal == nil {
		return Release(d)
	}
	value, known, err := t.journal.use(name)
	if err != nil {
		return err
	}
	if known {
		if err := until.UnmarshalText(value); err != nil {
			return Permanent(fmt.Errorf("%q is not a sleep: %w", name, err))
		}
	} else {
		text, err := until.UTC().MarshalText()
		if err != nil {
			return err
		}
		if err := t.journal.keep(ctx, name, text); err != nil {
			return err
		}
	}
	if left := time.Until(until); left > 0 {
		return Release(left)
	}
	return nil
}

// Checkpoint keeps a value under a name, for Remembered in later attempts; how far a loop has come,
// say, under one name for each part. A name that has a value keeps it. Otherwise it is as Once.
func (t Task) Checkpoint(ctx context.Context, name string, value []byte) error {
	_, err := t.Once(ctx, name, func(context.Context) ([]byte, error) { return value, nil })
	return err
}

// Remembered returns what is kept under a name, by this attempt or one before.
func (t Task) Remembered(name string) (value []byte, known bool) {
	if t.journal == nil {
		return nil, false
	}
	t.journal.mu.Lock()
	defer t.journal.mu.Unlock()
	value, known = t.journal.returned[name]
	return value, known
}

// Resumed returns a task of NewTask whose names returned values in attempts before, for tests of handlers.
func (t Task) Resumed(returned map[string][]byte) Task {
	t.journal = &journal{returned: maps.Clone(returned)}
	return t
}

// checkpoint has the server keep an entry. It is said again while the server cannot take it,
// until ctx ends: a name is kept once, however often that is said.
func (s *subscription) checkpoint(ctx context.Context, h *held, name string, value []byte) error {
	r := &ddqv1.CheckpointRequest{Topic: s.topic, Checkpoint: &ddqv1.Checkpoint{
		TaskId: h.ack.GetTaskId(), HoldToken: h.ack.GetHoldToken(), Name: name, Value: value,
	}}
	pauses := reconnects()
	for {
		_, err := s.rpc.Checkpoint(ctx, r)
		switch code := status.Code(err); {
		case err == nil:
			return nil
		case reasonOf(err) == "HOLD_LOST":
			return fmt.Errorf("checkpoint %q: %w", name, ErrHoldLost)
		case code != codes.Unavailable && code != codes.Unknown:
			return fmt.Errorf("checkpoint %q: %w", name, err)
		}
		select {
		case <-time.After(max(pauses.NextBackOff(), retryAfter(err))):
		case <-ctx.Done():
			return fmt.Errorf("checkpoint %q: %w: %w", name, context.Cause(ctx), err)
		}
	}
}

// reasonOf is the reason that a server gives for an error, empty for none.
func reasonOf(err error) string {
	for _, d := range status.Convert(err).Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok {
			return info.GetReason()
		}
	}
	return ""
}

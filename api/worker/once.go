package worker

import (
	"context"
	"fmt"
	"maps"
	"time"
)

// Once calls f unless it has returned without error in an attempt before, whose value it returns
// then: what is done under a name is done once, as far as the server heard of it. The value is kept
// before Once returns; it has MaxValue bytes at most, and is not encoded by Config.Codec. An error
// of f is returned, and nothing is kept: the name may be used again. Otherwise a name is used once in
// an attempt, else ErrNameUsed. An attempt that no longer holds the task keeps nothing, ErrHoldLost.
//
// Calls of one handler may run beside each other. A name costs a round trip to the server; loops of
// thousands are for batches, or for tasks of their own. A handler may be changed while tasks are
// under way: a name that is new is called, and one that is gone is ignored.
func (t Task) Once(ctx context.Context, name string, f func(ctx context.Context) ([]byte, error)) ([]byte, error) {
	within := context.WithValue(ctx, insideOnce{}, name)
	if t.journal == nil {
		return f(within)
	}
	value, known, err := t.journal.use(name)
	if err != nil || known {
		return value, err
	}
	if value, err = f(within); err != nil {
		t.journal.free(name)
		return nil, err
	}
	if err := t.journal.keep(ctx, name, value); err != nil {
		return nil, err
	}
	return value, nil
}

// insideOnce is in the contexts of functions that Once calls.
type insideOnce struct{}

// Sleep lets d pass, from when it was first called under the name. Until then it returns an error
// for the handler to return: the task is given back, due again after d, and the attempt is not
// counted. Once d has passed it returns nil. It goes by the server's clock.
func (t Task) Sleep(ctx context.Context, name string, d time.Duration) error {
	if t.journal == nil {
		return Release(d)
	}
	until := t.journal.clock.now().Add(d)
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
	if left := until.Sub(t.journal.clock.now()); left > 0 {
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

//go:build linux

package outbox_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ddq-io/ddq/api/outbox"
	"github.com/ddq-io/ddq/api/worker"
)

func TestAnEffectIsMadeOnce(t *testing.T) {
	onEach(t, func(t *testing.T, b base) {
		task := worker.NewTask(worker.Task{Topic: "t", ID: "a"})
		if first, err := b.effect(t.Context(), errUndo, task); !first || !errors.Is(err, errUndo) {
			t.Fatalf("%v, %v", first, err)
		}
		var made atomic.Int64
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				first, err := b.effect(t.Context(), nil, task)
				if err != nil {
					t.Error(err)
				}
				if first {
					made.Add(1)
				}
			})
		}
		all.Wait()
		if made.Load() != 1 {
			t.Errorf("%d effects after one that was undone", made.Load())
		}
		for _, other := range []worker.Task{{Topic: "t", ID: "b"}, {Topic: "u", ID: "a"}} {
			if first, err := b.effect(t.Context(), nil, other); !first || err != nil {
				t.Errorf("%s of %s: %v, %v", other.ID, other.Topic, first, err)
			}
		}
	})
}

func TestEffectsAreForgottenInTime(t *testing.T) {
	onEach(t, func(t *testing.T, b base) {
		task := worker.NewTask(worker.Task{Topic: "t", ID: "a"})
		is := func(want bool) {
			t.Helper()
			if first, err := b.effect(t.Context(), nil, task); first != want || err != nil {
				t.Errorf("first is %v, %v", first, err)
			}
		}
		is(true)
		if err := outbox.Forget(t.Context(), b, time.Hour); err != nil {
			t.Fatal(err)
		}
		is(false)
		if err := outbox.Forget(t.Context(), b, -time.Hour); err != nil { // as an hour from now
			t.Fatal(err)
		}
		is(true)
	})
}

package servicetest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/upkeep"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
)

// ReasonOf is the reason of an error of a use case, "" without one.
func ReasonOf(err error) string {
	var e *problem.Error
	if !errors.As(err, &e) {
		return ""
	}
	return e.Reason
}

// Discard is a log that keeps nothing.
func Discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

// Idle lets fake time pass.
func Idle(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// Bubble runs a test on a node over an in-memory store, in fake time.
func Bubble(t *testing.T, cfg actors.Config, test func(t *testing.T, s *service.Service)) {
	synctest.Test(t, func(t *testing.T) {
		s := Start(t, cfg, memstore.New())
		defer Stop(s)
		test(t, s)
	})
}

// Stop stops a node in fake time. A test may leave tasks held; their streams do not answer.
func Stop(s *service.Service) {
	short, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	s.Node().Stop(short)
	time.Sleep(5 * time.Second) // the actor library's dead-letter throttle ends by itself
}

// New returns the use cases of a new node, and what starts the node and its upkeep.
func New(cfg actors.Config, st store.Store) (s *service.Service, begin func(context.Context) error) {
	node := actors.New(cfg, st, Discard(), nil)
	up := upkeep.New(node)
	return service.New(node, up.IndexNow), func(ctx context.Context) error {
		if err := node.Start(ctx); err != nil {
			return err
		}
		up.Start()
		return nil
	}
}

// Start starts a node; the caller stops it.
func Start(t *testing.T, cfg actors.Config, st store.Store) *service.Service {
	t.Helper()
	s, begin := New(cfg, st)
	if err := begin(t.Context()); err != nil {
		t.Fatalf("start: %v", err)
	}
	return s
}

// Reason is the reason of an error, or its text when it has none.
func Reason(err error) string {
	var e *problem.Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return fmt.Sprint(err)
}

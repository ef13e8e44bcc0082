package servicetest

import (
	"sync"
	"testing"
	"testing/synctest"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
)

// FaultyStore fails calls as a test says. A lost reply is a call that took effect.
type FaultyStore struct {
	store.Store
	cellStore
	mu     sync.Mutex
	Down   bool                     // every call fails with ErrUnavailable
	Broke  error                    // for good
	Losing map[string]int           // call -> replies to lose
	Broken map[string]int           // call -> replies to give without results, against the contract
	Late   map[string]chan struct{} // call -> replies come once it is closed
}

// NewFaultyStore returns an in-memory store without faults.
func NewFaultyStore() *FaultyStore {
	st := memstore.New()
	return &FaultyStore{Store: st, cellStore: st, Losing: map[string]int{}, Broken: map[string]int{}}
}

// Failed implements failingStore.
func (f *FaultyStore) Failed() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.Broke
}

// through runs a call with the faults of its name around it.
func through[R any](f *FaultyStore, call string, do func() (store.Stamp, []R, error)) (store.Stamp, []R, error) {
	if err := f.before(); err != nil {
		return store.Stamp{}, nil, err
	}
	stamp, results, err := do()
	f.delay(call)
	if err == nil {
		err = f.after(call)
	}
	if err != nil {
		return store.Stamp{}, nil, err
	}
	if f.isBroken(call) {
		return stamp, results[:0], nil
	}
	return stamp, results, nil
}

// FaultBubble is bubble over a faulty store.
func FaultBubble(t *testing.T, cfg actors.Config, test func(t *testing.T, s *service.Service, f *FaultyStore)) {
	synctest.Test(t, func(t *testing.T) {
		f := NewFaultyStore()
		s := Start(t, cfg, f)
		defer Stop(s)
		test(t, s, f)
	})
}

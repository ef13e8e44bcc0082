package tenants

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/store"
)

const (
	// streamLasts is for how long a stream counts that was open at a node that has died.
	streamLasts = 30 * time.Second
	keepEvery   = streamLasts / 3
)

// streams are the worker streams that are open at this node. Each has a permit of its namespace in the store, when
// that has the quota. It owns one goroutine while there are any: it keeps the permits, and acquires those of
// streams that are older than the quota.
type streams struct {
	mu   sync.Mutex
	open map[store.Token]string // namespace; guarded by mu
	end  func()                 // ends the goroutine and waits for it; nil: there is none; guarded by mu

	keeping sync.Mutex // of what is told to the store, so that no permit is kept after it was freed
}

// OpenStream lets a worker stream of a topic begin where its namespace has room. leave is called at its end.
func (s *Tenants) OpenStream(ctx context.Context, topic string) (leave func(), err *problem.Error) {
	if s.quotas == nil {
		return func() {}, nil
	}
	namespace, _ := store.SplitName(topic)
	holder := store.NewTokens(1)[0]
	if most := s.mostStreams(namespace); most > 0 {
		switch got, err := s.acquire(ctx, streamsKey(namespace), most, holder, streamLasts); {
		case err != nil:
			return nil, problem.FromStore(err)
		case !got:
			return nil, s.overQuota(namespace, "max_streams", problem.RetrySoon, "%d worker streams", most)
		}
	}
	s.streams.add(holder, namespace, s.keepStreams)
	return func() { s.closeStream(holder, namespace) }, nil
}

func streamsKey(namespace string) store.LimitKey { return limitKey(namespace, "streams") }

// mostStreams is how many a namespace may have; 0: any number.
func (s *Tenants) mostStreams(namespace string) int {
	q := s.quotasOf(namespace)
	if q == nil {
		return 0
	}
	return int(q.MaxStreams)
}

func (s *Tenants) closeStream(holder store.Token, namespace string) {
	s.streams.remove(holder)
	if s.mostStreams(namespace) == 0 {
		return
	}
	s.streams.keeping.Lock()
	defer s.streams.keeping.Unlock()
	s.free(store.Permit{Key: streamsKey(namespace), Holder: holder})
}

// keepStreams keeps the permits of the streams that are open, until ctx ends.
func (s *Tenants) keepStreams(ctx context.Context) {
	tick := time.NewTicker(keepEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.keepOnce(ctx)
		case <-ctx.Done():
			return
		}
	}
}

func (s *Tenants) keepOnce(ctx context.Context) {
	s.streams.keeping.Lock()
	defer s.streams.keeping.Unlock()
	var permits []store.Permit
	until := s.after(streamLasts)
	for holder, namespace := range s.streams.all() {
		if s.mostStreams(namespace) > 0 {
			permits = append(permits, store.Permit{Key: streamsKey(namespace), Holder: holder, Until: until})
		}
	}
	if len(permits) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, keepEvery)
	defer cancel()
	if err := s.store.Move(ctx, permits); err != nil && ctx.Err() == nil {
		s.node.Log().Warn("worker streams not counted: they may be forgotten", "err", err)
	}
}

// add adds a stream. The first one starts keep.
func (s *streams) add(holder store.Token, namespace string, keep func(context.Context)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = make(map[store.Token]string)
	}
	s.open[holder] = namespace
	if s.end != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		keep(ctx)
	}()
	s.end = func() {
		cancel()
		<-done
	}
}

// remove removes a stream. The last one ends the goroutine.
func (s *streams) remove(holder store.Token) {
	s.mu.Lock()
	delete(s.open, holder)
	end := s.end
	if len(s.open) > 0 {
		end = nil
	} else {
		s.end = nil
	}
	s.mu.Unlock()
	if end != nil {
		end()
	}
}

// all returns a copy.
func (s *streams) all() map[store.Token]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.open)
}

package server

import (
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/ddq-io/ddq/api/service"
)

// sessions serves Subscribe streams, and ends them when the node goes away.
type sessions struct {
	*lifetime
	*interceptor
	config  Config
	service *service.Service
	callers *callers
	slabs   sync.Pool // of *wireSlab, clear

	mu   sync.Mutex
	open map[*session]struct{} // guarded by mu
}

func newSessions(config Config, cases *service.Service, from *callers, life *lifetime, calls *interceptor) *sessions {
	return &sessions{
		lifetime:    life,
		interceptor: calls,
		config:      config,
		service:     cases,
		callers:     from,
		slabs:       sync.Pool{New: func() any { return new(wireSlab) }},
		open:        map[*session]struct{}{},
	}
}

// serve has a session on a stream until that is over.
func (s *sessions) serve(stream subscribeStream) error {
	ses := &session{
		server:     s,
		stream:     stream,
		box:        newOutbox(s.log, s.config.DrainGrace),
		unanswered: semaphore.NewWeighted(maxUnanswered),
		end:        make(chan error, 1),
	}
	if !s.join(ses) {
		return draining()
	}
	defer s.part(ses)
	ctx := stream.Context()
	s.loops.Go(func() { ses.finish(s.guard(ctx, ses.receive)) })
	select {
	case err := <-ses.end:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// join registers a session, unless the server drains.
func (s *sessions) join(ses *session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.drain.Err() != nil {
		return false
	}
	s.open[ses] = struct{}{}
	return true
}

func (s *sessions) part(ses *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, ses)
}

// drainAll tells workers that the node goes away.
func (s *sessions) drainAll(grace time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ses := range s.open {
		ses.box.Drain(grace)
	}
}

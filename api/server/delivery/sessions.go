package delivery

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/server/guard"
	"github.com/ddq-io/ddq/api/server/status"
	"github.com/ddq-io/ddq/api/service"
)

// Stream is a call of Subscribe.
type Stream = grpc.BidiStreamingServer[ddqv1.SubscribeRequest, ddqv1.SubscribeResponse]

// Config says how long sessions wait; server.Config says what each field means.
type Config struct {
	HandshakeTimeout time.Duration
	SendStall        time.Duration
	DrainGrace       time.Duration
	Spans            Spans
}

// Host is the server that sessions run in.
type Host struct {
	Log   *slog.Logger
	Nodes *guard.Nodes
	Drain context.Context // done once the server stops
	Loops *sync.WaitGroup // of goroutines that may outlive their handler

	// Guard runs a function, and turns its panic into an error.
	Guard func(context.Context, func() error) error

	// Stale counts deliveries that were given back unsent because they came too late.
	Stale func(n int)
}

// Sessions serves Subscribe streams, and ends them when the node goes away.
type Sessions struct {
	host    Host
	config  Config
	service *service.Service
	slabs   sync.Pool // of *wireSlab, clear

	mu   sync.Mutex
	open map[*session]struct{} // guarded by mu
}

// New returns a server without sessions.
func New(config Config, cases *service.Service, host Host) *Sessions {
	return &Sessions{
		host:    host,
		config:  config,
		service: cases,
		slabs:   sync.Pool{New: func() any { return new(wireSlab) }},
		open:    map[*session]struct{}{},
	}
}

// Serve has a session on a stream until that is over.
func (s *Sessions) Serve(stream Stream) error {
	ses := &session{
		server:     s,
		stream:     stream,
		box:        newOutbox(s.host.Log, s.config.DrainGrace),
		unanswered: semaphore.NewWeighted(maxUnanswered),
		end:        make(chan error, 1),
	}
	if !s.join(ses) {
		return status.Draining()
	}
	defer s.part(ses)
	ctx := stream.Context()
	s.host.Loops.Go(func() { ses.finish(s.host.Guard(ctx, ses.receive)) })
	select {
	case err := <-ses.end:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// join registers a session, unless the server drains.
func (s *Sessions) join(ses *session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.host.Drain.Err() != nil {
		return false
	}
	s.open[ses] = struct{}{}
	return true
}

func (s *Sessions) part(ses *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, ses)
}

// Drain tells workers that the node goes away.
func (s *Sessions) Drain(grace time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ses := range s.open {
		ses.box.Drain(grace)
	}
}

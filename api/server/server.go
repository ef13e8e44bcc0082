package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"

	"github.com/ddq-io/ddq/api/codec"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/service"
)

// Server serves DelayQueueService, AdminService, health and reflection. Its
// goroutines are those of package server's comment; Stop waits for them.
type Server struct {
	config  Config
	service *service.Service
	log     *slog.Logger
	metrics *serverMetrics
	grpc    *grpc.Server
	health  *health

	drain    context.Context // done once Stop was called
	startEnd func()          // ends drain
	loops    sync.WaitGroup  // stream goroutines that may outlive their handler

	mu       sync.Mutex
	sessions map[*session]struct{} // guarded by mu

	slabs sync.Pool // of *wireSlab, clear

	strangers sync.Map // names of members that others called in, so that each is logged once
}

// New returns a server for the use cases of a node. It does nothing until Serve. Metrics go
// to reg, which may be nil.
func New(config Config, cases *service.Service, log *slog.Logger, reg registerer) *Server {
	s := &Server{
		config:   config.withDefaults(),
		service:  cases,
		log:      log,
		metrics:  newMetrics(reg),
		sessions: map[*session]struct{}{},
		slabs:    sync.Pool{New: func() any { return new(wireSlab) }},
	}
	s.drain, s.startEnd = context.WithCancel(context.Background())
	options := append(s.interceptors(), grpc.ForceServerCodecV2(codec.Bounded))
	s.grpc = grpc.NewServer(append(options, s.config.options()...)...)
	s.register(&ddqv1.DelayQueueService_ServiceDesc, &queue{Server: s})
	s.register(&ddqv1.AdminService_ServiceDesc, &admin{Server: s})
	s.register(&ddqv1.PeerService_ServiceDesc, &peer{Server: s})
	s.health = newHealth(s.drain, cases.Node().Ready, s.grpc.GetServiceInfo())
	healthpb.RegisterHealthServer(s.grpc, s.health)
	reflection.Register(s.grpc)
	s.metrics.learn(s.grpc.GetServiceInfo())
	return s
}

// Serve answers calls on lis until Stop, then returns nil. It is called once.
func (s *Server) Serve(lis net.Listener) error {
	stop := s.health.follow()
	defer stop()
	if err := s.grpc.Serve(lis); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return fmt.Errorf("serve grpc: %w", err)
	}
	return nil
}

// Stop tells subscriptions to drain and health checks that the node is not
// serving, takes no new calls, and waits for those that run. Those that still
// run when ctx ends are cut off, which the error says. It may be called twice.
func (s *Server) Stop(ctx context.Context) error {
	s.health.Shutdown()
	s.startEnd()
	s.drainSessions(s.grace(ctx))
	cut := context.AfterFunc(ctx, s.grpc.Stop)
	s.grpc.GracefulStop()
	s.loops.Wait()
	if !cut() {
		return fmt.Errorf("stop grpc: calls were cut off: %w", ctx.Err())
	}
	return nil
}

// grace is how long streams may go on: a tenth less than there is, so that they
// end by themselves.
func (s *Server) grace(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return s.config.DrainGrace
	}
	return max(0, min(s.config.DrainGrace, time.Until(deadline)*9/10))
}

// join registers a session, unless the server drains.
func (s *Server) join(ses *session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.drain.Err() != nil {
		return false
	}
	s.sessions[ses] = struct{}{}
	return true
}

func (s *Server) part(ses *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, ses)
}

func (s *Server) drainSessions(grace time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ses := range s.sessions {
		ses.box.Drain(grace)
	}
}

package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"time"

	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"

	"github.com/ddq-io/ddq/api/codec"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/server/audits"
	"github.com/ddq-io/ddq/api/server/delivery"
	"github.com/ddq-io/ddq/api/server/guard"
	"github.com/ddq-io/ddq/api/server/status"
	"github.com/ddq-io/ddq/api/server/workflows"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/trail"
)

// Server serves DelayQueueService, AdminService, health and reflection. Its
// goroutines are those of package server's comment; Stop waits for them.
type Server struct {
	*lifetime
	config   Config
	who      *guard.Guard
	metrics  *serverMetrics
	grpc     *grpc.Server
	local    *localCalls
	channel  channel // the same services, without a port
	health   *health
	sessions *delivery.Sessions
	queue    *queue
}

// New returns a server for the use cases of a node. It does nothing until Serve. Metrics go
// to reg, which may be nil.
func New(config Config, cases *service.Service, log *slog.Logger, reg registerer) *Server {
	config = config.withDefaults()
	life, calls := newLifetime(), newInterceptor(config, log, reg)
	from := guard.NewNodes(cases.Node().Membership(), cases.Node().Config().Node, log)
	open := delivery.New(config.delivery(), cases, delivery.Host{
		Log: log, Nodes: from, Drain: life.drain, Loops: &life.loops, Guard: calls.guard, Stale: calls.metrics.staleBy,
	})
	s := &Server{
		lifetime: life,
		config:   config,
		who:      calls.who,
		metrics:  calls.metrics,
		grpc:     grpc.NewServer(slices.Concat(calls.options(), []grpc.ServerOption{grpc.ForceServerCodecV2(codec.Bounded)}, config.options())...),
		local:    newLocalCalls(log),
		sessions: open,
		queue: &queue{
			lifetime: life, interceptor: calls, service: cases, sessions: open, log: log,
			streamBytes: config.StreamBytes, sendStall: config.SendStall, spans: config.Spans,
		},
	}
	if config.Access != nil {
		cases.SetQuotas(quotasOf(config.Access.Namespaces))
	}
	s.channel = newChannel(s.local, calls)
	written := audits.New(trail.New(cases.Node(), config.Audit))
	for _, registrar := range []grpc.ServiceRegistrar{s.grpc, s.channel} {
		registrar.RegisterService(checked(&ddqv1.DelayQueueService_ServiceDesc, calls.who, log), s.queue)
		registrar.RegisterService(checked(&ddqv1.AdminService_ServiceDesc, calls.who, log), &admin{lifetime: life, service: cases, version: config.Version, warnings: config.Warnings, accepted: config.Accepted})
		if config.Access != nil {
			registrar.RegisterService(checked(&ddqv1.AccessService_ServiceDesc, calls.who, log), &accessService{access: config.Access, contents: cases})
		}
		if config.Operations != nil {
			registrar.RegisterService(checked(&ddqv1.OperationService_ServiceDesc, calls.who, log), &operationServer{operations: config.Operations, bulk: cases.Bulk, dead: cases.DeadLetters, topics: cases.Topics, reencrypt: config.Reencrypt})
		}
		registrar.RegisterService(checked(&ddqv1.ScheduleService_ServiceDesc, calls.who, log), &scheduleServer{service: cases, log: log})
		registrar.RegisterService(checked(&ddqv1.WorkflowService_ServiceDesc, calls.who, log), workflows.New(cases.Workflows, workflowEdge(life, log)))
		registrar.RegisterService(checked(&ddqv1.AuditService_ServiceDesc, calls.who, log), written)
		registrar.RegisterService(checked(&ddqv1.AudienceService_ServiceDesc, calls.who, log), &audienceServer{cases: cases.Audiences, now: cases.Node().Clock().Millis, log: log})
	}
	s.grpc.RegisterService(checked(&ddqv1.PeerService_ServiceDesc, calls.who, log), &peer{Peer: audits.Peer{Log: config.Audit, Nodes: from}, lifetime: life, nodes: from, service: cases})
	s.health = newHealth(s.drain, config.ready(cases.Node().Ready), s.grpc.GetServiceInfo())
	healthpb.RegisterHealthServer(s.grpc, s.health)
	reflection.Register(s.grpc)
	s.metrics.learn(s.grpc.GetServiceInfo())
	calls.who.Learn(s.grpc.GetServiceInfo())
	return s
}

// Authorize says why a caller that brings these values of the authorization header may not
// make a call about all topics, as a gRPC status; nil when it may. It is for other ports.
func (s *Server) Authorize(ctx context.Context, authorization []string, method string) error {
	if e := s.who.Authorize(ctx, authorization, method); e != nil {
		return status.Of(ctx, s.queue.log, method, e)
	}
	return nil
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
	s.sessions.Drain(s.grace(ctx))
	cut := context.AfterFunc(ctx, s.grpc.Stop)
	s.local.end(ctx)
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

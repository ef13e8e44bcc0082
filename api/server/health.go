package server

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	grpchealth "google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/ddq-io/ddq/api/server/status"
)

// healthInterval is how late a watcher may hear of a change. Check asks anew.
const healthInterval = 500 * time.Millisecond

// health serves while ready returns nil and the server does not drain.
type health struct {
	*grpchealth.Server
	ready    func() error
	drain    context.Context
	services []string

	watchers atomic.Int64
	watched  chan struct{} // holds one: there is a watcher
}

func newHealth(drain context.Context, ready func() error, services map[string]grpc.ServiceInfo) *health {
	h := &health{Server: grpchealth.NewServer(), ready: ready, drain: drain, services: []string{""}, watched: make(chan struct{}, 1)}
	for name := range services {
		h.services = append(h.services, name)
	}
	h.refresh()
	return h
}

// Check answers with the state of this moment.
func (h *health) Check(ctx context.Context, r *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	h.refresh()
	return h.Server.Check(ctx, r)
}

// Watch tells of the state of this moment and of every change, and ends when the
// server drains, which would wait for it otherwise.
func (h *health) Watch(r *healthpb.HealthCheckRequest, stream healthpb.Health_WatchServer) error {
	h.watchers.Add(1)
	defer h.watchers.Add(-1)
	select {
	case h.watched <- struct{}{}:
	default:
	}
	h.refresh() // a node that has just started is not kept waiting for the next tick
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	defer context.AfterFunc(h.drain, cancel)()
	err := h.Server.Watch(r, watch{stream, ctx})
	if h.drain.Err() == nil {
		return err
	}
	_ = stream.Send(&healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_NOT_SERVING})
	return status.Draining()
}

// watch is a stream with another context.
type watch struct {
	healthpb.Health_WatchServer
	ctx context.Context
}

func (w watch) Context() context.Context { return w.ctx }

// refresh has no effect after Shutdown.
func (h *health) refresh() {
	state := healthpb.HealthCheckResponse_SERVING
	if h.ready() != nil {
		state = healthpb.HealthCheckResponse_NOT_SERVING
	}
	for _, name := range h.services {
		h.SetServingStatus(name, state)
	}
}

// follow keeps watchers informed until the returned function is called, which
// waits for the goroutine to end.
func (h *health) follow() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var loop sync.WaitGroup
	loop.Go(func() {
		for ctx.Err() == nil {
			select {
			case <-h.watched:
				h.inform(ctx)
			case <-ctx.Done():
			}
		}
	})
	return func() { cancel(); loop.Wait() }
}

// inform keeps watchers informed until there are none.
func (h *health) inform(ctx context.Context) {
	tick := time.NewTicker(healthInterval)
	defer tick.Stop()
	for h.watchers.Load() > 0 {
		select {
		case <-tick.C:
			h.refresh()
		case <-ctx.Done():
			return
		}
	}
}

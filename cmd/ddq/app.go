package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.uber.org/fx"
	"go.uber.org/fx/fxevent"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/api/server"
	"github.com/ddq-io/ddq/store"
)

const (
	startTimeout = 30 * time.Second
	closeTimeout = 10 * time.Second // for what is left to close after the grace
)

// node is one server in this process, from startNode to stop.
type node struct {
	app   *fx.App
	grace time.Duration

	grpcAddr string     // where it listens
	httpAddr string     // empty when off
	failed   chan error // a listener that broke
}

// startNode returns once the node serves. Ending ctx gives up on the store, and
// nothing later: what has begun to start is then started and can be stopped.
func startNode(ctx context.Context, cfg *serverConfig, log *slog.Logger) (*node, error) {
	n := &node{grace: cfg.ShutdownGrace, failed: make(chan error, 3)}
	n.app = fx.New(n.options(ctx, cfg, log))
	starting, cancel := context.WithTimeout(context.WithoutCancel(ctx), startTimeout)
	defer cancel()
	if err := n.app.Start(starting); err != nil {
		return nil, plainError(err)
	}
	return n, nil
}

// stop takes no more work, waits for running tasks up to the grace, and closes
// everything. It is not an error that some task took longer.
func (n *node) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), n.grace+closeTimeout)
	defer cancel()
	return n.app.Stop(ctx)
}

// options is the graph of one node.
func (n *node) options(ctx context.Context, cfg *serverConfig, log *slog.Logger) fx.Option {
	return fx.Options(
		fx.Supply(cfg, log, n, fx.Annotate(ctx, fx.As(new(context.Context)))),
		fx.WithLogger(quietly),
		fx.StartTimeout(startTimeout),
		fx.Provide(newRegistry, provideStore, joinFleet, newSystem, newServer, newOps),
		fx.Invoke(wire),
	)
}

// quietly keeps fx's own log for those who debug: errors come back from Start.
func quietly(log *slog.Logger) fxevent.Logger {
	l := &fxevent.SlogLogger{Logger: log}
	l.UseLogLevel(slog.LevelDebug)
	l.UseErrorLevel(slog.LevelDebug)
	return l
}

func newRegistry() (*prometheus.Registry, error) {
	reg := prometheus.NewRegistry()
	return reg, errors.Join(
		reg.Register(collectors.NewGoCollector()),
		reg.Register(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})),
		readBuild().register(reg),
	)
}

func provideStore(ctx context.Context, cfg *serverConfig, log *slog.Logger) (store.Store, error) {
	st, err := openStore(ctx, cfg, log)
	if err != nil {
		return nil, startError{err}
	}
	return st, nil
}

func newSystem(cfg *serverConfig, st store.Store, f *fleet, log *slog.Logger, reg *prometheus.Registry) *actors.System {
	sys := actors.New(cfg.Actors, st, log, reg)
	if f != nil {
		sys.Join(f, f.peers)
	}
	return sys
}

func newServer(cfg *serverConfig, sys *actors.System, log *slog.Logger, reg *prometheus.Registry) *server.Server {
	return server.New(server.Config{Version: readBuild().Version, DrainGrace: cfg.ShutdownGrace}, sys, log, reg)
}

// parts is everything that starts and stops.
type parts struct {
	fx.In
	Store  store.Store
	Fleet  *fleet // nil on a node that stands alone
	System *actors.System
	Server *server.Server
	Ops    *ops
}

// wire sets the order: the store first, then the operators' ports, so that what
// goes wrong later can be seen, then the runtime, and the gRPC port last. They
// stop the other way round: workers settle while the gRPC port drains.
func wire(lc fx.Lifecycle, cfg *serverConfig, log *slog.Logger, n *node, p parts) {
	lc.Append(fx.Hook{OnStop: func(context.Context) error { return p.Store.Close() }})
	lc.Append(fx.Hook{OnStop: func(ctx context.Context) error { return leave(ctx, p.Fleet) }})
	lc.Append(fx.Hook{
		OnStart: func(ctx context.Context) error { return p.Ops.start(ctx, n) },
		OnStop:  p.Ops.stop,
	})
	lc.Append(fx.Hook{
		OnStart: func(ctx context.Context) error {
			if err := p.System.Start(ctx); err != nil {
				return errors.Join(startError{err}, p.System.Stop(ctx)) // fx stops only what started
			}
			return nil
		},
		OnStop: p.System.Stop,
	})
	lc.Append(fx.Hook{
		OnStart: func(ctx context.Context) error { return n.serve(ctx, cfg, p, log) },
		OnStop:  func(ctx context.Context) error { return drain(ctx, cfg.ShutdownGrace, p, log) },
	})
}

// leave says goodbye to the fleet, once the shards are handed over.
func leave(ctx context.Context, f *fleet) error {
	if f == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, leaveTimeout)
	defer cancel()
	return f.close(ctx)
}

// serve opens the gRPC port, and asks for shards once it is open.
func (n *node) serve(ctx context.Context, cfg *serverConfig, p parts, log *slog.Logger) error {
	l, err := listen(ctx, "grpc-addr", cfg.GRPCAddr)
	if err != nil {
		return err
	}
	n.grpcAddr = l.Addr().String()
	go func() { // ends with s.Stop
		if err := p.Server.Serve(l); err != nil {
			n.failed <- fmt.Errorf("gRPC port: %w", err)
		}
	}()
	if p.Fleet != nil {
		if err := p.Fleet.SetDraining(false); err != nil {
			return err
		}
	}
	log.Info("serving", "addr", n.grpcAddr, "http", n.httpAddr, "node", cfg.Actors.Node, "store", cfg.storeName())
	return nil
}

// drain waits for running tasks up to the grace, while workers can still settle
// them and everybody else is told to come back, and then closes the gRPC port.
func drain(ctx context.Context, grace time.Duration, p parts, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	p.System.Drain(ctx)
	if err := p.Server.Stop(ctx); err != nil {
		log.Warn("some tasks still ran at the end of the grace; their holds run out by themselves", "grace", grace, "err", err)
	}
	return nil // the operator chose the grace
}

// listen opens a port and names the flag to change when it cannot.
func listen(ctx context.Context, flag, addr string) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, startError{fmt.Errorf("--%s %s: %w", flag, addr, err)}
	}
	return l, nil
}

// startError is a reason not to start that is meant for people. fx wraps what
// constructors return in a description of the graph, which is not.
type startError struct{ error }

func (e startError) Unwrap() error { return e.error }

// plainError digs the reason out of an error of fx.
func plainError(err error) error {
	var start startError
	if errors.As(err, &start) {
		return start.error
	}
	return err
}

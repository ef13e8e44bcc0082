package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.uber.org/fx"
	"go.uber.org/fx/fxevent"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/loglevel"
	"github.com/ddq-io/ddq/actors/upkeep"
	"github.com/ddq-io/ddq/api/access"
	"github.com/ddq-io/ddq/api/audit"
	"github.com/ddq-io/ddq/api/auth/oidc"
	"github.com/ddq-io/ddq/api/server"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/operations"
	"github.com/ddq-io/ddq/cmd/node/spans"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/sealstore"
)

const (
	startTimeout = 30 * time.Second
	closeTimeout = 10 * time.Second // for what is left to close after the grace
)

// Node is one server in this process, from Start to Stop.
type Node struct {
	app   *fx.App
	cfg   *Config
	sys   *actors.Node
	keys  *sealstore.Keys
	pulse *pulse // nil when systemd did not start the process

	grpcAddr string      // where it listens
	httpAddr string      // empty when off
	open     atomic.Bool // the gRPC port accepts
	failed   chan error  // a listener that broke
}

// errStarting is why a node whose gRPC port is not open yet is not ready.
var errStarting = errors.New("starting: the gRPC port is not open yet")

// Start returns once the node serves. Ending ctx gives up on the store, and nothing
// later: what has begun to start is then started and can be stopped.
func Start(ctx context.Context, cfg *Config, log *slog.Logger) (*Node, error) {
	own := *cfg
	if err := own.Check(); err != nil {
		return nil, err
	}
	n := &Node{cfg: &own, failed: make(chan error, 3)}
	log = loglevel.Of(log).Logger() // whose level can be changed while the node runs
	n.app = fx.New(n.options(ctx, log))
	starting, cancel := context.WithTimeout(context.WithoutCancel(ctx), startTimeout)
	defer cancel()
	if err := n.app.Start(starting); err != nil {
		return nil, plainError(err)
	}
	n.pulse.start()
	return n, nil
}

// GRPCAddr is where producers, workers and operators find the node.
func (n *Node) GRPCAddr() string { return n.grpcAddr }

// HTTPAddr is where metrics and probes are, or "" when that port is off.
func (n *Node) HTTPAddr() string { return n.httpAddr }

// Ready returns why the node does not serve, or nil.
func (n *Node) Ready() error {
	if !n.open.Load() { // the runtime is ready before the port is open
		return errStarting
	}
	if err := n.keys.Ready(); err != nil {
		return err
	}
	return n.sys.Ready()
}

// Failed returns why the node never will serve unless it is started anew, or nil.
func (n *Node) Failed() error { return n.sys.Failed() }

// Stop takes no more work, waits for running tasks up to the grace, and closes
// everything. It is not an error that some task took longer.
func (n *Node) Stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), n.cfg.ShutdownGrace+closeTimeout)
	defer cancel()
	defer n.pulse.stop()
	return n.app.Stop(ctx)
}

// options is the graph of one node.
func (n *Node) options(ctx context.Context, log *slog.Logger) fx.Option {
	return fx.Options(
		fx.Supply(n.cfg, log, n, fx.Annotate(ctx, fx.As(new(context.Context)))),
		fx.WithLogger(quietly),
		fx.StartTimeout(startTimeout),
		fx.Provide(newRegistry, provideStore, joinFleet, newActors, upkeep.New, newService, newOperations, newServer, newOps, newCertFollower, newKeyFollower, newIssuers, newAccess, newGate, openAudit, newSpans),
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
		ReadBuild().register(reg),
	)
}

func newActors(cfg *Config, st store.Store, f *gossip, log *slog.Logger, reg *prometheus.Registry) *actors.Node {
	node := actors.New(cfg.Actors, st, log, reg)
	if cfg.Store != Embedded && cfg.Store != Memory { // of which this process has the only one
		actors.AskFirst(node, mayAnswer)
	}
	if f != nil {
		node.Join(f, f.peers)
	}
	return node
}

func newService(node *actors.Node, up *upkeep.Upkeep) *service.Service {
	return service.New(node, up.IndexNow)
}

// newOperations returns nil with a store that keeps no records.
func newOperations(node *actors.Node, st store.Store, log *slog.Logger) *operations.Operations {
	registry, ok := st.(store.Registry)
	if !ok {
		return nil
	}
	return operations.New(registry, node.Config().Node, node.Clock().Millis, log)
}

func newServer(cfg *Config, st store.Store, keys *sealstore.Keys, sys *service.Service, long *operations.Operations, who *access.Access, written *audit.Log, traced *spans.Spans, log *slog.Logger, reg *prometheus.Registry) *server.Server {
	return server.New(server.Config{
		Version: ReadBuild().Version, DrainGrace: cfg.ShutdownGrace, Access: who, Operations: long, Reencrypt: reencryptionOf(cfg, st), Audit: written, Ready: keys.Ready,
		Warnings: cfg.Warnings, Accepted: cfg.Exceptions(), Observe: cfg.Auth.observes(), Spans: spansOf(traced), Recorded: recordedOf(traced),
		Options: slices.Concat(cfg.TLS.serverOptions(), traced.ServerOptions()),
	}, sys, log, reg)
}

// openAudit returns nil when nothing is to be written down.
func openAudit(cfg *Config, log *slog.Logger) (*audit.Log, error) {
	if cfg.AuditLog == "" {
		return nil, nil
	}
	l, err := audit.Open(cfg.AuditLog, cfg.Actors.Node, log)
	if err != nil {
		return nil, startError{fmt.Errorf("--audit-log: %w", err)}
	}
	return l, nil
}

// parts is everything that starts and stops.
type parts struct {
	fx.In
	Store   store.Store
	Sealed  *sealstore.Keys
	Fleet   *gossip // nil on a node that stands alone
	Actors  *actors.Node
	Upkeep  *upkeep.Upkeep
	System  *service.Service
	Server  *server.Server
	Ops     *ops
	Certs   *certFollower // nil without TLS
	Keys    *keyFollower  // nil without files of keys
	Access  *access.Access
	Issuers *oidc.Issuers // nil: no tokens of others count
	Gate    *gate
	Audit   *audit.Log             // nil: none
	Long    *operations.Operations // nil: none
	Spans   *spans.Spans           // nil: none
}

// wire sets the order: the store first, then the operators' ports, so that what
// goes wrong later can be seen, then the runtime, and the gRPC port last. They
// stop the other way round: workers settle while the gRPC port drains.
func wire(lc fx.Lifecycle, cfg *Config, log *slog.Logger, n *Node, p parts) {
	n.sys, n.keys = p.Actors, p.Sealed
	n.pulse = newPulse(cfg.Supervision, p.Actors.Failed, log)
	lc.Append(fx.Hook{OnStop: func(context.Context) error { return p.Store.Close() }})
	lc.Append(fx.Hook{OnStop: func(context.Context) error { return p.Audit.Close() }})
	lc.Append(fx.Hook{
		OnStart: func(ctx context.Context) error {
			p.Certs.start()
			follow(ctx, cfg, &p, log)
			p.Keys.start()
			return nil
		},
		OnStop: func(context.Context) error { p.Certs.stop(); p.Keys.stop(); unfollow(&p); return nil },
	})
	lc.Append(fx.Hook{OnStop: func(ctx context.Context) error { return leave(ctx, p.Fleet) }})
	lc.Append(fx.Hook{
		OnStart: func(ctx context.Context) error { return p.Ops.start(ctx, n) },
		OnStop:  p.Ops.stop,
	})
	lc.Append(fx.Hook{
		OnStart: func(ctx context.Context) error {
			if err := p.Actors.Start(ctx); err != nil {
				return errors.Join(startError{err}, p.Actors.Stop(ctx)) // fx stops only what started
			}
			p.Upkeep.Start() // ends with the node
			return nil
		},
		OnStop: p.Actors.Stop,
	})
	lc.Append(fx.Hook{OnStop: stopSpans(p.Spans)})
	lc.Append(fx.Hook{
		OnStart: func(ctx context.Context) error { return n.serve(ctx, cfg, p, log) },
		OnStop:  func(ctx context.Context) error { return drain(ctx, cfg.ShutdownGrace, p, log) },
	})
}

// leave says goodbye to the fleet, once the shards are handed over.
func leave(ctx context.Context, f *gossip) error {
	if f == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, leaveTimeout)
	defer cancel()
	return f.close(ctx)
}

// serve opens the gRPC port, and asks for shards once it is open.
func (n *Node) serve(ctx context.Context, cfg *Config, p parts, log *slog.Logger) error {
	l, err := listen(ctx, "grpc-addr", cfg.GRPCAddr)
	if err != nil {
		return err
	}
	n.grpcAddr = l.Addr().String()
	p.Actors.Membership().SetAddr(withPort(cfg.Actors.Addr, n.grpcAddr))
	n.open.Store(true)
	p.Ops.port.Open()
	l = p.Gate.guard(endingLost{l, lostAfter})
	go func() { // ends with s.Stop
		if err := p.Server.Serve(l); err != nil {
			n.failed <- fmt.Errorf("gRPC port: %w", err)
		}
	}()
	if p.Fleet != nil {
		if err := p.Fleet.SetDraining(false); err != nil {
			return err
		}
		p.Fleet.rules.start()
	}
	about := []any{"addr", n.grpcAddr, "http", n.httpAddr, "node", cfg.Actors.Node, "store", cfg.StoreName()}
	if cfg.servesUI() {
		about = append(about, "ui", cfg.scheme()+"://"+n.httpAddr+cfg.UIPrefix+"/")
	}
	log.Info("serving", about...)
	return nil
}

// drain waits for running tasks up to the grace, while workers can still settle
// them and everybody else is told to come back, and then closes the gRPC port.
func drain(ctx context.Context, grace time.Duration, p parts, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	p.System.Node().Drain(ctx)
	if err := p.Server.Stop(ctx); err != nil {
		log.Warn("some tasks still ran at the end of the grace; their holds run out by themselves", "grace", grace, "err", err)
	}
	if p.Long != nil {
		p.Long.Stop()
	}
	return nil // the operator chose the grace
}

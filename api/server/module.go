package server

import (
	"context"
	"net"

	"go.uber.org/fx"
)

// Module provides *Server from a Config, an *actors.System, a *slog.Logger and a
// prometheus.Registerer, and serves it on the listener named "grpc" while the
// app runs.
var Module = fx.Module("grpc", fx.Provide(New), fx.Invoke(run))

type params struct {
	fx.In
	Listener net.Listener `name:"grpc"`
	Server   *Server
	Life     fx.Lifecycle
	Shutdown fx.Shutdowner
}

// run serves until the app stops, and stops the app when serving fails.
func run(p params) {
	done := make(chan struct{})
	p.Life.Append(fx.Hook{
		OnStart: func(context.Context) error {
			go func() {
				defer close(done)
				if err := p.Server.Serve(p.Listener); err != nil {
					p.Server.log.Error("grpc stopped", "err", err)
					_ = p.Shutdown.Shutdown(fx.ExitCode(1))
				}
			}()
			return nil
		},
		OnStop: func(ctx context.Context) error {
			err := p.Server.Stop(ctx)
			<-done
			return err
		},
	})
}

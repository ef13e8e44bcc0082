package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// ops are the ports for operators: metrics and health, and profiles on a port
// of their own. It owns one goroutine for each open port, gone after stop.
type ops struct {
	cfg     *Config
	health  *http.Server
	profile *http.Server
}

func newOps(cfg *Config, n *Node, reg *prometheus.Registry) *ops {
	return &ops{
		cfg:     cfg,
		health:  newHTTPServer(healthMux(n, reg)),
		profile: newHTTPServer(profileMux()),
	}
}

func newHTTPServer(h http.Handler) *http.Server {
	return &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 2 * time.Minute}
}

// health is how the node is, in two words.
type health interface {
	// Ready returns why the node does not serve, or nil.
	Ready() error
	// Failed returns why it never will unless it is started anew, or nil.
	Failed() error
}

// healthMux serves what probes and Prometheus ask for.
func healthMux(h health, reg *prometheus.Registry) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{Registry: reg}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, "ok", h.Failed()) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { answer(w, "ready", h.Ready()) })
	return mux
}

func answer(w http.ResponseWriter, good string, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, good)
}

func profileMux() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}

func (o *ops) start(ctx context.Context, n *Node) error {
	if o.cfg.HTTPAddr != Off {
		l, err := listen(ctx, "http-addr", o.cfg.HTTPAddr)
		if err != nil {
			return err
		}
		n.httpAddr = l.Addr().String()
		go serveHTTP(o.health, l, n.failed)
	}
	if o.cfg.PprofAddr != "" {
		l, err := listen(ctx, "pprof-addr", o.cfg.PprofAddr)
		if err != nil {
			return errors.Join(err, o.stop(ctx)) // fx stops only what started
		}
		go serveHTTP(o.profile, l, n.failed)
	}
	return nil
}

func serveHTTP(s *http.Server, l net.Listener, failed chan<- error) {
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		failed <- fmt.Errorf("HTTP port: %w", err)
	}
}

// stop closes the ports. A profile that is being taken is cut off.
func (o *ops) stop(ctx context.Context) error {
	return errors.Join(o.health.Shutdown(ctx), o.profile.Close())
}

package node

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/rest"
	"github.com/ddq-io/ddq/api/server"
	"github.com/ddq-io/ddq/api/ui"
	"github.com/ddq-io/ddq/cmd/node/spans"
)

// What the HTTP port serves, as --http-serve names it.
const (
	serveAPI     = "api"
	serveMetrics = "metrics"
	serveUI      = "ui"
)

// maxHeaders bounds the headers of a request.
const maxHeaders = 16 << 10

// ops are the HTTP ports: the REST API with metrics and health, and profiles on a port of
// their own. It owns one goroutine for each open port, gone after stop.
type ops struct {
	cfg     *Config
	gate    *gate
	port    *rest.Port
	http    *http.Server
	profile *http.Server
}

func newOps(cfg *Config, n *Node, s *server.Server, g *gate, traced *spans.Spans, log *slog.Logger, reg *prometheus.Registry) (*ops, error) {
	port, err := newPort(cfg, log, n, reg, s.Authorize)
	if err != nil {
		return nil, err
	}
	profiles, err := newProfilePort(cfg, log)
	if err != nil {
		return nil, err
	}
	o := &ops{cfg: cfg, gate: g, port: port, http: newHTTPServer(port), profile: newHTTPServer(profiles)}
	if traced != nil {
		port.Trace(traced.Requests())
	}
	if cfg.serves(serveAPI) {
		if err := port.ServeAPI(s.Channel()); err != nil {
			return nil, err
		}
	}
	if cfg.servesUI() {
		pages := ui.New(s.Channel(), s.Logins(), cfg.Tracing.URL, log)
		pages.Mount(cfg.UIPrefix)
		port.ServePages(cfg.UIPrefix, pages)
		o.http.RegisterOnShutdown(pages.Close)
	}
	return o, nil
}

func newHTTPServer(h http.Handler) *http.Server {
	return &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: maxHeaders}
}

// servesUI reports whether there are pages.
func (cfg *Config) servesUI() bool { return cfg.HTTPAddr != Off && cfg.serves(serveUI) }

const defaultUIPrefix = "/ui"

// checkUIPrefix refuses where pages cannot be.
func (cfg *Config) checkUIPrefix() error {
	cfg.UIPrefix = cmp.Or(cfg.UIPrefix, defaultUIPrefix)
	if err := ui.CheckPrefix(cfg.UIPrefix); err != nil {
		return wrongf("--ui-prefix is a path such as /ui or /tools/ddq, not %q: %v", cfg.UIPrefix, err)
	}
	for _, taken := range takenPaths {
		if cfg.UIPrefix == taken || strings.HasPrefix(cfg.UIPrefix, taken+"/") {
			return wrongf("--ui-prefix %s is not possible: the HTTP port has something else at %s", cfg.UIPrefix, taken)
		}
	}
	return nil
}

// takenPaths are those of the HTTP port that are not of pages.
var takenPaths = []string{strings.TrimSuffix(rest.Prefix, "/"), "/healthz", "/readyz", "/metrics"}

// scheme is that of the HTTP port's addresses.
func (cfg *Config) scheme() string {
	if cfg.TLS.on() {
		return "https"
	}
	return "http"
}

// serves reports whether the HTTP port serves what is named.
func (cfg *Config) serves(what string) bool {
	return len(cfg.HTTPServe) == 0 || slices.Contains(cfg.HTTPServe, what)
}

// health is how the node is, in two words.
type health interface {
	// Ready returns why the node does not serve, or nil.
	Ready() error
	// Failed returns why it never will unless it is started anew, or nil.
	Failed() error
}

// authorizer says why a caller may not make a call, or returns nil.
type authorizer = func(ctx context.Context, authorization []string, call string) error

// newPort serves what probes and Prometheus ask for.
func newPort(cfg *Config, log *slog.Logger, h health, reg *prometheus.Registry, may authorizer) (*rest.Port, error) {
	panics := prometheus.NewCounter(prometheus.CounterOpts{Name: "ddq_http_panics_total", Help: "HTTP requests that ended in a panic."})
	reg.MustRegister(panics)
	port, err := rest.NewPort(rest.Config{Hosts: cfg.httpHosts(), Origins: cfg.CORSOrigins, Authorize: may, Panicked: panics.Inc}, log)
	if err != nil {
		return nil, err
	}
	probe := func(good string, check func() error) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w, good, check()) })
	}
	err = errors.Join(
		port.Route("/healthz", rest.Rule{Public: true}, probe("ok", h.Failed)),
		port.Route("/readyz", rest.Rule{Public: true}, probe("ready", h.Ready)),
	)
	if cfg.serves(serveMetrics) {
		err = errors.Join(err, port.Route("/metrics", rest.Rule{Call: ddqv1.DelayQueueService_CountTasks_FullMethodName},
			promhttp.HandlerFor(reg, promhttp.HandlerOpts{Registry: reg, EnableOpenMetrics: true})))
	}
	return port, err
}

// httpHosts are the names of the HTTP port; that of its listener is one.
func (cfg *Config) httpHosts() []string {
	host, _, err := net.SplitHostPort(cfg.HTTPAddr)
	if err != nil || host == "" || net.ParseIP(host) != nil {
		return cfg.HTTPHosts
	}
	return append(slices.Clone(cfg.HTTPHosts), host)
}

func answer(w http.ResponseWriter, good string, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, good)
}

// newProfilePort serves profiles to whoever is on this machine. A page that is open in a browser here is
// not, by whatever name it reaches the port.
func newProfilePort(cfg *Config, log *slog.Logger) (http.Handler, error) {
	port, err := rest.NewPort(rest.Config{Hosts: cfg.HTTPHosts}, log)
	if err != nil {
		return nil, err
	}
	port.ServePages("/debug/pprof", profileMux())
	return port, nil
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
		l = o.gate.guard(l)
		if o.cfg.TLS.on() {
			l = tls.NewListener(l, o.cfg.TLS.certs.Server("http/1.1"))
		}
		go serveHTTP(o.http, l, n.failed)
	}
	if o.cfg.PprofAddr != "" {
		l, err := listen(ctx, "pprof-addr", o.cfg.PprofAddr)
		if err != nil {
			return errors.Join(err, o.stop(ctx)) // fx stops only what started
		}
		go serveHTTP(o.profile, o.gate.guard(l), n.failed)
	}
	return nil
}

func serveHTTP(s *http.Server, l net.Listener, failed chan<- error) {
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		failed <- fmt.Errorf("HTTP port: %w", err)
	}
}

// stop closes the ports. The server has ended what it was asked; who is still sent an
// answer when ctx ends is cut off, and so is a profile that is being taken.
func (o *ops) stop(ctx context.Context) error {
	err := o.http.Shutdown(ctx)
	if err != nil {
		err = o.http.Close()
	}
	return errors.Join(err, o.profile.Close())
}

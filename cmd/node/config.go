package node

import (
	"cmp"
	"io"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/spf13/pflag"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/api/rest"
)

// Config is what a node runs with, which is what `ddq server` has flags for. They say
// what each field is.
type Config struct {
	Store         string
	Data          string
	AllowVolatile bool
	StoreTLS      StoreTLS
	GRPCAddr      string
	HTTPAddr      string
	HTTPServe     []string // empty is all of it
	HTTPHosts     []string
	UIPrefix      string // of the paths of pages; empty: /ui
	CORSOrigins   []string
	PprofAddr     string
	Insecure      bool
	TLS           TLSConfig
	Auth          AuthConfig
	Encryption    EncryptionConfig
	MaxConnsPerIP int    // 0: no bound
	AuditLog      string // file; empty: none
	ShutdownGrace time.Duration
	LogLevel      string
	LogFormat     string
	Actors        actors.Config
	Fleet         FleetConfig
	Tracing       TracingConfig
	Supervision   Supervision
	backoff       Backoff // of new topics
}

// Flags adds a flag for each setting, and sets the defaults.
func (cfg *Config) Flags(fs *pflag.FlagSet) {
	fs.StringVar(&cfg.Store, "store", Embedded, "where tasks are kept: embedded, memory, or the URL of a Redis: redis://, redis-sentinel:// or redis-cluster:// and their rediss forms, or unix://")
	fs.StringVar(&cfg.Data, "data", "ddq-data", "directory of the embedded store")
	fs.BoolVar(&cfg.AllowVolatile, "allow-volatile", false, "accept a Redis that keeps nothing on disk")
	cfg.StoreTLS.flags(fs)
	fs.StringVar(&cfg.GRPCAddr, "grpc-addr", "127.0.0.1:9090", "where to serve producers, workers and operators")
	fs.StringVar(&cfg.HTTPAddr, "http-addr", "127.0.0.1:8080", "where to serve the REST API, /metrics, /healthz and /readyz, or off")
	fs.StringSliceVar(&cfg.HTTPServe, "http-serve", []string{serveAPI, serveMetrics, serveUI}, "what the HTTP port serves beside /healthz and /readyz: api, metrics, and ui, which is for ports that ask nobody who calls")
	fs.StringVar(&cfg.UIPrefix, "ui-prefix", defaultUIPrefix, "path under which the HTTP port serves pages, such as /ddq behind a proxy that has other things at /ui")
	fs.StringSliceVar(&cfg.HTTPHosts, "http-host", nil, "names under which clients reach the HTTP port, beside localhost and the addresses it is reached at")
	fs.StringSliceVar(&cfg.CORSOrigins, "cors-origin", nil, "origins such as https://app.example.com whose pages may call the REST API (default none)")
	fs.StringVar(&cfg.PprofAddr, "pprof-addr", "", "loopback address to serve profiles at (default none)")
	fs.BoolVar(&cfg.Insecure, "insecure", false, "accept listeners that other machines can reach, without TLS and without authentication")
	DurationVar(fs, &cfg.ShutdownGrace, "shutdown-grace", 30*time.Second, "how long to wait for running tasks when stopping")
	fs.StringVar(&cfg.LogLevel, "log-level", "info", "debug, info, warn or error")
	fs.StringVar(&cfg.LogFormat, "log-format", "text", "text or json")
	fs.StringVar(&cfg.AuditLog, "audit-log", "", "file where it is written down what administrators do and who was turned away; ddq audit verify checks it (default none)")
	gateFlags(fs, &cfg.MaxConnsPerIP)
	cfg.TLS.flags(fs)
	cfg.Auth.flags(fs)
	cfg.Encryption.flags(fs)
	cfg.Fleet.flags(fs)
	cfg.Tracing.flags(fs)
	cfg.runtimeFlags(fs)
	MarkSettings(fs)
}

// Check refuses what cannot work, with a ConfigError, and fills in what follows from
// the rest. It is called once; Start does it.
func (cfg *Config) Check() error {
	return cmp.Or(
		checkStore(cfg.Store),
		cfg.StoreTLS.check(cfg.Store),
		cfg.TLS.check(),
		cfg.Fleet.readKeys(),
		cfg.Auth.check(cfg),
		cfg.Encryption.check(),
		cfg.checkPort("grpc-addr", cfg.GRPCAddr),
		cfg.checkHTTP(),
		checkConns(cfg.MaxConnsPerIP),
		cfg.Tracing.check(cfg.Insecure),
		cfg.completeRuntime(),
		cfg.Fleet.check(cfg),
	)
}

func (cfg *Config) checkHTTP() error {
	if cfg.PprofAddr != "" {
		if err := checkListener("pprof-addr", cfg.PprofAddr, false); err != nil {
			return wrongf("--pprof-addr is a loopback address such as 127.0.0.1:6060, not %q: profiles show what is in memory", cfg.PprofAddr)
		}
	}
	if cfg.HTTPAddr == Off {
		return nil
	}
	for _, what := range cfg.HTTPServe {
		if what != serveAPI && what != serveMetrics && what != serveUI {
			return wrongf("--http-serve is of %s, %s and %s, not %q", serveAPI, serveMetrics, serveUI, what)
		}
	}
	if err := cfg.checkUIPrefix(); err != nil {
		return err
	}
	for _, origin := range cfg.CORSOrigins {
		if err := rest.CheckOrigin(origin); err != nil {
			return wrongf("--cors-origin: %v", err)
		}
	}
	return cfg.checkPort("http-addr", cfg.HTTPAddr)
}

// Logger writes to w what --log-level and --log-format ask for.
func (cfg *Config) Logger(w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(cfg.LogLevel)); err != nil {
		return nil, wrongf("--log-level is debug, info, warn or error, not %q", cfg.LogLevel)
	}
	o := &slog.HandlerOptions{Level: level}
	switch cfg.LogFormat {
	case "text":
		return slog.New(slog.NewTextHandler(w, o)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, o)), nil
	}
	return nil, wrongf("--log-format is text or json, not %q", cfg.LogFormat)
}

// defaultNode names the node after its machine and port: two servers on one
// machine differ, and a restarted one finds its own leases.
func defaultNode(grpcAddr string) string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "localhost"
	}
	_, port, _ := net.SplitHostPort(grpcAddr)
	return host + "-" + port
}

package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ddq-io/ddq/actors"
)

// serverConfig is what `ddq server` runs with. Its flags say what each field is.
type serverConfig struct {
	Store         string
	Data          string
	AllowVolatile bool
	GRPCAddr      string
	HTTPAddr      string
	PprofAddr     string
	Insecure      bool
	ShutdownGrace time.Duration
	LogLevel      string
	LogFormat     string
	Actors        actors.Config
	Fleet         fleetConfig
	backoff       backoffFlag // of new topics
}

func (cfg *serverConfig) flags(fs *pflag.FlagSet) {
	fs.StringVar(&cfg.Store, "store", storeEmbedded, "where tasks are kept: embedded, memory, or the URL of a Redis: redis://, redis-sentinel:// or redis-cluster:// and their rediss forms, or unix://")
	fs.StringVar(&cfg.Data, "data", "ddq-data", "directory of the embedded store")
	fs.BoolVar(&cfg.AllowVolatile, "allow-volatile", false, "accept a Redis that keeps nothing on disk")
	fs.StringVar(&cfg.GRPCAddr, "grpc-addr", "127.0.0.1:9090", "where to serve producers, workers and operators")
	fs.StringVar(&cfg.HTTPAddr, "http-addr", "127.0.0.1:8080", "where to serve /metrics, /healthz and /readyz, or off")
	fs.StringVar(&cfg.PprofAddr, "pprof-addr", "", "loopback address to serve profiles at (default none)")
	fs.BoolVar(&cfg.Insecure, "insecure", false, "accept listeners that other machines can reach, without authentication")
	fs.DurationVar(&cfg.ShutdownGrace, "shutdown-grace", 30*time.Second, "how long to wait for running tasks when stopping")
	fs.StringVar(&cfg.LogLevel, "log-level", "info", "debug, info, warn or error")
	fs.StringVar(&cfg.LogFormat, "log-format", "text", "text or json")
	cfg.Fleet.flags(fs)
	cfg.runtimeFlags(fs)
	markSettings(fs)
}

// check refuses what cannot work, before anything is opened.
func (cfg *serverConfig) check() error {
	return firstError(
		checkStore(cfg.Store),
		checkListener("grpc-addr", cfg.GRPCAddr, cfg.Insecure),
		cfg.checkHTTP(),
		cfg.completeRuntime(),
		cfg.Fleet.check(cfg),
	)
}

func (cfg *serverConfig) checkHTTP() error {
	if cfg.PprofAddr != "" {
		if err := checkListener("pprof-addr", cfg.PprofAddr, false); err != nil {
			return usagef("--pprof-addr is a loopback address such as 127.0.0.1:6060, not %q: profiles show what is in memory", cfg.PprofAddr)
		}
	}
	if cfg.HTTPAddr == off {
		return nil
	}
	return checkListener("http-addr", cfg.HTTPAddr, cfg.Insecure)
}

// logger writes to w what --log-level and --log-format ask for.
func (cfg *serverConfig) logger(w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(cfg.LogLevel)); err != nil {
		return nil, usagef("--log-level is debug, info, warn or error, not %q", cfg.LogLevel)
	}
	o := &slog.HandlerOptions{Level: level}
	switch cfg.LogFormat {
	case "text":
		return slog.New(slog.NewTextHandler(w, o)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, o)), nil
	}
	return nil, usagef("--log-format is text or json, not %q", cfg.LogFormat)
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

func (c *cli) serverCommand() *cobra.Command {
	cfg := &serverConfig{}
	cmd := &cobra.Command{
		Use:   "server",
		Short: "Run a server",
		Long: `Run a server until SIGTERM or SIGINT: it then takes no more work, waits for
running tasks up to --shutdown-grace, and exits 0.

Every flag is also a setting: --grpc-addr, the environment variable
DDQ_GRPC_ADDR, and grpc-addr in the YAML file that --config names.`,
		Example: `  ddq server
  ddq server --store redis://127.0.0.1:6379 --shutdown-grace 1m
  ddq server --store redis://10.0.0.9:6379 --grpc-addr 10.0.0.1:9090 --gossip-addr 10.0.0.1:7946 --gossip-key "$KEY" --join ddq.internal --insecure`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := cfg.logger(c.err)
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("addr") && c.addr != cfg.GRPCAddr {
				log.Warn("a server listens at --grpc-addr: --addr says where clients find one", "grpc-addr", cfg.GRPCAddr, "addr", c.addr)
			}
			return serve(cmd.Context(), cfg, log)
		},
	}
	cfg.flags(cmd.Flags())
	return cmd
}

// serve runs a node until ctx ends or one of its ports breaks.
func serve(ctx context.Context, cfg *serverConfig, log *slog.Logger) error {
	if err := cfg.check(); err != nil {
		return err
	}
	n, err := startNode(ctx, cfg, log)
	if err != nil {
		return err
	}
	var broken error
	select {
	case <-ctx.Done():
		log.Info("stopping", "grace", cfg.ShutdownGrace)
	case broken = <-n.failed:
	}
	if err := n.stop(); err != nil && broken == nil {
		return fmt.Errorf("stopping: %w", err)
	}
	log.Info("stopped")
	return broken
}

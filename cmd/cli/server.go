package cli

import (
	"github.com/spf13/cobra"

	"github.com/ddq-io/ddq/cmd/cli/session"
	"github.com/ddq-io/ddq/cmd/node"
)

func serverCommand(c *cli) *cobra.Command {
	cfg, print := &node.Config{}, false
	cmd := &cobra.Command{
		Use:   "server",
		Short: "Run a server",
		Long: `Run a server until SIGTERM or SIGINT: it then takes no more work, waits for
running tasks up to --shutdown-grace, and exits 0.

Every flag is also a setting: --grpc-addr, the environment variable
DDQ_GRPC_ADDR, and grpc-addr in the YAML file that --config names.
--print-config says what each is, and where that comes from.`,
		Example: `  ddq server
  ddq server --store redis://127.0.0.1:6379 --shutdown-grace 1m
  ddq server --store redis://10.0.0.9:6379 --grpc-addr 10.0.0.1:9090 --gossip-addr 10.0.0.1:7946 --gossip-key "$KEY" --join ddq.internal --insecure`,
		Args: session.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if print {
				return c.printConfig(cfg, cmd)
			}
			log, err := cfg.Logger(c.Err)
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("addr") && c.Addr != cfg.GRPCAddr {
				log.Warn("a server listens at --grpc-addr: --addr says where clients find one", "grpc-addr", cfg.GRPCAddr, "addr", c.Addr)
			}
			cfg.Supervision = node.SupervisionOf(c.Environ)
			return node.Serve(cmd.Context(), cfg, log)
		},
	}
	cfg.Flags(cmd.Flags())
	cmd.Flags().BoolVar(&print, "print-config", false, "print the settings, without secrets, and where each comes from, and start nothing")
	return cmd
}

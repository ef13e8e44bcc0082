package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/cmd/cli/session"
	"github.com/ddq-io/ddq/cmd/cli/terminal"
)

// healthView is what is printed of a server that answers.
type healthView struct {
	Status string `json:"status"` // SERVING or NOT_SERVING
}

// errNotServing is of a server that answers, and takes no tasks: it drains, or its store is out of reach.
var errNotServing = errors.New("the server answers, and does not serve: it drains, or its store is out of reach")

func healthCommand(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "health",
		Short: "Ask a server whether it serves; it needs no token",
		Long: `Ask a server whether it serves, for health checks of containers and scripts.
It needs no token. Exits with 0 when the server serves, and with 1 when it does
not, or cannot be reached.`,
		Example: "  ddq health --timeout 2s",
		Args:    session.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.Call(cmd, func(ctx context.Context, s *client.Client) error { return c.health(ctx, s) })
		},
	}
}

func (c *cli) health(ctx context.Context, s *client.Client) error {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	r, err := healthpb.NewHealthClient(s.Conn()).Check(ctx, &healthpb.HealthCheckRequest{})
	if err != nil {
		return &client.Error{Code: status.Code(err), Message: status.Convert(err).Message()}
	}
	if c.Output == terminal.FormatJSON {
		err = c.WriteJSON(healthView{r.GetStatus().String()})
	} else if r.GetStatus() == healthpb.HealthCheckResponse_SERVING {
		_, err = fmt.Fprintln(c.Out, "serving")
	}
	if r.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		return errors.Join(errNotServing, err)
	}
	return err
}

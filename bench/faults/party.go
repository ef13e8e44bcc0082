package faults

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ddq-io/ddq/bench/ledger"
)

// partyConfig is what a producer, worker or watcher process is told, as a JSON file.
type partyConfig struct {
	Role   string // producer, worker or watcher
	Name   string // of the process and its ledger
	Dir    string // of the ledger
	Addr   string // of the nodes
	Seed   uint64
	Mix    Mix
	Hold   time.Duration // the topic's visibility timeout
	Giving time.Duration // how long one call may take

	// Of a producer.
	Start  time.Time // when the plan begins
	For    time.Duration
	Rate   float64 // tasks a second
	Herd   int     // more tasks, all due HerdAt from the start
	HerdAt time.Duration

	// Of a worker.
	Concurrency int
	Work        time.Duration // the most that an ordinary handler takes

	Follows string // of a watcher: the one whose cursors it goes on with
}

// Orders to a party, one a line on its standard input. At the end of the input it
// finishes what it has begun and exits.
const orderHang = "hang" // hang 3s: handlers do not return for that long

// PartyCommand is the hidden command that a producer or worker process runs.
func PartyCommand() *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:    "party",
		Short:  "Be a producer, a worker or a watcher of a round of faults",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			var c partyConfig
			if err := json.Unmarshal(text, &c); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			return beParty(cmd.Context(), &c, cmd.InOrStdin())
		},
	}
	cmd.Flags().StringVar(&path, "party", "", "file that says who to be")
	return cmd
}

func beParty(ctx context.Context, c *partyConfig, orders io.Reader) (err error) {
	w, err := ledger.Create(c.Dir, c.Name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	switch c.Role {
	case "producer":
		return produce(ctx, c, w)
	case "worker":
		return work(ctx, c, w, orders)
	case "watcher":
		return watch(ctx, c, w, orders)
	}
	return fmt.Errorf("unknown role %q", c.Role)
}

// obey carries out orders until there are no more, then calls stop.
func obey(orders io.Reader, stop func(), hang func(time.Duration)) {
	defer stop()
	lines := bufio.NewScanner(orders)
	for lines.Scan() {
		order, arg, _ := strings.Cut(lines.Text(), " ")
		if d, err := time.ParseDuration(arg); err == nil && order == orderHang {
			hang(d)
		}
	}
}

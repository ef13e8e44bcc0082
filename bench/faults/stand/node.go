package stand

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/bench/box"
)

// Node is one server process.
type Node struct {
	*box.Process
	Name     string
	Addr     string // gRPC
	httpAddr string
	gossip   string // empty: it stands alone
}

// ready asks a node whether it serves.
func (nd *Node) ready(ctx context.Context) error { return box.Ready(ctx, nd.httpAddr) }

// sees asks a node whether it knows n active nodes.
func (nd *Node) sees(ctx context.Context, n int) error {
	return nd.Ask(func(c *client.Client) error {
		nodes, err := c.Nodes(ctx)
		active := 0
		for _, other := range nodes {
			if other.State == client.NodeActive {
				active++
			}
		}
		if err == nil && active != n {
			err = fmt.Errorf("%s sees %d active nodes, want %d", nd.Name, active, n)
		}
		return err
	})
}

// Ask makes calls to one node.
func (nd *Node) Ask(do func(*client.Client) error) error {
	c, err := client.Dial(nd.Addr, client.Config{Timeout: 10 * time.Second})
	if err != nil {
		return err
	}
	return errors.Join(do(c), c.Close())
}

// Terminate stops a node as an operator would, and complains when it did not end well.
func (nd *Node) Terminate() error {
	if err := nd.Stop(); err != nil {
		return err
	}
	if code := nd.ExitCode(); code != 0 {
		return fmt.Errorf("%s exited %d:\n%s", nd.Name, code, nd.Tail())
	}
	return nil
}

// ReadyTasks asks a node how many tasks of a topic wait in its memory for a worker.
func (nd *Node) ReadyTasks(ctx context.Context, topic string) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+nd.httpAddr+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), fmt.Sprintf("ddq_ready_tasks{topic=%q} ", topic)); ok {
			n, err := strconv.ParseFloat(text, 64)
			return int64(n), err
		}
	}
	return 0, lines.Err()
}

package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/bench"
)

// upWithin bounds how long processes may take to be ready.
const upWithin = time.Minute

// stand is the system under test: the nodes and the store behind them.
type stand struct {
	box     *bench.Box
	bin     string
	net     *network // nil: everything is on loopback
	disk    *disk    // of the store, nil: as everything else
	skew    *skew    // of the store, nil: as everything else
	relayed bool     // the nodes reach the store through relay
	options []string // more flags of the nodes
	relay   *relay   // nil: none, or not yet
	store   store
	nodes   []*node
}

// node is one server process.
type node struct {
	*bench.Process
	name     string
	addr     string // gRPC
	httpAddr string
	gossip   string // empty: it stands alone
}

// raise starts the store and n nodes on it, and waits until they know each other.
func (s *stand) raise(ctx context.Context, storeName string, n int) (err error) {
	if s.store, err = s.open(ctx, storeName); err != nil {
		return err
	}
	for i := range n {
		nd, err := s.newNode(i, n > 1)
		if err != nil {
			return err
		}
		s.nodes = append(s.nodes, nd)
	}
	for _, nd := range s.nodes {
		if err := s.start(nd); err != nil {
			return err
		}
	}
	return s.awaitWhole(ctx)
}

func (s *stand) newNode(i int, gossips bool) (*node, error) {
	nd := &node{name: fmt.Sprint("n", i)}
	host, err := s.host(nd.name)
	if err != nil {
		return nil, err
	}
	nd.addr, nd.httpAddr = net.JoinHostPort(host, "9090"), net.JoinHostPort(host, "8080")
	if gossips {
		nd.gossip = net.JoinHostPort(host, "7946")
	}
	return nd, nil
}

// host is the address of a place: in the network where there is one, else one of
// loopback that nobody else has, so that a process that comes back finds its ports free.
func (s *stand) host(place string) (string, error) {
	if s.net != nil {
		return s.net.host(place)
	}
	for range 100 {
		host := fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(250), 1+rand.IntN(250), 1+rand.IntN(250))
		l, err := net.Listen("tcp", net.JoinHostPort(host, "9090"))
		if err == nil {
			return host, l.Close()
		}
	}
	return "", errors.New("no address of loopback is free: faults take a system on which all of 127.0.0.0/8 is")
}

// start begins the first life of a node.
func (s *stand) start(nd *node) (err error) {
	data, err := s.box.Mkdir("data-" + nd.name)
	if err != nil {
		return err
	}
	if s.disk != nil {
		data = filepath.Join(s.disk.dir, nd.name)
	}
	args := []string{
		s.bin, "server", "--store", s.store.url(), "--data", data, "--node-name", nd.name,
		"--grpc-addr", nd.addr, "--http-addr", nd.httpAddr, "--log-level", "info", "--shutdown-grace", "5s", "--insecure",
	}
	if nd.gossip != "" {
		args = append(args, "--gossip-addr", nd.gossip, "--gossip-profile", "local", "--join", s.nodes[0].gossip)
		if len(s.nodes) > 1 {
			args = append(args, "--join", s.nodes[1].gossip)
		}
	}
	cmd := s.net.in(nd.name, append(args, s.options...)...)
	cmd.Env, cmd.Dir = bench.PlainEnv(), s.box.Dir
	nd.Process, err = s.box.Start(nd.name, cmd)
	return err
}

// addr is every node's, as clients take it.
func (s *stand) addr() string {
	addrs := make([]string, len(s.nodes))
	for i, nd := range s.nodes {
		addrs[i] = nd.addr
	}
	return strings.Join(addrs, ",")
}

// awaitWhole waits until every node is ready and sees all the others.
func (s *stand) awaitWhole(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, upWithin)
	defer cancel()
	for _, nd := range s.nodes {
		if err := nd.WaitReady(ctx, nd.ready); err != nil {
			return err
		}
	}
	for _, nd := range s.nodes {
		if err := nd.WaitReady(ctx, func(ctx context.Context) error { return nd.sees(ctx, len(s.nodes)) }); err != nil {
			return err
		}
	}
	return nil
}

// ready asks a node whether it serves.
func (nd *node) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+nd.httpAddr+"/readyz", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("readyz answers %s", resp.Status)
	}
	return nil
}

// sees asks a node whether it knows n active nodes.
func (nd *node) sees(ctx context.Context, n int) error {
	return nd.ask(func(c *client.Client) error {
		nodes, err := c.Nodes(ctx)
		active := 0
		for _, other := range nodes {
			if other.State == client.NodeActive {
				active++
			}
		}
		if err == nil && active != n {
			err = fmt.Errorf("%s sees %d active nodes, want %d", nd.name, active, n)
		}
		return err
	})
}

// ask makes calls to one node.
func (nd *node) ask(do func(*client.Client) error) error {
	c, err := client.Dial(nd.addr, client.Config{Timeout: 10 * time.Second})
	if err != nil {
		return err
	}
	return errors.Join(do(c), c.Close())
}

// terminate stops a node as an operator would, and complains when it did not end well.
func (nd *node) terminate() error {
	if err := nd.Stop(); err != nil {
		return err
	}
	if code := nd.ExitCode(); code != 0 {
		return fmt.Errorf("%s exited %d:\n%s", nd.name, code, nd.Tail())
	}
	return nil
}

// close takes everything away that the processes used, which must have ended.
func (s *stand) close() error {
	var err error
	if s.store != nil {
		err = s.store.close()
	}
	return errors.Join(err, s.relay.close(), s.net.close(), s.disk.close())
}

package stand

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/ddq-io/ddq/bench/box"
)

// Config is what a stand is made of.
type Config struct {
	Store   string   // one of Stores
	Nodes   int      // one on the embedded store, whatever this is
	Disk    string   // the kind of disk that the store is on, see newDisk
	Skewed  bool     // the store has a clock that can be set
	Network bool     // nodes and Redis have addresses of their own, and cables that can be cut
	Relayed bool     // the nodes reach the store through a relay
	Flags   []string // more of them, of the nodes
	First   string   // the ddq of the first life of each node; empty: that of the others
}

// Stand is the system under test: the nodes and the store behind them, with what can be
// broken of what they run on. It knows nothing of who uses it.
type Stand struct {
	Store Store
	Nodes []*Node
	Net   *Network // nil: everything is on loopback
	Disk  *Disk    // of the store, nil: as everything else
	Relay *Relay   // nil: none, or not yet

	box    *box.Box
	bin    string
	config Config
	skew   *skew // of the store, nil: as everything else
	shift  shift
}

// UpWithin bounds how long processes may take to be ready.
const UpWithin = time.Minute

// New returns one that is still empty, of the ddq at a path.
func New(ddq string) (*Stand, error) {
	b, err := box.New()
	if err != nil {
		return nil, err
	}
	bin, err := exec.LookPath(ddq)
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return &Stand{box: b, bin: bin}, nil
}

// Raise starts the store and the nodes on it, and waits until they know each other. Stop
// and Close undo what there is of it also when it fails.
func (s *Stand) Raise(ctx context.Context, c Config) (err error) {
	if c.Store == Embedded {
		c.Nodes = 1
	}
	s.config = c
	if err := s.layGround(); err != nil {
		return err
	}
	if s.Store, err = s.open(ctx, c.Store); err != nil {
		return err
	}
	for i := range c.Nodes {
		nd, err := s.newNode(i, c.Nodes > 1)
		if err != nil {
			return err
		}
		s.Nodes = append(s.Nodes, nd)
	}
	for _, nd := range s.Nodes {
		if err := s.start(nd); err != nil {
			return err
		}
	}
	return s.AwaitWhole(ctx)
}

// layGround makes what the processes run on: disk, clock and network.
func (s *Stand) layGround() (err error) {
	if s.config.Disk != noDisk {
		dir, err := s.box.Mkdir("disk")
		if err != nil {
			return err
		}
		if s.Disk, err = newDisk(s.box, s.config.Disk, dir); err != nil {
			return err
		}
	}
	if s.config.Skewed && s.config.Store != Embedded {
		if s.skew, err = newSkew(s.box); err != nil {
			return err
		}
	}
	if s.config.Network {
		s.Net, err = newNetwork()
	}
	return err
}

// Launch runs ddq beside the nodes, with its standard input: in a place of its own behind
// the network if it is to be apart and there is one.
func (s *Stand) Launch(name string, apart bool, args ...string) (*box.Process, io.WriteCloser, error) {
	cmd := exec.Command(s.bin, args...)
	if s.Net != nil && apart {
		if _, err := s.Net.host(name); err != nil {
			return nil, nil, err
		}
		cmd = s.Net.in(name, cmd.Args...)
	}
	cmd.Env, cmd.Dir = box.PlainEnv(), s.box.Dir
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	p, err := s.box.Start(name, cmd)
	return p, in, err
}

// Dir is where processes work and print to.
func (s *Stand) Dir() string { return s.box.Dir }

// Stop ends all processes.
func (s *Stand) Stop() error { return s.box.Stop() }

// GossipPort is where nodes gossip that have addresses of their own.
const GossipPort = 7946

func (s *Stand) newNode(i int, gossips bool) (*Node, error) {
	nd := &Node{Name: fmt.Sprint("n", i)}
	var err error
	if nd.Addr, err = s.addr(nd.Name, "9090"); err != nil {
		return nil, err
	}
	if nd.httpAddr, err = s.addr(nd.Name, "8080"); err != nil {
		return nil, err
	}
	if gossips {
		nd.gossip, err = s.addr(nd.Name, strconv.Itoa(GossipPort))
	}
	return nd, err
}

// addr is where a process of a place listens: in the network, where there is one, at the
// port that is asked for; else at one of loopback that nobody else has.
func (s *Stand) addr(place, port string) (string, error) {
	if s.Net == nil {
		return s.box.Addr()
	}
	host, err := s.Net.host(place)
	return net.JoinHostPort(host, port), err
}

// start begins the first life of a node.
func (s *Stand) start(nd *Node) (err error) {
	data, err := s.box.Mkdir("data-" + nd.Name)
	if err != nil {
		return err
	}
	if s.Disk != nil {
		data = filepath.Join(s.Disk.dir, nd.Name)
	}
	bin := cmp.Or(s.config.First, s.bin)
	args := []string{
		bin, "server", "--store", s.Store.url(), "--data", data, "--node-name", nd.Name,
		"--grpc-addr", nd.Addr, "--http-addr", nd.httpAddr, "--log-level", "info", "--shutdown-grace", "5s", "--insecure",
	}
	if nd.gossip != "" {
		args = append(args, "--gossip-addr", nd.gossip, "--gossip-profile", "local", "--join", s.Nodes[0].gossip)
		if len(s.Nodes) > 1 {
			args = append(args, "--join", s.Nodes[1].gossip)
		}
	}
	cmd := s.Net.in(nd.Name, append(args, s.config.Flags...)...)
	cmd.Env, cmd.Dir = box.PlainEnv(), s.box.Dir
	if nd.Process, err = s.box.Start(nd.Name, cmd); err != nil {
		return err
	}
	nd.Become(bin, s.bin)
	return nil
}

// Addr is every node's, as clients take it.
func (s *Stand) Addr() string { return AddrOf(s.Nodes) }

// AddrOf is that of some nodes.
func AddrOf(nodes []*Node) string {
	addrs := make([]string, len(nodes))
	for i, nd := range nodes {
		addrs[i] = nd.Addr
	}
	return strings.Join(addrs, ",")
}

// HTTPAddrsOf are those of some nodes.
func HTTPAddrsOf(nodes []*Node) []string {
	addrs := make([]string, len(nodes))
	for i, nd := range nodes {
		addrs[i] = nd.httpAddr
	}
	return addrs
}

// AwaitWhole waits until every node is ready and sees all the others.
func (s *Stand) AwaitWhole(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, UpWithin)
	defer cancel()
	for _, nd := range s.Nodes {
		if err := nd.WaitReady(ctx, nd.ready); err != nil {
			return err
		}
	}
	for _, nd := range s.Nodes {
		if err := nd.WaitReady(ctx, func(ctx context.Context) error { return nd.sees(ctx, len(s.Nodes)) }); err != nil {
			return err
		}
	}
	return nil
}

// Close takes everything away that the processes used, which must have ended.
func (s *Stand) Close() error {
	var err error
	if s.Store != nil {
		err = s.Store.close()
	}
	return errors.Join(err, s.Relay.close(), s.Net.close(), s.Disk.close(), s.box.Close())
}

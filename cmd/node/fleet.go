package node

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/api/peer"
	"github.com/ddq-io/ddq/cluster"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/timer/zones"
)

// FleetConfig is how a node finds others. Without a gossip address it stands alone.
type FleetConfig struct {
	GossipAddr      string
	GossipAdvertise string
	GossipKeys      []string
	GossipProfile   string
	Join            []string
	Zone            string
	Weight          int

	keys []string // of GossipKeys, those in files included; set by readKeys
}

func (f *FleetConfig) flags(fs *pflag.FlagSet) {
	fs.StringVar(&f.GossipAddr, "gossip-addr", "", "where to gossip with the other nodes of a fleet, such as 127.0.0.1:7946 (default none: this node stands alone)")
	fs.StringVar(&f.GossipAdvertise, "gossip-advertise", "", "where other nodes reach the gossip address, when that differs")
	fs.StringSliceVar(&f.GossipKeys, "gossip-key", nil, "keys of 16, 24 or 32 bytes in base64 or hex that encrypt gossip, or file:PATH, which has one on each line and is followed; the first is used to send")
	fs.StringVar(&f.GossipProfile, "gossip-profile", "", "how eagerly nodes watch each other: local, lan or wan (default local on loopback, else lan)")
	fs.StringSliceVar(&f.Join, "join", nil, "gossip addresses of other nodes, or a host name for all of them")
	fs.StringVar(&f.Zone, "zone", "", "where this node runs, for people")
	fs.IntVar(&f.Weight, "weight", 0, "this node's share of the shards, against the others' (default 100)")
}

// alone reports whether the node is no part of a fleet.
func (f *FleetConfig) alone() bool { return f.GossipAddr == "" }

func (f *FleetConfig) check(cfg *Config) error {
	switch {
	case f.alone() && len(f.Join) > 0:
		return wrongf("--join needs --gossip-addr, where this node is to be reached itself")
	case f.alone():
		return nil
	case cfg.Store == Embedded || cfg.Store == Memory:
		return wrongf("--gossip-addr: the %s store belongs to one node; a fleet shares a Redis", cfg.Store)
	case f.Weight < 0:
		return wrongf("--weight must not be negative, not %d", f.Weight)
	}
	return cmp.Or(f.completeAddr(&cfg.Actors), f.checkGossip(cfg.Insecure))
}

// readKeys reads the files of --gossip-key.
func (f *FleetConfig) readKeys() (err error) {
	if f.keys, err = readGossipKeys(f.GossipKeys); err != nil {
		return wrongf("--gossip-key: %v", err)
	}
	return nil
}

func (f *FleetConfig) checkGossip(insecure bool) error {
	if len(f.keys) > 0 {
		return nil // encrypted, and strangers are not heard
	}
	return checkListener("gossip-addr", f.GossipAddr, insecure)
}

// completeAddr leaves the host out of an address that stands for every interface:
// others find the node where it gossips.
func (f *FleetConfig) completeAddr(a *actors.Config) error {
	host, port, err := net.SplitHostPort(a.Addr)
	if err != nil || port == "0" {
		return wrongf("--advertise-addr %q: other nodes of the fleet need host:port to dial", a.Addr)
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		a.Addr = net.JoinHostPort("", port)
	}
	return nil
}

// joinFleet makes the node a member, which owns nothing yet; nil when it stands alone.
func joinFleet(ctx context.Context, cfg *Config, log *slog.Logger, reg *prometheus.Registry) (*gossip, error) {
	f := &cfg.Fleet
	if f.alone() {
		return nil, nil
	}
	m, err := cluster.Start(ctx, cluster.Config{
		Node: cluster.Node{
			Name: cfg.Actors.Node, Addr: cfg.Actors.Addr, Zone: f.Zone, Version: ReadBuild().Version, Weight: f.Weight, Tells: true, Queues: true,
		},
		Addr:      f.GossipAddr,
		Advertise: f.GossipAdvertise,
		Join:      f.Join,
		Keys:      f.keys,
		Insecure:  cfg.Insecure,
		Profile:   cluster.Profile(f.GossipProfile),
	}, log, reg)
	if err != nil {
		return nil, startError{err}
	}
	return &gossip{
		Members: m, peers: peer.New(peer.Config{DialOptions: cfg.TLS.dialOptions(), Credential: cfg.credential()}, log), rules: ruleTeller{fleet: m, log: log},
	}, nil
}

// gossip is the members as the runtime sees them.
type gossip struct {
	*cluster.Members
	peers *peer.Peers
	rules ruleTeller
}

// View returns who is there now.
func (f *gossip) View() fleet.View { return newView(f.Nodes()) }

// SetDraining tells the others whether this node wants shards.
func (f *gossip) SetDraining(draining bool) error {
	if draining {
		return f.SetState(cluster.Draining)
	}
	return f.SetState(cluster.Active)
}

// close leaves the fleet and breaks the links.
func (f *gossip) close(ctx context.Context) error {
	f.rules.stop()
	return errors.Join(f.Leave(ctx), f.peers.Close())
}

// view is the members at one moment, and where shards belong.
type view struct {
	nodes     []cluster.Node
	placement *cluster.Placement
}

func newView(nodes []cluster.Node) *view {
	return &view{nodes, cluster.NewPlacement(nodes)}
}

var memberStates = [...]fleet.MemberState{
	cluster.Joining:  fleet.MemberJoining,
	cluster.Active:   fleet.MemberActive,
	cluster.Draining: fleet.MemberDraining,
}

func (v *view) Members() []fleet.Member {
	members := make([]fleet.Member, len(v.nodes))
	for i, n := range v.nodes {
		members[i] = fleet.Member{
			Name: n.Name, Addr: n.Addr, Zone: n.Zone, Version: n.Version, State: memberStates[n.State], Old: !n.Tells, NoQueues: !n.Queues, Hosts: n.Callers(), Rules: zones.Rules(n.Rules),
		}
	}
	return members
}

func (v *view) Owner(s store.Shard) string {
	n, _ := v.placement.Owner(s.Topic, s.N)
	return n.Name
}

func (v *view) Without(names ...string) fleet.View {
	nodes := slices.Clone(v.nodes)
	for i := range nodes {
		if slices.Contains(names, nodes[i].Name) {
			nodes[i].State = cluster.Draining
		}
	}
	return newView(nodes)
}

// leaveTimeout bounds the goodbye.
const leaveTimeout = 3 * time.Second

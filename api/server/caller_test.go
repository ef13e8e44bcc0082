package server

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/server/status/statustest"
	"github.com/ddq-io/ddq/store"
)

// clientAddr is where the calls of tests come from.
var clientAddr = netip.MustParseAddrPort("10.0.0.2:40000")

// ipListener gives its connections the address of a client.
type ipListener struct{ net.Listener }

func (l ipListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return ipConn{conn}, err
}

type ipConn struct{ net.Conn }

func (ipConn) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(clientAddr) }

// stillFleet is a fleet that stays as it is; its first member owns everything.
type stillFleet struct{ members []fleet.Member }

func (f stillFleet) View() fleet.View             { return f }
func (f stillFleet) Changed() <-chan struct{}     { return nil }
func (f stillFleet) SetDraining(bool) error       { return nil }
func (f stillFleet) Members() []fleet.Member      { return f.members }
func (f stillFleet) Owner(store.Shard) string     { return f.members[0].Name }
func (f stillFleet) Without(...string) fleet.View { return f }

// idlePeers are other nodes that hear nothing.
type idlePeers struct{ fleet.Peers }

func (idlePeers) Keep([]fleet.Member)               {}
func (idlePeers) Notify(fleet.Member, fleet.Notice) {}

func (idlePeers) Describe(context.Context, fleet.Member, fleet.StatusQuery) (fleet.PeerStatus, error) {
	return fleet.PeerStatus{}, errors.New("it hears nothing")
}

func (idlePeers) Workers(context.Context, fleet.Member, fleet.WorkersQuery) ([]fleet.Worker, error) {
	return nil, errors.New("it hears nothing")
}

func (idlePeers) Audit(context.Context, fleet.Member, fleet.AuditQuery) (fleet.AuditPage, error) {
	return fleet.AuditPage{}, errors.New("it hears nothing")
}

func (idlePeers) VerifyAudit(context.Context, fleet.Member) (fleet.AuditChain, error) {
	return fleet.AuditChain{}, errors.New("it hears nothing")
}

// fleetBubble runs test on a node of a fleet with another one, b, which calls come from.
func fleetBubble(t *testing.T, config Config, test func(r *rig)) {
	memberBubble(t, config, []netip.Addr{clientAddr.Addr()}, test)
}

// memberBubble is fleetBubble with the addresses of b.
func memberBubble(t *testing.T, config Config, hosts []netip.Addr, test func(r *rig)) {
	synctest.Test(t, func(t *testing.T) {
		self := fleet.Member{Name: "a", Addr: "10.0.0.1:9090", State: fleet.MemberActive, Hosts: []netip.Addr{netip.MustParseAddr("10.0.0.1")}}
		other := fleet.Member{Name: "b", Addr: "b:9090", State: fleet.MemberActive, Hosts: hosts}
		r := newRig(t, config, actors.Config{Node: "a"}, self, other)
		defer r.close()
		test(r)
	})
}

// greet subscribes as a node, and returns how that ends when it is refused.
func (r *rig) greet(node string, onDemand bool) statustest.Seen {
	r.Helper()
	s := r.open()
	s.send(&ddqv1.SubscribeRequest{Hello: &ddqv1.Hello{Topic: "t", OnDemand: onDemand, Node: node}})
	f, err := s.Recv()
	if err == nil {
		r.Fatalf("node %q is answered %v", node, f)
	}
	return statustest.Look(r.T, err)
}

// A name alone makes no client a node, nor does it become a worker instead.
func TestClientThatPosesAsANodeIsRefused(t *testing.T) {
	elsewhere := []netip.Addr{netip.MustParseAddr("10.0.0.3"), netip.MustParseAddr("127.0.0.1")}
	for name, c := range map[string]struct {
		node   string
		code   codes.Code
		reason string
		retry  time.Duration
	}{
		"the name of a member elsewhere": {"b", codes.PermissionDenied, "NOT_A_NODE", 0},
		"that of the node itself":        {"a", codes.PermissionDenied, "NOT_A_NODE", 0},
		"that of nobody yet":             {"c", codes.Unavailable, "UNKNOWN_NODE", time.Second},
		"a malformed one":                {"../x\x01", codes.InvalidArgument, "BAD_NAME", 0},
	} {
		t.Run(name, func(t *testing.T) {
			memberBubble(t, Config{}, elsewhere, func(r *rig) {
				must(r, created("t", nil)(r))
				for _, onDemand := range []bool{true, false} {
					if got := r.greet(c.node, onDemand); got.Code != c.code || got.Reason != c.reason || got.Retry != c.retry {
						r.Errorf("on demand %v: %+v", onDemand, got)
					}
				}
			})
		})
	}
}

func TestNobodyIsANodeOfNoFleet(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		must(r, created("t", nil)(r))
		if got := r.greet("b", true); got.Code != codes.PermissionDenied || got.Reason != "NOT_A_NODE" {
			r.Errorf("%+v", got)
		}
	})
}

// Only members tell what they know of shards, and make a node give them up.
func TestPeersAreMembers(t *testing.T) {
	calls := map[string]func(r *rig, p ddqv1.PeerServiceClient) error{
		"notify": func(r *rig, p ddqv1.PeerServiceClient) error {
			stream, err := p.Notify(r.Context())
			must(r, err)
			_, err = stream.CloseAndRecv()
			return err
		},
		"drain": func(r *rig, p ddqv1.PeerServiceClient) error {
			_, err := p.DrainPeer(r.Context(), &ddqv1.DrainPeerRequest{Draining: true})
			return err
		},
		"release": func(r *rig, p ddqv1.PeerServiceClient) error {
			must(r, created("t", nil)(r))
			_, err := p.ReleasePeerShard(r.Context(), &ddqv1.ReleasePeerShardRequest{Topic: "t"})
			return err
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			fleetBubble(t, Config{}, func(r *rig) {
				if got := statustest.Look(t, call(r, ddqv1.NewPeerServiceClient(r.conn))); got.Reason == "NOT_A_NODE" {
					t.Errorf("a member is told %+v", got)
				}
			})
			memberBubble(t, Config{}, []netip.Addr{netip.MustParseAddr("10.0.0.3")}, func(r *rig) {
				if got := statustest.Look(t, call(r, ddqv1.NewPeerServiceClient(r.conn))); got.Code != codes.PermissionDenied || got.Reason != "NOT_A_NODE" {
					t.Errorf("a client is told %+v", got)
				}
			})
		})
	}
}

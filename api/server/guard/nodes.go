package guard

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"

	"google.golang.org/grpc/credentials"
	grpcpeer "google.golang.org/grpc/peer"

	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/auth"
)

// Nodes tells whether who calls is a node of the fleet.
type Nodes struct {
	self      string // the name of this node
	members   *fleet.Membership
	log       *slog.Logger
	strangers sync.Map // names of members that others called in, so that each is logged once
}

// NewNodes returns what knows the members, of which self is this node.
func NewNodes(members *fleet.Membership, self string, log *slog.Logger) *Nodes {
	return &Nodes{members: members, self: self, log: log}
}

// Check says why a caller is not the node that it names itself after; nil when it
// may be. Until callers have certificates, that is told by the addresses that gossip
// knows of the member. A node may hear of another one later than that one calls, so
// a name that is not known is to be tried again.
func (n *Nodes) Check(ctx context.Context, name string) *problem.Error {
	if n.members.Alone() {
		return notANode("node", "this node has no fleet")
	}
	if name == n.self {
		return notANode("node", "%q is this node", name)
	}
	m, known := n.members.Member(name)
	if !known {
		return &problem.Error{Kind: problem.Unavailable, Reason: "UNKNOWN_NODE", Field: "node", RetryAfter: problem.RetrySoon,
			Message: fmt.Sprintf("node %q is not known here yet", name)}
	}
	if addr := callerAddr(ctx); !m.CallsFrom(addr) {
		if _, told := n.strangers.LoadOrStore(name, true); !told {
			n.log.WarnContext(ctx, "call in a node's name from an address that is not its own", "node", name, "addr", addr)
		}
		return notANode("node", "node %q does not call from %s", name, addr)
	}
	return nil
}

// CheckAny says why a caller cannot be another node of the members.
func (n *Nodes) CheckAny(ctx context.Context) *problem.Error {
	if n.members.Alone() {
		return notANode("", "this node has no fleet")
	}
	addr := callerAddr(ctx)
	view := n.members.View()
	if view == nil || !slices.ContainsFunc(view.Members(), func(m fleet.Member) bool { return m.CallsFrom(addr) }) {
		return notANode("", "no node calls from %s", addr)
	}
	return nil
}

func notANode(field, format string, args ...any) *problem.Error {
	return &problem.Error{Kind: problem.Denied, Reason: "NOT_A_NODE", Field: field, Message: fmt.Sprintf(format, args...)}
}

// withOrigin returns a context that says where a call comes from, which calls over HTTP bring with
// them.
func withOrigin(ctx context.Context) context.Context {
	if _, known := auth.OriginOf(ctx); known {
		return ctx
	}
	p, ok := grpcpeer.FromContext(ctx)
	if !ok {
		return ctx
	}
	var state *tls.ConnectionState
	if info, secure := p.AuthInfo.(credentials.TLSInfo); secure {
		state = &info.State
	}
	return auth.WithOrigin(ctx, auth.OriginFrom(p.Addr, state))
}

// callerAddr is where a call comes from; the zero address when that is not over IP.
func callerAddr(ctx context.Context) netip.Addr {
	if p, ok := grpcpeer.FromContext(ctx); ok {
		if tcp, ok := p.Addr.(*net.TCPAddr); ok {
			return tcp.AddrPort().Addr()
		}
	}
	return netip.Addr{}
}

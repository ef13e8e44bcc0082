package audits

import (
	"context"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/service/trail"
	"github.com/ddq-io/ddq/api/wire"
)

const (
	defaultPage = 100
	maxPage     = 1000
)

// Server serves AuditService.
type Server struct {
	ddqv1.UnsafeAuditServiceServer
	trail *trail.Trail
}

var _ ddqv1.AuditServiceServer = (*Server)(nil)

// New serves what the nodes have written down.
func New(t *trail.Trail) *Server { return &Server{trail: t} }

// ListAuditRecords returns records of all nodes.
func (s *Server) ListAuditRecords(ctx context.Context, r *ddqv1.ListAuditRecordsRequest) (*ddqv1.ListAuditRecordsResponse, error) {
	filter, err := filterOf(r)
	if err != nil {
		return nil, err
	}
	size := min(int(r.GetPageSize()), maxPage)
	switch {
	case size < 0:
		return nil, wire.Invalid("OUT_OF_RANGE_FIELD", "page_size", "must not be negative")
	case size == 0:
		size = defaultPage
	}
	page, err := s.trail.List(ctx, filter, size, r.GetPageToken())
	if err != nil {
		return nil, err
	}
	out := &ddqv1.ListAuditRecordsResponse{NextPageToken: page.Next, SilentNodes: page.Silent, NodesWithoutLog: page.None}
	for i := range page.Lines {
		out.Records = append(out.Records, recordWire(&page.Lines[i]))
	}
	return out, nil
}

// VerifyAudit says of each node whether its log is as it was written.
func (s *Server) VerifyAudit(ctx context.Context, _ *ddqv1.VerifyAuditRequest) (*ddqv1.VerifyAuditResponse, error) {
	out := new(ddqv1.VerifyAuditResponse)
	for _, found := range s.trail.Verify(ctx) {
		chain := wire.AuditChain(&found.AuditChain)
		chain.Node = found.Node
		out.Chains = append(out.Chains, chain)
	}
	return out, nil
}

// Peer answers other nodes about the log of this one.
type Peer struct {
	Log trail.Log
	// Nodes says why a caller is no node of the fleet.
	Nodes interface {
		CheckAny(ctx context.Context) *problem.Error
	}
}

// ListPeerAudit returns lines of the log.
func (p *Peer) ListPeerAudit(ctx context.Context, r *ddqv1.ListPeerAuditRequest) (*ddqv1.ListPeerAuditResponse, error) {
	if err := p.Nodes.CheckAny(ctx); err != nil {
		return nil, err
	}
	filter, err := filterOf(r.GetFilter())
	if err != nil {
		return nil, err
	}
	page, err := p.Log.Read(queryOf(filter, r))
	if err != nil {
		return nil, err
	}
	out := &ddqv1.ListPeerAuditResponse{None: page.None, End: page.End, Next: page.Next, ReachedUnixUs: page.Reached.UnixMicro()}
	for _, l := range page.Lines {
		out.Lines = append(out.Lines, &ddqv1.PeerAuditLine{Text: l.Text, At: l.At, TimeUnixUs: l.Time.UnixMicro(), Altered: l.Altered})
	}
	return out, nil
}

// VerifyPeerAudit says whether the log is as it was written.
func (p *Peer) VerifyPeerAudit(ctx context.Context, _ *ddqv1.VerifyPeerAuditRequest) (*ddqv1.VerifyPeerAuditResponse, error) {
	if err := p.Nodes.CheckAny(ctx); err != nil {
		return nil, err
	}
	chain := p.Log.Check(ctx)
	return &ddqv1.VerifyPeerAuditResponse{Chain: wire.AuditChain(&chain)}, nil
}

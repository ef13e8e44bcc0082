package peer

import (
	"context"
	"time"

	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/wire"
)

// Audit asks a node for lines of its audit log.
func (p *Peers) Audit(ctx context.Context, to fleet.Member, q fleet.AuditQuery) (found fleet.AuditPage, err error) {
	n, err := p.node(to)
	if err != nil {
		return found, err
	}
	r, err := n.peer.ListPeerAudit(ctx, auditRequest(&q))
	if err != nil {
		return found, failureOf(to, err)
	}
	found = fleet.AuditPage{None: r.GetNone(), End: r.GetEnd(), Next: r.GetNext(), Reached: time.UnixMicro(r.GetReachedUnixUs()).UTC()}
	for _, l := range r.GetLines() {
		found.Lines = append(found.Lines, fleet.AuditLine{Text: l.GetText(), At: l.GetAt(), Time: time.UnixMicro(l.GetTimeUnixUs()).UTC(), Altered: l.GetAltered()})
	}
	return found, nil
}

func auditRequest(q *fleet.AuditQuery) *ddqv1.ListPeerAuditRequest {
	filter := &ddqv1.ListAuditRecordsRequest{
		Caller: q.Caller, Method: q.Method, Resource: q.Resource, Outcome: wire.AuditOutcome(q.Outcome),
		FromUnixMs: wire.UnixMillis(q.From), BeforeUnixMs: wire.UnixMillis(q.Before),
	}
	return &ddqv1.ListPeerAuditRequest{Filter: filter, Before: q.Until, Most: int32(q.Most), Bytes: int32(q.Bytes)} //nolint:gosec // they are bounded
}

// VerifyAudit asks a node whether its audit log is as it was written.
func (p *Peers) VerifyAudit(ctx context.Context, to fleet.Member) (fleet.AuditChain, error) {
	n, err := p.node(to)
	if err != nil {
		return fleet.AuditChain{}, err
	}
	r, err := n.peer.VerifyPeerAudit(ctx, &ddqv1.VerifyPeerAuditRequest{})
	if err != nil {
		return fleet.AuditChain{}, failureOf(to, err)
	}
	return wire.ReadAuditChain(r.GetChain()), nil
}

package peer

import (
	"context"
	"time"

	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/wire"
)

var auditOutcomes = [...]ddqv1.AuditOutcome{
	fleet.AuditAsked:   ddqv1.AuditOutcome_AUDIT_OUTCOME_ASKED,
	fleet.AuditDone:    ddqv1.AuditOutcome_AUDIT_OUTCOME_DONE,
	fleet.AuditFailed:  ddqv1.AuditOutcome_AUDIT_OUTCOME_FAILED,
	fleet.AuditRefused: ddqv1.AuditOutcome_AUDIT_OUTCOME_REFUSED,
	fleet.AuditStarted: ddqv1.AuditOutcome_AUDIT_OUTCOME_STARTED,
	fleet.AuditCut:     ddqv1.AuditOutcome_AUDIT_OUTCOME_CUT,
}

var auditStates = map[ddqv1.AuditChainState]fleet.AuditState{
	ddqv1.AuditChainState_AUDIT_CHAIN_STATE_WHOLE:    fleet.AuditWhole,
	ddqv1.AuditChainState_AUDIT_CHAIN_STATE_BROKEN:   fleet.AuditBroken,
	ddqv1.AuditChainState_AUDIT_CHAIN_STATE_CHECKING: fleet.AuditChecking,
	ddqv1.AuditChainState_AUDIT_CHAIN_STATE_NONE:     fleet.AuditNone,
	ddqv1.AuditChainState_AUDIT_CHAIN_STATE_UNKNOWN:  fleet.AuditUnknown,
}

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
	filter := &ddqv1.ListAuditRecordsRequest{Caller: q.Caller, Method: q.Method, Resource: q.Resource, Outcome: wire.Enum(auditOutcomes[:], q.Outcome)}
	if !q.From.IsZero() {
		filter.FromUnixMs = q.From.UnixMilli()
	}
	if !q.Before.IsZero() {
		filter.BeforeUnixMs = q.Before.UnixMilli()
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
	c := r.GetChain()
	chain := fleet.AuditChain{State: auditStates[c.GetState()], Records: c.GetRecords(), Head: c.GetHead(), Fault: c.GetError()}
	if c.GetCheckTime() != nil {
		chain.Checked = c.GetCheckTime().AsTime()
	}
	return chain, nil
}

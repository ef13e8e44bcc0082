package wire

import (
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/ddqv1"
)

var auditOutcomes = [...]ddqv1.AuditOutcome{
	fleet.AuditAsked:   ddqv1.AuditOutcome_AUDIT_OUTCOME_ASKED,
	fleet.AuditDone:    ddqv1.AuditOutcome_AUDIT_OUTCOME_DONE,
	fleet.AuditFailed:  ddqv1.AuditOutcome_AUDIT_OUTCOME_FAILED,
	fleet.AuditRefused: ddqv1.AuditOutcome_AUDIT_OUTCOME_REFUSED,
	fleet.AuditStarted: ddqv1.AuditOutcome_AUDIT_OUTCOME_STARTED,
	fleet.AuditCut:     ddqv1.AuditOutcome_AUDIT_OUTCOME_CUT,
}

var auditStates = [...]ddqv1.AuditChainState{
	fleet.AuditWhole:    ddqv1.AuditChainState_AUDIT_CHAIN_STATE_WHOLE,
	fleet.AuditBroken:   ddqv1.AuditChainState_AUDIT_CHAIN_STATE_BROKEN,
	fleet.AuditChecking: ddqv1.AuditChainState_AUDIT_CHAIN_STATE_CHECKING,
	fleet.AuditNone:     ddqv1.AuditChainState_AUDIT_CHAIN_STATE_NONE,
	fleet.AuditUnknown:  ddqv1.AuditChainState_AUDIT_CHAIN_STATE_UNKNOWN,
}

// AuditOutcome is what a record tells of a call.
func AuditOutcome(o fleet.AuditOutcome) ddqv1.AuditOutcome { return Enum(auditOutcomes[:], o) }

// ReadAuditOutcome is the zero outcome for one that is unspecified.
func ReadAuditOutcome(o ddqv1.AuditOutcome, field string) (fleet.AuditOutcome, *problem.Error) {
	return ReadEnum[fleet.AuditOutcome](auditOutcomes[:], o, field)
}

// AuditChain is the chain of hashes of a node's log, without the name of the node.
func AuditChain(c *fleet.AuditChain) *ddqv1.AuditChain {
	out := &ddqv1.AuditChain{State: Enum(auditStates[:], c.State), Records: c.Records, Head: c.Head, Error: Text(c.Fault)}
	if !c.Checked.IsZero() {
		out.CheckTime = timestamppb.New(c.Checked)
	}
	return out
}

// ReadAuditChain takes what another node says of its log. A state that this version does not know is the zero one.
func ReadAuditChain(c *ddqv1.AuditChain) fleet.AuditChain {
	state, _ := ReadEnum[fleet.AuditState](auditStates[:], c.GetState(), "state")
	chain := fleet.AuditChain{State: state, Records: c.GetRecords(), Head: c.GetHead(), Fault: c.GetError()}
	if c.GetCheckTime() != nil {
		chain.Checked = c.GetCheckTime().AsTime()
	}
	return chain
}

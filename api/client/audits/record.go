package audits

import (
	"time"

	"github.com/ddq-io/ddq/api/client/internal/wire"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// Outcome says what a record tells of a call.
type Outcome int32

// The outcomes of calls. The last two are of no call.
const (
	Any     Outcome = Outcome(ddqv1.AuditOutcome_AUDIT_OUTCOME_UNSPECIFIED) // in a filter
	Asked   Outcome = Outcome(ddqv1.AuditOutcome_AUDIT_OUTCOME_ASKED)       // it is about to be done
	Done    Outcome = Outcome(ddqv1.AuditOutcome_AUDIT_OUTCOME_DONE)
	Failed  Outcome = Outcome(ddqv1.AuditOutcome_AUDIT_OUTCOME_FAILED)  // see Record.Code
	Refused Outcome = Outcome(ddqv1.AuditOutcome_AUDIT_OUTCOME_REFUSED) // the caller may not
	Started Outcome = Outcome(ddqv1.AuditOutcome_AUDIT_OUTCOME_STARTED) // a server began to write
	Cut     Outcome = Outcome(ddqv1.AuditOutcome_AUDIT_OUTCOME_CUT)     // a line before was not whole, and was taken out
)

// Outcomes are those that records have.
func Outcomes() []Outcome { return []Outcome{Asked, Done, Failed, Refused, Started, Cut} }

// String is done, refused and so on.
func (o Outcome) String() string {
	return wire.Word(ddqv1.AuditOutcome(o).String(), "AUDIT_OUTCOME_")
}

// Record is a line of the log of a node.
type Record struct {
	Node    string
	Seq     int64     // counts the records of the log, from 1
	Time    time.Time // on the node's clock
	Outcome Outcome
	Code    string // OK, or why not; empty where the call was asked for

	Caller, TokenID, Address string // the caller's kind and name, such as token:mailer
	Namespace                string // of the call; empty for the default one
	Method                   string // as /package.Service/Method
	Topic, Name              string // what the call is about, where its request says so in one place
	RequestID                string
	Call                     int64  // Done, Failed: the Seq of the record by which it was asked for
	Count                    int64  // Refused: how many like it there were since the last record of the kind, beside this one
	Request                  string // Asked: in JSON, without payloads, and cut where it is long
	Altered                  bool   // the line is not as it was written: what it says cannot be relied on
}

func recordFrom(r *ddqv1.AuditRecord) Record {
	return Record{
		Node: r.GetNode(), Seq: r.GetSeq(), Time: wire.Time(r.GetTime()), Outcome: Outcome(r.GetOutcome()), Code: r.GetCode(),
		Caller: r.GetCaller(), TokenID: r.GetTokenId(), Address: r.GetAddress(), Namespace: r.GetNamespace(),
		Method: r.GetMethod(), Topic: r.GetTopic(), Name: r.GetName(), RequestID: r.GetRequestId(),
		Call: r.GetCall(), Count: r.GetCount(), Request: r.GetRequest(), Altered: r.GetAltered(),
	}
}

// State says what is known of the chain of hashes of a log.
type State int32

// The states of chains.
const (
	Whole    State = State(ddqv1.AuditChainState_AUDIT_CHAIN_STATE_WHOLE) // no record was changed, moved or taken out
	Broken   State = State(ddqv1.AuditChainState_AUDIT_CHAIN_STATE_BROKEN)
	Checking State = State(ddqv1.AuditChainState_AUDIT_CHAIN_STATE_CHECKING) // the node has not come to the end yet
	None     State = State(ddqv1.AuditChainState_AUDIT_CHAIN_STATE_NONE)     // the node was started without an audit log
	Unknown  State = State(ddqv1.AuditChainState_AUDIT_CHAIN_STATE_UNKNOWN)  // the node did not answer, or cannot read its log
)

// String is whole, broken and so on.
func (s State) String() string {
	return wire.Word(ddqv1.AuditChainState(s).String(), "AUDIT_CHAIN_STATE_")
}

// Chain is the chain of hashes of a node's log.
type Chain struct {
	Node    string
	State   State
	Records int64     // Whole: how many there are
	Head    string    // Whole: the hash of the last one
	Checked time.Time // Whole, Broken: when the check ended
	Error   string    // Broken, Unknown: why
}

func chainFrom(c *ddqv1.AuditChain) Chain {
	return Chain{c.GetNode(), State(c.GetState()), c.GetRecords(), c.GetHead(), wire.Time(c.GetCheckTime()), c.GetError()}
}

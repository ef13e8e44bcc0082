package audits

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/ddq-io/ddq/api/client/internal/call"
	"github.com/ddq-io/ddq/api/client/internal/wire"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// Filter says which records are meant: those that match all that is set. A line that is not as it was
// written matches every filter.
type Filter struct {
	Caller   string // kind and name, the name alone, or the id of a token
	Method   string // such as DeleteTopic, or with its service
	Resource string // a topic, a name, an id, or another text that is a value of the request
	Outcome  Outcome
	From     time.Time // zero: from the first
	Before   time.Time // zero: to the last
}

// Missing are the nodes whose records are not in a listing.
type Missing struct {
	Silent     []string // they did not answer in time
	WithoutLog []string // they were started without an audit log
}

// Audits are the calls about the audit logs of all nodes.
type Audits struct {
	do  call.Do
	rpc ddqv1.AuditServiceClient
}

// New returns calls that do makes.
func New(do call.Do, rpc ddqv1.AuditServiceClient) Audits { return Audits{do, rpc} }

// AuditRecords goes through the records of all nodes that a filter matches, the newest first. Nodes whose
// records are missing are added to missing, which may be nil. The sequence ends with the first error.
func (c Audits) AuditRecords(ctx context.Context, f Filter, missing *Missing) iter.Seq2[Record, error] {
	return call.Pages(func(token string) ([]Record, string, error) {
		reply, err := call.Answer(ctx, c.do, call.Idempotent, c.rpc.ListAuditRecords, &ddqv1.ListAuditRecordsRequest{
			Caller: f.Caller, Method: f.Method, Resource: f.Resource, Outcome: ddqv1.AuditOutcome(f.Outcome),
			FromUnixMs: wire.UnixMillis(f.From), BeforeUnixMs: wire.UnixMillis(f.Before), PageSize: call.PageSize, PageToken: token,
		})
		if missing != nil {
			missing.Silent = merged(missing.Silent, reply.GetSilentNodes())
			missing.WithoutLog = merged(missing.WithoutLog, reply.GetNodesWithoutLog())
		}
		return call.List(reply.GetRecords(), recordFrom), reply.GetNextPageToken(), err
	})
}

func merged(nodes, more []string) []string {
	nodes = append(nodes, more...)
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// VerifyAudit says of each node whether its log is as it was written. A node that has many records goes on
// with that, and says in the meantime that it is checking.
func (c Audits) VerifyAudit(ctx context.Context) ([]Chain, error) {
	reply, err := call.Answer(ctx, c.do, call.Idempotent, c.rpc.VerifyAudit, &ddqv1.VerifyAuditRequest{})
	return call.List(reply.GetChains(), chainFrom), err
}

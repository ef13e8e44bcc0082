package audits

import (
	"math"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/api/audit"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/service/trail"
	"github.com/ddq-io/ddq/api/wire"
)

// maxText bounds the texts of a filter.
const maxText = 1024

func filterOf(r *ddqv1.ListAuditRecordsRequest) (f fleet.AuditFilter, err error) {
	for field, text := range map[string]string{"caller": r.GetCaller(), "method": r.GetMethod(), "resource": r.GetResource()} {
		if len(text) > maxText {
			return f, wire.Invalid("OUT_OF_RANGE_FIELD", field, "has more than %d bytes", maxText)
		}
	}
	f = fleet.AuditFilter{Caller: r.GetCaller(), Method: r.GetMethod(), Resource: r.GetResource()}
	outcome, e := wire.ReadAuditOutcome(r.GetOutcome(), "outcome")
	if e != nil {
		return f, e
	}
	f.Outcome = outcome
	for _, bound := range []struct {
		field string
		ms    int64
		into  *time.Time
	}{{"from_unix_ms", r.GetFromUnixMs(), &f.From}, {"before_unix_ms", r.GetBeforeUnixMs(), &f.Before}} {
		switch {
		case bound.ms < 0 || bound.ms > math.MaxInt64/int64(time.Millisecond):
			return f, wire.Invalid("OUT_OF_RANGE_FIELD", bound.field, "must be 0, or a time until the year 2262")
		case bound.ms > 0:
			*bound.into = time.UnixMilli(bound.ms)
		}
	}
	if !f.Before.IsZero() && !f.Before.After(f.From) {
		return f, wire.Invalid("OUT_OF_RANGE_FIELD", "before_unix_ms", "must be after from_unix_ms")
	}
	return f, nil
}

// queryOf is what another node asks for; it has to be bounded.
func queryOf(filter fleet.AuditFilter, r *ddqv1.ListPeerAuditRequest) fleet.AuditQuery {
	return fleet.AuditQuery{AuditFilter: filter, Until: max(r.GetBefore(), 0), Most: min(max(int(r.GetMost()), 1), maxPage), Bytes: int(r.GetBytes())}
}

// recordWire is a line as callers see it. Of one that is no record there is only where it was found.
func recordWire(l *trail.Line) *ddqv1.AuditRecord {
	out := &ddqv1.AuditRecord{Node: l.Node, Altered: l.Altered, Time: timestamppb.New(l.Time)}
	r, outcome, err := audit.Decode(l.Text)
	if err != nil {
		out.Altered = true
		return out
	}
	out.Seq, out.Outcome, out.Code = r.Seq, wire.AuditOutcome(outcome), wire.Text(r.Code)
	out.Caller, out.TokenId, out.Address = wire.Text(r.Caller), wire.Text(r.Token), wire.Text(r.Address)
	out.Namespace, out.Method, out.Topic, out.Name = wire.Text(r.Namespace), wire.Text(r.Method), wire.Text(r.Topic), wire.Text(r.Name)
	out.RequestId, out.Call, out.Count, out.Request = wire.Text(r.RequestID), r.Call, r.Count, wire.Text(string(r.Request))
	return out
}

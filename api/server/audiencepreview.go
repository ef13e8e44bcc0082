package server

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/ddq-io/ddq/actors/audience"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/service/schedules"
	"github.com/ddq-io/ddq/api/wire"
)

func (a *audienceServer) PreviewAudience(ctx context.Context, r *ddqv1.PreviewAudienceRequest) (*ddqv1.PreviewAudienceResponse, error) {
	target, e := readTarget(r.GetTarget())
	if e != nil {
		return nil, e
	}
	if target == nil {
		return nil, wire.Invalid("BAD_SCHEDULE", "target", "target is missing")
	}
	if e := schedules.CheckTarget(target); e != nil {
		return nil, e
	}
	at := a.now()
	if r.GetAt() != nil {
		if at, e = wire.Instant(r.GetAt(), "at"); e != nil {
			return nil, e
		}
	}
	target.Rotate = false // by what is not known before a run
	p, err := a.cases.Preview(ctx, schedules.OrderOf(target, at, r.GetRecipientZone()))
	if err != nil {
		return nil, err
	}
	w := audiencePreviewWire(&p)
	for i := range p.Examples {
		w.Examples = append(w.Examples, exampleWire(&p.Examples[i]))
	}
	return &ddqv1.PreviewAudienceResponse{Preview: w}, nil
}

// audiencePreviewWire is a preview without examples: those say what is known of recipients.
func audiencePreviewWire(p *audience.Preview) *ddqv1.AudiencePreview {
	w := &ddqv1.AudiencePreview{
		Exact: p.Exact, BeginTime: wire.StampOrNil(p.Begin), Recipients: p.Recipients, Tasks: p.Tasks(), Deferred: p.Verdicts[audience.Deferred],
		Skipped: skipsWire(&p.Verdicts), BucketMs: p.Width.Milliseconds(),
	}
	for _, b := range p.Buckets {
		w.Buckets = append(w.Buckets, &ddqv1.PreviewBucket{Time: wire.StampOrNil(b.At), Tasks: b.Tasks})
	}
	w.Zones = zonesWire(p.Zones)
	return w
}

// zonesWire counts recipients by zone, the most first.
func zonesWire(counts map[string]int64) (zones []*ddqv1.ZoneCount) {
	for zone, n := range counts {
		zones = append(zones, &ddqv1.ZoneCount{Zone: zone, Recipients: n})
	}
	slices.SortFunc(zones, func(a, b *ddqv1.ZoneCount) int {
		return cmp.Or(cmp.Compare(b.Recipients, a.Recipients), strings.Compare(a.Zone, b.Zone))
	})
	return zones
}

var verdictToWire = [...]ddqv1.RecipientVerdict{
	audience.Taken: ddqv1.RecipientVerdict_RECIPIENT_VERDICT_MADE, audience.Deferred: ddqv1.RecipientVerdict_RECIPIENT_VERDICT_DEFERRED,
	audience.Disabled: ddqv1.RecipientVerdict_RECIPIENT_VERDICT_DISABLED, audience.OptedOut: ddqv1.RecipientVerdict_RECIPIENT_VERDICT_OPTED_OUT,
	audience.Silent: ddqv1.RecipientVerdict_RECIPIENT_VERDICT_QUIET, audience.NoTime: ddqv1.RecipientVerdict_RECIPIENT_VERDICT_NO_TIME,
}

func exampleWire(x *audience.Example) *ddqv1.PreviewExample {
	return &ddqv1.PreviewExample{Recipient: wire.Text(x.ID), Zone: x.Zone, Verdict: wire.Enum(verdictToWire[:], x.Verdict), Due: wire.StampOrNil(x.Due)}
}

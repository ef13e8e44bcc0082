package client

import (
	"context"
	"time"

	"github.com/ddq-io/ddq/api/client/internal/call"
	"github.com/ddq-io/ddq/api/client/internal/fields"
	"github.com/ddq-io/ddq/api/client/internal/wire"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// AudiencePreview is what a run of an audience would do, with the recipients as they are now.
type AudiencePreview struct {
	Exact      bool             `json:"exact"` // each recipient was looked at; else, of more than 100,000, counts are estimates but those of zones
	Begin      time.Time        `json:"begin_time"`
	Recipients int64            `json:"recipients"`
	Tasks      int64            `json:"tasks"`    // with those that quiet hours put off
	Deferred   int64            `json:"deferred"` // by quiet hours
	Skipped    RecipientSkips   `json:"skipped"`
	Width      time.Duration    `json:"bucket_ms"`
	Buckets    []PreviewBucket  `json:"buckets"`            // when tasks are due; spans without any are left out
	Zones      []ZoneCount      `json:"zones"`              // the most recipients first
	Examples   []PreviewExample `json:"examples,omitempty"` // at most 20; none in the preview of a schedule
}

// MarshalJSON writes the form that `ddq audience preview -o json` prints.
func (p AudiencePreview) MarshalJSON() ([]byte, error) { return fields.Write(p) }

// PreviewBucket counts the tasks that are due from a time on.
type PreviewBucket struct {
	At    time.Time `json:"time"`
	Tasks int64     `json:"tasks"`
}

// MarshalJSON writes the form that `ddq audience preview -o json` prints.
func (b PreviewBucket) MarshalJSON() ([]byte, error) { return fields.Write(b) }

// PreviewExample is what would become of one recipient.
type PreviewExample struct {
	Recipient string           `json:"recipient"`
	Zone      string           `json:"zone"`
	Verdict   RecipientVerdict `json:"verdict"`
	Due       time.Time        `json:"due,omitempty"` // of its task, if it gets one
}

// MarshalJSON writes the form that `ddq audience preview -o json` prints.
func (e PreviewExample) MarshalJSON() ([]byte, error) { return fields.Write(e) }

// RecipientVerdict is what becomes of a recipient in a run.
type RecipientVerdict int32

// What may become of one.
const (
	VerdictMade     RecipientVerdict = RecipientVerdict(ddqv1.RecipientVerdict_RECIPIENT_VERDICT_MADE)     // it gets a task
	VerdictDeferred RecipientVerdict = RecipientVerdict(ddqv1.RecipientVerdict_RECIPIENT_VERDICT_DEFERRED) // after its quiet hours
	VerdictDisabled RecipientVerdict = RecipientVerdict(ddqv1.RecipientVerdict_RECIPIENT_VERDICT_DISABLED)
	VerdictOptedOut RecipientVerdict = RecipientVerdict(ddqv1.RecipientVerdict_RECIPIENT_VERDICT_OPTED_OUT)
	VerdictQuiet    RecipientVerdict = RecipientVerdict(ddqv1.RecipientVerdict_RECIPIENT_VERDICT_QUIET)   // the task would be due in quiet hours
	VerdictNoTime   RecipientVerdict = RecipientVerdict(ddqv1.RecipientVerdict_RECIPIENT_VERDICT_NO_TIME) // the local time does not exist on that day
)

// String returns the verdict in lower case, such as "opted_out".
func (v RecipientVerdict) String() string {
	return wire.Word(ddqv1.RecipientVerdict(v).String(), "RECIPIENT_VERDICT_")
}

// MarshalText writes it as String does.
func (v RecipientVerdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// AudiencePreviewAt says when a run would begin.
type AudiencePreviewAt struct {
	Time          time.Time // now when zero
	RecipientZone bool      // at the time of each recipient: Time is when the first clock on earth (UTC+14) is there
}

// PreviewAudience says what a run for a target would do. Rotate and Untracked do not count.
func (c *Audiences) PreviewAudience(ctx context.Context, target AudienceTarget, at AudiencePreviewAt) (p AudiencePreview, err error) {
	r := &ddqv1.PreviewAudienceRequest{Target: target.wire(), At: wire.Stamp(at.Time), RecipientZone: at.RecipientZone}
	reply, err := call.Answer(ctx, c.do, call.Idempotent, c.audiences.PreviewAudience, r)
	if err == nil {
		p = *audiencePreviewFrom(reply.GetPreview())
	}
	return p, err
}

func audiencePreviewFrom(w *ddqv1.AudiencePreview) *AudiencePreview {
	if w == nil {
		return nil
	}
	p := &AudiencePreview{
		Exact: w.GetExact(), Begin: wire.Time(w.GetBeginTime()), Recipients: w.GetRecipients(), Tasks: w.GetTasks(), Deferred: w.GetDeferred(),
		Skipped: skipsFrom(w.GetSkipped()), Width: wire.Duration(w.GetBucketMs()),
	}
	for _, b := range w.GetBuckets() {
		p.Buckets = append(p.Buckets, PreviewBucket{At: wire.Time(b.GetTime()), Tasks: b.GetTasks()})
	}
	for _, z := range w.GetZones() {
		p.Zones = append(p.Zones, ZoneCount{Zone: z.GetZone(), Recipients: z.GetRecipients()})
	}
	for _, e := range w.GetExamples() {
		p.Examples = append(p.Examples, PreviewExample{Recipient: e.GetRecipient(), Zone: e.GetZone(), Verdict: RecipientVerdict(e.GetVerdict()), Due: wire.Time(e.GetDue())})
	}
	return p
}

package client

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/ddq-io/ddq/api/client/internal/call"
	"github.com/ddq-io/ddq/api/client/internal/fields"
	"github.com/ddq-io/ddq/api/client/internal/wire"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// Audience is a named set of recipients, each of whom gets a task in a run of a schedule.
type Audience struct {
	Name         string
	Shards       int            // a power of two up to 1,024; 0 means 64. It does not change
	FallbackZone string         // of recipients without a zone; empty means UTC
	Kinds        []AudienceKind // what tasks can be about: at most 64
	CreatedAt    time.Time      // CreateAudience does not look at it
}

// AudienceKind is what tasks can be about, such as "digest".
type AudienceKind struct {
	Name string
	Off  bool // only recipients get it who have it in On; else all who do not have it in Off
}

// Recipient is one of those who each get a task.
type Recipient struct {
	ID        string   `json:"id"`                   // 1 to 128 bytes
	Zone      string   `json:"zone,omitempty"`       // such as Europe/Berlin; the audience's fallback when empty
	Disabled  bool     `json:"disabled,omitempty"`   // it gets no task
	QuietFrom string   `json:"quiet_from,omitempty"` // local time of day, such as 22:00, from which it wants no task
	QuietTo   string   `json:"quiet_to,omitempty"`   // up to which
	On        []string `json:"on,omitempty"`         // kinds that it wants
	Off       []string `json:"off,omitempty"`        // kinds that it does not
	Data      []byte   `json:"data,omitempty"`       // for the task: at most 256 bytes
}

// MarshalJSON writes the form that `ddq audience get -o json` prints.
func (r Recipient) MarshalJSON() ([]byte, error) { return fields.Write(r) }

// UnmarshalJSON reads it.
func (r *Recipient) UnmarshalJSON(b []byte) error { return fields.Read(b, r) }

// AudienceStatus is an audience and what is in it.
type AudienceStatus struct {
	Audience
	Recipients int64
	Zones      []ZoneCount // the most recipients first
	Runs       []string    // that have not ended
	Replacing  bool
}

// ZoneCount is how many recipients a zone has.
type ZoneCount struct {
	Zone       string `json:"zone"`
	Recipients int64  `json:"recipients"`
}

// AudienceTarget is the audience of a schedule.
type AudienceTarget struct {
	Name       string
	Kind       string        // of the audience; empty: all who are not disabled get a task
	Window     time.Duration // over which tasks are spread: up to 24h; 0: all are due at once
	Grain      time.Duration // places are multiples of it
	SpreadFrom *int64        // fewer recipients go at once; 100 when nil
	Quiet      QuietPolicy
	Rotate     bool // another recipient is the first in each run
	Untracked  bool // a run is over when its tasks are made, whatever becomes of them
}

// QuietPolicy is what becomes of a task that is due in quiet hours.
type QuietPolicy int32

// What may become of it. The zero QuietPolicy is QuietDefer.
const (
	QuietDefer  QuietPolicy = QuietPolicy(ddqv1.QuietPolicy_QUIET_POLICY_DEFER)  // it is due when they end
	QuietSkip   QuietPolicy = QuietPolicy(ddqv1.QuietPolicy_QUIET_POLICY_SKIP)   // there is none
	QuietIgnore QuietPolicy = QuietPolicy(ddqv1.QuietPolicy_QUIET_POLICY_IGNORE) // it is due in them
)

// String returns the word of the command line, such as "defer".
func (q QuietPolicy) String() string {
	return wire.Word(ddqv1.QuietPolicy(q).String(), "QUIET_POLICY_")
}

func (t *AudienceTarget) wire() *ddqv1.AudienceTarget {
	if t == nil {
		return nil
	}
	w := &ddqv1.AudienceTarget{
		Name: t.Name, Kind: t.Kind, WindowMs: wire.Millis(t.Window), GrainMs: wire.Millis(t.Grain), SpreadFrom: t.SpreadFrom,
		Quiet: ddqv1.QuietPolicy(t.Quiet), Rotate: t.Rotate,
	}
	if t.Untracked {
		w.Track = new(false)
	}
	return w
}

func targetFrom(w *ddqv1.AudienceTarget) *AudienceTarget {
	if w == nil {
		return nil
	}
	return &AudienceTarget{
		Name: w.GetName(), Kind: w.GetKind(), Window: wire.Duration(w.GetWindowMs()), Grain: wire.Duration(w.GetGrainMs()), SpreadFrom: w.SpreadFrom,
		Quiet: QuietPolicy(w.GetQuiet()), Rotate: w.GetRotate(), Untracked: w.Track != nil && !w.GetTrack(),
	}
}

func (a *Audience) wire() *ddqv1.Audience {
	w := &ddqv1.Audience{Name: a.Name, Shards: wire.Int32(a.Shards), FallbackZone: a.FallbackZone}
	for _, k := range a.Kinds {
		w.Kinds = append(w.Kinds, &ddqv1.AudienceKind{Name: k.Name, Off: k.Off})
	}
	return w
}

func audienceFrom(w *ddqv1.Audience) Audience {
	a := Audience{Name: w.GetName(), Shards: int(w.GetShards()), FallbackZone: w.GetFallbackZone(), CreatedAt: wire.Time(w.GetCreateTime())}
	for _, k := range w.GetKinds() {
		a.Kinds = append(a.Kinds, AudienceKind{Name: k.GetName(), Off: k.GetOff()})
	}
	return a
}

func (r *Recipient) wire() *ddqv1.Recipient {
	w := &ddqv1.Recipient{Id: r.ID, Zone: r.Zone, Disabled: r.Disabled, On: r.On, Off: r.Off, Data: r.Data}
	if r.QuietFrom != "" || r.QuietTo != "" {
		w.Quiet = &ddqv1.QuietHours{From: r.QuietFrom, To: r.QuietTo}
	}
	return w
}

func recipientFrom(w *ddqv1.Recipient) Recipient {
	return Recipient{
		ID: w.GetId(), Zone: w.GetZone(), Disabled: w.GetDisabled(),
		QuietFrom: w.GetQuiet().GetFrom(), QuietTo: w.GetQuiet().GetTo(),
		On: w.GetOn(), Off: w.GetOff(), Data: w.GetData(),
	}
}

// Audiences are the calls about audiences and their recipients. A Client has them.
type Audiences struct {
	*caller
	audiences ddqv1.AudienceServiceClient
}

// CreateAudience creates an audience. The same again changes nothing; ErrExists when there
// is another one of that name.
func (c *Audiences) CreateAudience(ctx context.Context, a Audience) (made Audience, err error) {
	reply, err := call.Answer(ctx, c.do, call.Idempotent, c.audiences.CreateAudience, &ddqv1.CreateAudienceRequest{Audience: a.wire()})
	return audienceFrom(reply.GetAudience()), err
}

// DescribeAudience returns an audience and counts its recipients.
func (c *Audiences) DescribeAudience(ctx context.Context, name string) (status AudienceStatus, err error) {
	reply, err := call.Answer(ctx, c.do, call.Idempotent, c.audiences.DescribeAudience, &ddqv1.DescribeAudienceRequest{Name: name})
	status = AudienceStatus{
		Audience: audienceFrom(reply.GetAudience()), Recipients: reply.GetRecipients(), Runs: reply.GetRuns(), Replacing: reply.GetReplacing(),
	}
	for _, z := range reply.GetZones() {
		status.Zones = append(status.Zones, ZoneCount{Zone: z.GetZone(), Recipients: z.GetRecipients()})
	}
	return status, err
}

// ListAudiences goes through all audiences by name. The sequence ends with the first error.
func (c *Audiences) ListAudiences(ctx context.Context) iter.Seq2[Audience, error] {
	return call.Pages(func(token string) ([]Audience, string, error) {
		reply, err := call.Answer(ctx, c.do, call.Idempotent, c.audiences.ListAudiences, &ddqv1.ListAudiencesRequest{PageSize: call.PageSize, PageToken: token})
		return call.List(reply.GetAudiences(), audienceFrom), reply.GetNextPageToken(), err
	})
}

// DeleteAudience deletes an audience and its recipients. It refuses one that a schedule has,
// and one of which a run has not ended.
func (c *Audiences) DeleteAudience(ctx context.Context, name string) error {
	_, err := call.Answer(ctx, c.do, call.Idempotent, c.audiences.DeleteAudience, &ddqv1.DeleteAudienceRequest{Name: name})
	return err
}

// RecipientOutcome is what became of a recipient.
type RecipientOutcome int32

// What may become of one.
const (
	RecipientSame    RecipientOutcome = RecipientOutcome(ddqv1.RecipientOutcome_RECIPIENT_OUTCOME_SAME) // it was like that before
	RecipientAdded   RecipientOutcome = RecipientOutcome(ddqv1.RecipientOutcome_RECIPIENT_OUTCOME_ADDED)
	RecipientChanged RecipientOutcome = RecipientOutcome(ddqv1.RecipientOutcome_RECIPIENT_OUTCOME_CHANGED)
	RecipientRemoved RecipientOutcome = RecipientOutcome(ddqv1.RecipientOutcome_RECIPIENT_OUTCOME_REMOVED)
)

// String returns the outcome in lower case, such as "added".
func (o RecipientOutcome) String() string {
	return wire.Word(ddqv1.RecipientOutcome(o).String(), "RECIPIENT_OUTCOME_")
}

// RecipientResult is what became of one recipient of a call. Err is nil, or an *Error.
type RecipientResult struct {
	Outcome RecipientOutcome
	Err     error
}

// PutRecipients makes up to 1,000 recipients what they are to be, each of which may fail
// alone: the results are in their order. The same again changes nothing. With a generation
// they are part of that replacement, see BeginReplacement; else it is 0. Who puts millions
// does so in the order of the xxhash64 of their ids: neighbours share a write.
func (c *Audiences) PutRecipients(ctx context.Context, audience string, generation int64, recipients []Recipient) (results []RecipientResult, err error) {
	r := &ddqv1.PutRecipientsRequest{Audience: audience, Generation: generation}
	for i := range recipients {
		r.Recipients = append(r.Recipients, recipients[i].wire())
	}
	reply, err := call.Answer(ctx, c.do, call.Idempotent, c.audiences.PutRecipients, r)
	results = recipientResults(reply.GetResults())
	return results, checkResults(err, len(results), len(recipients))
}

// DeleteRecipients removes up to 1,000 recipients: RecipientRemoved, or RecipientSame of those
// that are none.
func (c *Audiences) DeleteRecipients(ctx context.Context, audience string, ids []string) (results []RecipientResult, err error) {
	reply, err := call.Answer(ctx, c.do, call.Idempotent, c.audiences.DeleteRecipients, &ddqv1.DeleteRecipientsRequest{Audience: audience, Ids: ids})
	results = recipientResults(reply.GetResults())
	return results, checkResults(err, len(results), len(ids))
}

func checkResults(err error, got, want int) error {
	if err == nil && got != want {
		return fmt.Errorf("the server answered %d of %d recipients", got, want)
	}
	return err
}

func recipientResults(list []*ddqv1.RecipientResult) []RecipientResult {
	out := make([]RecipientResult, len(list))
	for i, r := range list {
		if e := r.GetError(); e != nil {
			out[i].Err = fromItem(e)
			continue
		}
		out[i].Outcome = RecipientOutcome(r.GetOutcome())
	}
	return out
}

// GetRecipient returns a recipient. ErrNotFound when there is none.
func (c *Audiences) GetRecipient(ctx context.Context, audience, id string) (found Recipient, err error) {
	reply, err := call.Answer(ctx, c.do, call.Idempotent, c.audiences.GetRecipient, &ddqv1.GetRecipientRequest{Audience: audience, Id: id})
	return recipientFrom(reply.GetRecipient()), err
}

// ListRecipients goes through the recipients of an audience, of one zone unless that is
// empty, in no particular order. The sequence ends with the first error.
func (c *Audiences) ListRecipients(ctx context.Context, audience, zone string) iter.Seq2[Recipient, error] {
	return call.Pages(func(token string) ([]Recipient, string, error) {
		reply, err := call.Answer(ctx, c.do, call.Idempotent, c.audiences.ListRecipients, &ddqv1.ListRecipientsRequest{Audience: audience, Zone: zone, PageSize: 1000, PageToken: token})
		return call.List(reply.GetRecipients(), recipientFrom), reply.GetNextPageToken(), err
	})
}

// BeginReplacement begins to replace all recipients of an audience: what is put from then on
// stays when EndReplacement ends it. Nothing is removed before. One that was under way is
// over.
func (c *Audiences) BeginReplacement(ctx context.Context, audience string) (generation int64, err error) {
	reply, err := call.Answer(ctx, c.do, call.Once, c.audiences.BeginReplacement, &ddqv1.BeginReplacementRequest{Audience: audience})
	return reply.GetGeneration(), err
}

// EndReplacement removes the recipients that were not put since the replacement began, and
// returns how many. Repeated, it goes on where it was.
func (c *Audiences) EndReplacement(ctx context.Context, audience string, generation int64) (removed int64, err error) {
	reply, err := call.Answer(ctx, c.do, call.Idempotent, c.audiences.EndReplacement, &ddqv1.EndReplacementRequest{Audience: audience, Generation: generation})
	return reply.GetRemoved(), err
}

package server

import (
	"context"
	"log/slog"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/ddq-io/ddq/actors/audience"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/server/status"
	"github.com/ddq-io/ddq/api/service/audiences"
	"github.com/ddq-io/ddq/api/wire"
	"github.com/ddq-io/ddq/store"
)

// audienceServer serves AudienceService.
type audienceServer struct {
	ddqv1.UnsafeAudienceServiceServer
	cases *audiences.Audiences
	now   func() store.Millis
	log   *slog.Logger
}

var _ ddqv1.AudienceServiceServer = (*audienceServer)(nil)

func (a *audienceServer) CreateAudience(ctx context.Context, r *ddqv1.CreateAudienceRequest) (*ddqv1.CreateAudienceResponse, error) {
	w := r.GetAudience()
	spec := audiences.Spec{Name: w.GetName(), Shards: int(w.GetShards()), FallbackZone: w.GetFallbackZone()}
	for _, k := range w.GetKinds() {
		spec.Kinds = append(spec.Kinds, audience.NamedKind{Name: k.GetName(), Off: k.GetOff()})
	}
	made, err := a.cases.Create(ctx, spec, a.now())
	if err != nil {
		return nil, err
	}
	return &ddqv1.CreateAudienceResponse{Audience: audienceWire(made)}, nil
}

func audienceWire(a *audience.Audience) *ddqv1.Audience {
	w := &ddqv1.Audience{
		Name: a.Name, Shards: int32(a.Shards), FallbackZone: a.FallbackZone,
		CreateTime: timestamppb.New(a.Created.Time()),
	}
	for _, k := range a.Kinds {
		w.Kinds = append(w.Kinds, &ddqv1.AudienceKind{Name: k.Name, Off: k.Off})
	}
	return w
}

func (a *audienceServer) DescribeAudience(ctx context.Context, r *ddqv1.DescribeAudienceRequest) (*ddqv1.DescribeAudienceResponse, error) {
	s, err := a.cases.Describe(ctx, r.GetName())
	if err != nil {
		return nil, err
	}
	w := &ddqv1.DescribeAudienceResponse{
		Audience: audienceWire(&s.Audience), Recipients: s.Recipients, Runs: texts(s.Runs), Replacing: s.Replacing,
	}
	w.Zones = zonesWire(s.Zones)
	return w, nil
}

func (a *audienceServer) ListAudiences(ctx context.Context, r *ddqv1.ListAudiencesRequest) (*ddqv1.ListAudiencesResponse, error) {
	size, e := pageSize(r.GetPageSize())
	if e != nil {
		return nil, e
	}
	list, next, err := a.cases.ListAudiences(ctx, size, r.GetPageToken())
	if err != nil {
		return nil, err
	}
	w := &ddqv1.ListAudiencesResponse{NextPageToken: next}
	for i := range list {
		w.Audiences = append(w.Audiences, audienceWire(&list[i]))
	}
	return w, nil
}

func (a *audienceServer) DeleteAudience(ctx context.Context, r *ddqv1.DeleteAudienceRequest) (*ddqv1.DeleteAudienceResponse, error) {
	if err := a.cases.Delete(ctx, r.GetName(), a.now()); err != nil {
		return nil, err
	}
	return &ddqv1.DeleteAudienceResponse{}, nil
}

func (a *audienceServer) PutRecipients(ctx context.Context, r *ddqv1.PutRecipientsRequest) (*ddqv1.PutRecipientsResponse, error) {
	recipients := make([]audiences.Recipient, len(r.GetRecipients()))
	for i, w := range r.GetRecipients() {
		recipients[i] = recipientOf(w)
	}
	results, err := a.cases.Put(ctx, r.GetAudience(), r.GetGeneration(), recipients)
	if err != nil {
		return nil, err
	}
	return &ddqv1.PutRecipientsResponse{Results: a.results(results)}, nil
}

func recipientOf(w *ddqv1.Recipient) audiences.Recipient {
	return audiences.Recipient{
		ID: w.GetId(), Zone: w.GetZone(), Disabled: w.GetDisabled(),
		Quiet: audiences.QuietHours{From: w.GetQuiet().GetFrom(), To: w.GetQuiet().GetTo()},
		On:    w.GetOn(), Off: w.GetOff(), Data: w.GetData(),
	}
}

func recipientWire(r *audiences.Recipient) *ddqv1.Recipient {
	w := &ddqv1.Recipient{Id: wire.Text(r.ID), Zone: r.Zone, Disabled: r.Disabled, On: r.On, Off: r.Off, Data: r.Data}
	if r.Quiet != (audiences.QuietHours{}) {
		w.Quiet = &ddqv1.QuietHours{From: r.Quiet.From, To: r.Quiet.To}
	}
	return w
}

func (a *audienceServer) DeleteRecipients(ctx context.Context, r *ddqv1.DeleteRecipientsRequest) (*ddqv1.DeleteRecipientsResponse, error) {
	results, err := a.cases.Remove(ctx, r.GetAudience(), r.GetIds())
	if err != nil {
		return nil, err
	}
	return &ddqv1.DeleteRecipientsResponse{Results: a.results(results)}, nil
}

var recipientOutcomes = [...]ddqv1.RecipientOutcome{
	audience.Same:    ddqv1.RecipientOutcome_RECIPIENT_OUTCOME_SAME,
	audience.Added:   ddqv1.RecipientOutcome_RECIPIENT_OUTCOME_ADDED,
	audience.Changed: ddqv1.RecipientOutcome_RECIPIENT_OUTCOME_CHANGED,
	audience.Removed: ddqv1.RecipientOutcome_RECIPIENT_OUTCOME_REMOVED,
}

func (a *audienceServer) results(puts []audiences.Put) []*ddqv1.RecipientResult {
	out := make([]*ddqv1.RecipientResult, len(puts))
	for i, p := range puts {
		if p.Err != nil {
			out[i] = &ddqv1.RecipientResult{Result: &ddqv1.RecipientResult_Error{Error: status.Item(a.log, problem.FromStore(p.Err))}}
			continue
		}
		out[i] = &ddqv1.RecipientResult{Result: &ddqv1.RecipientResult_Outcome{Outcome: recipientOutcomes[p.Outcome]}}
	}
	return out
}

func (a *audienceServer) GetRecipient(ctx context.Context, r *ddqv1.GetRecipientRequest) (*ddqv1.GetRecipientResponse, error) {
	found, err := a.cases.Get(ctx, r.GetAudience(), r.GetId())
	if err != nil {
		return nil, err
	}
	return &ddqv1.GetRecipientResponse{Recipient: recipientWire(&found)}, nil
}

func (a *audienceServer) ListRecipients(ctx context.Context, r *ddqv1.ListRecipientsRequest) (*ddqv1.ListRecipientsResponse, error) {
	size, e := pageSize(r.GetPageSize())
	if e != nil {
		return nil, e
	}
	list, next, err := a.cases.List(ctx, r.GetAudience(), r.GetZone(), size, r.GetPageToken())
	if err != nil {
		return nil, err
	}
	w := &ddqv1.ListRecipientsResponse{NextPageToken: next}
	for i := range list {
		w.Recipients = append(w.Recipients, recipientWire(&list[i]))
	}
	return w, nil
}

func (a *audienceServer) BeginReplacement(ctx context.Context, r *ddqv1.BeginReplacementRequest) (*ddqv1.BeginReplacementResponse, error) {
	generation, err := a.cases.Replace(ctx, r.GetAudience())
	if err != nil {
		return nil, err
	}
	return &ddqv1.BeginReplacementResponse{Generation: generation}, nil
}

func (a *audienceServer) EndReplacement(ctx context.Context, r *ddqv1.EndReplacementRequest) (*ddqv1.EndReplacementResponse, error) {
	removed, err := a.cases.EndReplacement(ctx, r.GetAudience(), r.GetGeneration())
	if err != nil {
		return nil, err
	}
	return &ddqv1.EndReplacementResponse{Removed: removed}, nil
}

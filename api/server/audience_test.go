package server

import (
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/server/status"
	"github.com/ddq-io/ddq/api/service/audiences"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
)

func newAudienceServer(t *testing.T) *audienceServer {
	st := memstore.New()
	t.Cleanup(func() { st.Close() })
	a := &audienceServer{cases: audiences.New(st, audiences.Limits{}, audiences.Outside{}), now: func() store.Millis { return 1_900_000_000_000 }, log: quiet}
	_, err := a.CreateAudience(t.Context(), &ddqv1.CreateAudienceRequest{Audience: &ddqv1.Audience{
		Name: "users", Shards: 2, FallbackZone: "Europe/Berlin", Kinds: []*ddqv1.AudienceKind{{Name: "digest"}, {Name: "sms", Off: true}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestAudienceIsShownAsItWasCreated(t *testing.T) {
	a := newAudienceServer(t)
	got, err := a.DescribeAudience(t.Context(), &ddqv1.DescribeAudienceRequest{Name: "users"})
	if err != nil {
		t.Fatal(err)
	}
	w := got.Audience
	if w.Name != "users" || w.Shards != 2 || w.FallbackZone != "Europe/Berlin" || len(w.Kinds) != 2 || !w.Kinds[1].Off || w.CreateTime.AsTime().UnixMilli() != 1_900_000_000_000 {
		t.Errorf("got %v", w)
	}
	list, err := a.ListAudiences(t.Context(), &ddqv1.ListAudiencesRequest{})
	if err != nil || len(list.Audiences) != 1 || list.Audiences[0].Name != "users" {
		t.Errorf("listed %v, %v", list, err)
	}
	if _, err := a.DeleteAudience(t.Context(), &ddqv1.DeleteAudienceRequest{Name: "users"}); err != nil {
		t.Error(err)
	}
	if _, err := a.DescribeAudience(t.Context(), &ddqv1.DescribeAudienceRequest{Name: "users"}); status.Code(problem.FromStore(err).Kind) != codes.NotFound {
		t.Errorf("one that is deleted: %v", err)
	}
}

func TestRecipientsAreShownAsTheyWerePut(t *testing.T) {
	a := newAudienceServer(t)
	ada := &ddqv1.Recipient{
		Id: "ada", Zone: "Asia/Tokyo", Disabled: true, Quiet: &ddqv1.QuietHours{From: "22:00", To: "07:00"},
		On: []string{"sms"}, Off: []string{"digest"}, Data: []byte("x"),
	}
	put, err := a.PutRecipients(t.Context(), &ddqv1.PutRecipientsRequest{Audience: "users", Recipients: []*ddqv1.Recipient{ada, {Id: "bob"}, {Id: "eve", Zone: "Nowhere"}}})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []ddqv1.RecipientOutcome{ddqv1.RecipientOutcome_RECIPIENT_OUTCOME_ADDED, ddqv1.RecipientOutcome_RECIPIENT_OUTCOME_ADDED, 0} {
		if got := put.Results[i].GetOutcome(); got != want {
			t.Errorf("recipient %d: %v, want %v", i, put.Results[i], want)
		}
	}
	if e := put.Results[2].GetError(); e.GetReason() != "BAD_RECIPIENT" || e.GetField() != "zone" || codes.Code(e.GetCode()) != codes.InvalidArgument {
		t.Errorf("a zone that is none: %v", e)
	}
	got, err := a.GetRecipient(t.Context(), &ddqv1.GetRecipientRequest{Audience: "users", Id: "ada"})
	if err != nil || got.Recipient.String() != ada.String() {
		t.Errorf("got %v, %v, want %v", got, err, ada)
	}
	list, err := a.ListRecipients(t.Context(), &ddqv1.ListRecipientsRequest{Audience: "users", Zone: "Europe/Berlin"})
	if err != nil || len(list.Recipients) != 1 || list.Recipients[0].Id != "bob" {
		t.Errorf("listed %v, %v", list, err)
	}
	if _, err := a.ListRecipients(t.Context(), &ddqv1.ListRecipientsRequest{Audience: "users", PageSize: -1}); err == nil {
		t.Error("a negative page is listed")
	}
}

func TestRecipientsAreReplaced(t *testing.T) {
	a := newAudienceServer(t)
	put := func(generation int64, id string) {
		t.Helper()
		_, err := a.PutRecipients(t.Context(), &ddqv1.PutRecipientsRequest{Audience: "users", Generation: generation, Recipients: []*ddqv1.Recipient{{Id: id}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	put(0, "ada")
	put(0, "bob")
	begun, err := a.BeginReplacement(t.Context(), &ddqv1.BeginReplacementRequest{Audience: "users"})
	if err != nil {
		t.Fatal(err)
	}
	put(begun.Generation, "bob")
	if got, _ := a.DescribeAudience(t.Context(), &ddqv1.DescribeAudienceRequest{Name: "users"}); !got.Replacing || got.Recipients != 2 {
		t.Errorf("on its way: %v", got)
	}
	ended, err := a.EndReplacement(t.Context(), &ddqv1.EndReplacementRequest{Audience: "users", Generation: begun.Generation})
	if err != nil || ended.Removed != 1 {
		t.Errorf("ended: %v, %v", ended, err)
	}
	removed, err := a.DeleteRecipients(t.Context(), &ddqv1.DeleteRecipientsRequest{Audience: "users", Ids: []string{"bob", "ada"}})
	if err != nil || removed.Results[0].GetOutcome() != ddqv1.RecipientOutcome_RECIPIENT_OUTCOME_REMOVED || removed.Results[1].GetOutcome() != ddqv1.RecipientOutcome_RECIPIENT_OUTCOME_SAME {
		t.Errorf("removed: %v, %v", removed, err)
	}
}

func TestPreviewOfAnAudience(t *testing.T) {
	a := newAudienceServer(t)
	_, err := a.PutRecipients(t.Context(), &ddqv1.PutRecipientsRequest{Audience: "users", Recipients: []*ddqv1.Recipient{
		{Id: "ada", Zone: "Asia/Tokyo"}, {Id: "bob"}, {Id: "eve", Off: []string{"digest"}}, {Id: "mel", Disabled: true},
		{Id: "zoe", Zone: "UTC", Quiet: &ddqv1.QuietHours{From: "00:00", To: "23:00"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	target := &ddqv1.AudienceTarget{Name: "users", Kind: "digest", WindowMs: 60_000}
	got, err := a.PreviewAudience(t.Context(), &ddqv1.PreviewAudienceRequest{Target: target, RecipientZone: true})
	if err != nil {
		t.Fatal(err)
	}
	p := got.Preview
	if !p.Exact || p.Recipients != 5 || p.Tasks != 3 || p.Deferred != 1 || p.Skipped.OptedOut != 1 || p.Skipped.Disabled != 1 || len(p.Zones) != 3 || len(p.Examples) != 5 {
		t.Errorf("got %v", p)
	}
	for reason, edit := range map[string]func(*ddqv1.PreviewAudienceRequest){
		"NO_AUDIENCE":        func(r *ddqv1.PreviewAudienceRequest) { r.Target.Name = "nobody" },
		"NO_KIND":            func(r *ddqv1.PreviewAudienceRequest) { r.Target.Kind = "news" },
		"OUT_OF_RANGE_FIELD": func(r *ddqv1.PreviewAudienceRequest) { r.Target.WindowMs = 86_400_001 },
		"BAD_SCHEDULE":       func(r *ddqv1.PreviewAudienceRequest) { r.Target = nil },
		"BAD_ENUM":           func(r *ddqv1.PreviewAudienceRequest) { r.Target.Quiet = 9 },
	} {
		r := &ddqv1.PreviewAudienceRequest{Target: &ddqv1.AudienceTarget{Name: "users"}}
		edit(r)
		if _, err := a.PreviewAudience(t.Context(), r); err == nil || problem.FromStore(err).Reason != reason {
			t.Errorf("%s: %v", reason, err)
		}
	}
}

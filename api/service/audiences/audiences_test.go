package audiences

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ddq-io/ddq/actors/audience"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/store/memstore"
)

func newAudiences(t *testing.T, limits Limits) *Audiences {
	st := memstore.New()
	t.Cleanup(func() { st.Close() })
	return New(st, limits, Outside{})
}

func create(t *testing.T, s *Audiences, shards int) {
	t.Helper()
	_, err := s.Create(t.Context(), Spec{Name: "users", Shards: shards, Kinds: []audience.NamedKind{{Name: "digest"}, {Name: "sms", Off: true}}}, 1)
	if err != nil {
		t.Fatal(err)
	}
}

// put puts recipients and returns what became of them, as outcomes or reasons.
func put(t *testing.T, s *Audiences, recipients ...Recipient) (out []any) {
	t.Helper()
	results, err := s.Put(t.Context(), "users", 0, recipients)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Err != nil {
			out = append(out, reasonOf(r.Err))
		} else {
			out = append(out, r.Outcome)
		}
	}
	return out
}

func reasonOf(err error) string {
	var e *problem.Error
	if !errors.As(err, &e) {
		return fmt.Sprint(err)
	}
	return e.Reason
}

func TestCreatingTheSameAgainChangesNothing(t *testing.T) {
	s := newAudiences(t, Limits{})
	spec := Spec{Name: "users", FallbackZone: "Europe/Berlin"}
	first, err := s.Create(t.Context(), spec, 1)
	if err != nil {
		t.Fatal(err)
	}
	again, err := s.Create(t.Context(), spec, 2)
	if err != nil || again.Life != first.Life {
		t.Errorf("the same again: %+v, %v", again, err)
	}
	if _, err := s.Create(t.Context(), Spec{Name: "users"}, 3); reasonOf(err) != "AUDIENCE_EXISTS" {
		t.Errorf("another zone: %v", err)
	}
}

func TestAudiencesAreChecked(t *testing.T) {
	s := newAudiences(t, Limits{})
	for want, spec := range map[string]Spec{
		"BAD_NAME":           {Name: "~users"},
		"NAME_TOO_LONG":      {Name: strings.Repeat("x", 129)},
		"OUT_OF_RANGE_FIELD": {Name: "users", Shards: 3},
		"BAD_ZONE":           {Name: "users", FallbackZone: "posix/UTC"},
	} {
		if _, err := s.Create(t.Context(), spec, 1); reasonOf(err) != want {
			t.Errorf("%+v: %v, want %s", spec, err, want)
		}
	}
	if _, err := s.Create(t.Context(), Spec{Name: "users", Kinds: make([]audience.NamedKind, 65)}, 1); err == nil {
		t.Error("65 kinds are allowed")
	}
	if _, err := s.Describe(t.Context(), "users"); reasonOf(err) != "NO_AUDIENCE" {
		t.Errorf("what was refused is there: %v", err)
	}
}

func TestRecipientIsKeptAsItWasPut(t *testing.T) {
	s := newAudiences(t, Limits{})
	create(t, s, 4)
	r := Recipient{ID: "ada", Zone: "Europe/London", Quiet: QuietHours{"22:00", "07:30"}, On: []string{"sms"}, Off: []string{"digest"}, Data: []byte("x")}
	got := put(t, s, r, r, Recipient{ID: "bob"})
	if want := []any{audience.Added, audience.Same, audience.Added}; !slices.Equal(got, want) {
		t.Errorf("put: %v, want %v", got, want)
	}
	there, err := s.Get(t.Context(), "users", "ada")
	if err != nil || fmt.Sprint(there) != fmt.Sprint(r) {
		t.Errorf("got %+v, %v, want %+v", there, err, r)
	}
	if bob, err := s.Get(t.Context(), "users", "bob"); err != nil || bob.Zone != "UTC" {
		t.Errorf("without a zone: %+v, %v", bob, err)
	}
	r.Zone = "Asia/Tokyo"
	if got := put(t, s, r); got[0] != audience.Changed {
		t.Errorf("another zone: %v", got)
	}
	status, err := s.Describe(t.Context(), "users")
	if err != nil || !maps.Equal(status.Zones, map[string]int64{"Asia/Tokyo": 1, "UTC": 1}) || status.Recipients != 2 {
		t.Errorf("described as %+v, %v", status, err)
	}
	removed, err := s.Remove(t.Context(), "users", []string{"ada", "eve"})
	if err != nil || removed[0].Outcome != audience.Removed || removed[1].Outcome != audience.Same {
		t.Errorf("removed: %v, %v", removed, err)
	}
	if _, err := s.Get(t.Context(), "users", "ada"); reasonOf(err) != "NO_RECIPIENT" {
		t.Errorf("who was removed: %v", err)
	}
}

func TestBadRecipientsFailAlone(t *testing.T) {
	s := newAudiences(t, Limits{})
	create(t, s, 4)
	got := put(t, s,
		Recipient{ID: ""},
		Recipient{ID: "a", Zone: "Mars/Base"},
		Recipient{ID: "b", Quiet: QuietHours{"7", "8"}},
		Recipient{ID: "c", Quiet: QuietHours{"24:00", "07:00"}},
		Recipient{ID: "d", Off: []string{"spam"}},
		Recipient{ID: "e", On: []string{"digest"}, Off: []string{"digest"}},
		Recipient{ID: "f", Data: make([]byte, 257)},
		Recipient{ID: "good"},
	)
	bad := "BAD_RECIPIENT"
	if want := []any{bad, bad, bad, bad, "NO_KIND", bad, bad, audience.Added}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if _, err := s.Put(t.Context(), "users", 0, make([]Recipient, MaxBatch+1)); reasonOf(err) != "BATCH_SIZE" {
		t.Errorf("a batch too large: %v", err)
	}
	if _, err := s.Put(t.Context(), "nobody", 0, nil); reasonOf(err) != "NO_AUDIENCE" {
		t.Errorf("of no audience: %v", err)
	}
}

func TestAnAudienceMayBeFull(t *testing.T) {
	s := newAudiences(t, Limits{Recipients: 2})
	create(t, s, 1)
	put(t, s, Recipient{ID: "a"}, Recipient{ID: "b"})
	got := put(t, s, Recipient{ID: "c"}, Recipient{ID: "a", Disabled: true}, Recipient{ID: "b", Zone: "Asia/Tokyo"})
	if want := []any{"AUDIENCE_FULL", audience.Changed, audience.Changed}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestRecipientsThatManyPutAtOnceAreAllThere(t *testing.T) {
	s := newAudiences(t, Limits{})
	other := New(s.store, Limits{}, Outside{}) // another node
	create(t, s, 2)
	const writers, batches, size = 8, 5, 100
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			node := []*Audiences{s, other}[w%2]
			for b := range batches {
				var batch []Recipient
				for i := range size {
					batch = append(batch, Recipient{ID: fmt.Sprintf("%d-%d-%d", w, b, i), Zone: []string{"UTC", "Asia/Tokyo"}[i%2]})
				}
				results, err := node.Put(context.Background(), "users", 0, batch)
				for _, r := range results {
					err = errors.Join(err, r.Err)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	seen := make(map[string]int)
	for token, first := "", true; first || token != ""; first = false {
		var page []Recipient
		var err error
		if page, token, err = s.List(t.Context(), "users", "", 70, token); err != nil {
			t.Fatal(err)
		}
		if len(page) > 70 {
			t.Fatalf("a page of %d", len(page))
		}
		for _, r := range page {
			seen[r.ID]++
		}
	}
	status, _ := s.Describe(t.Context(), "users")
	if len(seen) != writers*batches*size || status.Recipients != writers*batches*size {
		t.Errorf("%d listed, %d counted, want %d", len(seen), status.Recipients, writers*batches*size)
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("%s is listed %d times", id, n)
		}
	}
	tokyo, _, err := s.List(t.Context(), "users", "Asia/Tokyo", 1000, "")
	if err != nil || len(tokyo) != 1000 || tokyo[0].Zone != "Asia/Tokyo" {
		t.Errorf("%d of one zone, %v", len(tokyo), err)
	}
}

func TestReplacementRemovesWhatItHasNotBrought(t *testing.T) {
	s := newAudiences(t, Limits{})
	create(t, s, 4)
	for i := range 10 {
		put(t, s, Recipient{ID: fmt.Sprint("old-", i)}, Recipient{ID: fmt.Sprint("both-", i)})
	}
	first, err := s.Replace(t.Context(), "users")
	if err != nil {
		t.Fatal(err)
	}
	second, _ := s.Replace(t.Context(), "users")
	if _, err := s.Put(t.Context(), "users", first, []Recipient{{ID: "x"}}); reasonOf(err) != "REPLACEMENT_OVER" {
		t.Errorf("a put of a replacement that is over: %v", err)
	}
	for i := range 10 {
		if _, err := s.Put(t.Context(), "users", second, []Recipient{{ID: fmt.Sprint("both-", i)}}); err != nil {
			t.Fatal(err)
		}
	}
	put(t, s, Recipient{ID: "joined"})
	if n, err := s.EndReplacement(t.Context(), "users", first); reasonOf(err) != "REPLACEMENT_OVER" {
		t.Errorf("the end of one that is over: %d, %v", n, err)
	}
	for _, want := range []int64{10, 0} {
		if n, err := s.EndReplacement(t.Context(), "users", second); err != nil || n != want {
			t.Errorf("%d removed, %v, want %d", n, err, want)
		}
	}
	status, err := s.Describe(t.Context(), "users")
	if err != nil || status.Recipients != 11 || status.Replacing {
		t.Errorf("%+v, %v", status, err)
	}
}

// TestRecipientsMayMoveBesideAReplacement: recipients change their zone, which moves them to other leaves, while a
// replacement brings a list and removes the others. Whoever was brought or put stays, once, in the zone that was put last.
func TestRecipientsMayMoveBesideAReplacement(t *testing.T) {
	s := newAudiences(t, Limits{})
	other := New(s.store, Limits{}, Outside{}) // another node
	create(t, s, 2)
	const all = 2000
	zones := []string{"UTC", "Asia/Tokyo", "Europe/Berlin", "America/Lima", "Africa/Cairo"}
	id := func(i int) string { return fmt.Sprintf("r-%04d", i) }
	write := func(node *Audiences, generation int64, zone string, from, step int) {
		for ; from < all; from += 20 * step {
			var batch []Recipient
			for i := from; i < min(all, from+20*step); i += step {
				batch = append(batch, Recipient{ID: id(i), Zone: zone})
			}
			results, err := node.Put(context.Background(), "users", generation, batch)
			for _, r := range results {
				err = errors.Join(err, r.Err)
			}
			if err != nil {
				t.Error(err)
			}
		}
	}
	write(s, 0, zones[0], 0, 1)
	generation, err := s.Replace(t.Context(), "users")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { // brings every second one, and ends at once
		write(s, generation, zones[0], 0, 2)
		if _, err := s.EndReplacement(context.Background(), "users", generation); err != nil {
			t.Error(err)
		}
	})
	for _, mover := range []struct{ from, step int }{{1, 4}, {2, 8}} { // of those who are not brought, and who are
		wg.Go(func() {
			for _, zone := range zones[1:] {
				write(other, 0, zone, mover.from, mover.step)
			}
		})
	}
	wg.Wait()
	got := make(map[string][]string)
	for token, first := "", true; first || token != ""; first = false {
		var page []Recipient
		if page, token, err = s.List(t.Context(), "users", "", 500, token); err != nil {
			t.Fatal(err)
		}
		for _, r := range page {
			got[r.ID] = append(got[r.ID], r.Zone)
		}
	}
	for i := range all {
		found := got[id(i)]
		want := 1
		if i%2 == 1 && i%4 != 1 {
			want = 0
		}
		if len(found) != want || i%4 == 1 && found[0] != zones[len(zones)-1] {
			t.Errorf("%s is in %q, want %d", id(i), found, want)
		}
	}
	if status, err := s.Describe(t.Context(), "users"); err != nil || status.Recipients != 3*all/4 || status.Replacing {
		t.Errorf("%+v, %v", status, err)
	}
}

func TestAnAudienceIsCreatedAnewUnderItsName(t *testing.T) {
	s := newAudiences(t, Limits{})
	for range 3 {
		create(t, s, 4)
		if got := put(t, s, Recipient{ID: "a"}); got[0] != audience.Added {
			t.Fatalf("put: %v", got)
		}
		if page, _, _ := s.ListAudiences(t.Context(), 0, ""); len(page) != 1 {
			t.Errorf("listed: %v", page)
		}
		if err := s.Delete(t.Context(), "users", 1); err != nil {
			t.Fatal(err)
		}
		if err := s.Delete(t.Context(), "users", 1); reasonOf(err) != "NO_AUDIENCE" {
			t.Errorf("deleted twice: %v", err)
		}
		if page, _, _ := s.ListAudiences(t.Context(), 0, ""); len(page) != 0 {
			t.Errorf("listed: %v", page)
		}
	}
}

// One that a node has read before the audience was deleted changes nothing of the next.
func TestAPutOfAnAudienceThatIsGoneIsRefused(t *testing.T) {
	s := newAudiences(t, Limits{})
	create(t, s, 1)
	old, _ := s.find(t.Context(), "users")
	put(t, s, Recipient{ID: "a"})
	if err := s.Delete(t.Context(), "users", 1); err != nil {
		t.Fatal(err)
	}
	create(t, s, 1)
	put(t, s, Recipient{ID: "b"})
	b := batch{Audiences: s, a: old, out: make([]Put, 1), byShard: make(map[int][]change)}
	b.add(0, audience.Change{ID: "c", Put: &audience.Recipient{ID: "c", Zone: "UTC"}})
	if err := b.run(t.Context()); reasonOf(err) != "NO_AUDIENCE" {
		t.Errorf("got %v", err)
	}
	if status, _ := s.Describe(t.Context(), "users"); status.Recipients != 1 {
		t.Errorf("%d recipients, want 1", status.Recipients)
	}
}

func TestAnAudienceWithOpenRunsIsNotDeleted(t *testing.T) {
	s := newRuns(t)
	put(t, s.Audiences, Recipient{ID: "a"})
	s.begin(t, "digest")
	if err := s.Delete(t.Context(), "users", 1); reasonOf(err) != "AUDIENCE_IN_USE" {
		t.Errorf("got %v", err)
	}
	if got := put(t, s.Audiences, Recipient{ID: "b"}); got[0] != audience.Added {
		t.Errorf("it takes no recipients any more: %v", got)
	}
}

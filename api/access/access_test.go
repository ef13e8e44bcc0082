package access

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/api/auth"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
)

// away is a registry that can be out of reach.
type away struct {
	store.Registry
	gone atomic.Bool
}

func (r *away) RegistryChange(ctx context.Context) (int64, error) {
	if r.gone.Load() {
		return 0, store.ErrUnavailable
	}
	return r.Registry.RegistryChange(ctx)
}

func start(t *testing.T, registry store.Registry, keys ...string) *Access {
	t.Helper()
	_, root, _ := auth.NewToken()
	config := Config{On: true, Node: "a", Root: root}
	config.Keys = auth.NewClusterKeys(clusterKeys(keys...)...)
	a, err := New(config, registry, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	a.Start(t.Context())
	t.Cleanup(a.Stop)
	return a
}

func clusterKeys(texts ...string) (keys []auth.ClusterKey) {
	for _, text := range texts {
		keys = append(keys, auth.NewClusterKey([]byte(text)))
	}
	return keys
}

func makeToken(t *testing.T, a *Access) (secret, id string) {
	t.Helper()
	made, s, err := a.Tokens.Create(t.Context(), auth.Root(), NewToken{Name: "x", Grants: auth.Grants{{Verbs: auth.Work, Namespace: auth.DefaultNamespace, Topics: "mail"}}})
	if err != nil {
		t.Fatal(err)
	}
	return s.Reveal(), made.ID
}

// reason is why a token is refused; empty when it is not.
func reason(t *testing.T, a *Access, secret string) string {
	t.Helper()
	if _, e := a.Who(t.Context(), []string{"Bearer " + secret}, "/m"); e != nil {
		return e.Reason
	}
	return ""
}

func TestTokensCountOnEveryNodeAtOnceAndEndWithinTwoSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := memstore.New()
		here, there := start(t, registry), start(t, registry)
		secret, id := makeToken(t, here)
		if got := reason(t, there, secret); got != "" {
			t.Errorf("a token that was made elsewhere: %s", got)
		}
		s, _ := there.Who(t.Context(), []string{"bearer " + secret}, "/m")
		if err := here.Tokens.Revoke(t.Context(), auth.Root(), id); err != nil {
			t.Fatal(err)
		}
		if got := reason(t, here, secret); got != "BAD_CREDENTIALS" {
			t.Errorf("where it was revoked: %q", got)
		}
		begun := time.Now()
		<-s.Gone().Done()
		if took := time.Since(begun); took > 2*time.Second {
			t.Errorf("streams elsewhere end after %v", took)
		}
		if got := reason(t, there, secret); got != "BAD_CREDENTIALS" {
			t.Errorf("elsewhere: %q", got)
		}
	})
}

func TestKnownTokensGoOnWhileTheStoreIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := &away{Registry: memstore.New()}
		a := start(t, registry)
		secret, _ := makeToken(t, a)
		_, unknown, _ := auth.NewToken()
		registry.gone.Store(true)
		time.Sleep(9 * time.Minute)
		if got := reason(t, a, secret); got != "" {
			t.Errorf("known: %s", got)
		}
		if got := reason(t, a, unknown.Reveal()); got != "STORE_DOWN" {
			t.Errorf("unknown: %q", got)
		}
		time.Sleep(2 * time.Minute)
		if got := reason(t, a, secret); got != "STORE_DOWN" {
			t.Errorf("known, after too long: %q", got)
		}
		registry.gone.Store(false)
		time.Sleep(2 * time.Second)
		if got := reason(t, a, secret); got != "" {
			t.Errorf("known, when it is back: %s", got)
		}
		if got := reason(t, a, unknown.Reveal()); got != "BAD_CREDENTIALS" {
			t.Errorf("unknown, when it is back: %q", got)
		}
	})
}

// Whoever can write to the store, and has not the key of the fleet, makes no token.
func TestRecordsOfOthersDoNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const key, newer = "0123456789abcdef", "fedcba9876543210"
		registry := memstore.New()
		a, intruder := start(t, registry, key), start(t, registry)
		forged, _ := makeToken(t, intruder)
		time.Sleep(3 * time.Second)
		if got := reason(t, a, forged); got != "BAD_CREDENTIALS" {
			t.Errorf("a record without a seal: %q", got)
		}
		secret, id := makeToken(t, a)
		if got := reason(t, start(t, registry, newer), secret); got != "BAD_CREDENTIALS" {
			t.Errorf("sealed with a key that is gone: %q", got)
		}
		if got := reason(t, start(t, registry, key, newer), secret); got != "" {
			t.Errorf("sealed with a key that counts: %s", got)
		}
		// The record of a token under the name of another.
		records, _, _ := registry.Records(t.Context(), kindToken)
		for _, r := range records {
			if r.Name == id {
				r.Name, r.Version = "0123456789", 0
				if _, err := registry.PutRecord(t.Context(), r); err != nil {
					t.Fatal(err)
				}
			}
		}
		time.Sleep(3 * time.Second)
		if s, _ := a.Tokens.known("0123456789"); s != nil {
			t.Error("a record counts under another name")
		}
	})
}

func BenchmarkWho(b *testing.B) {
	a, err := New(Config{On: true}, memstore.New(), slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	_, s, err := a.Tokens.Create(b.Context(), auth.Root(), NewToken{Name: "x", Grants: auth.Root().Grants})
	if err != nil {
		b.Fatal(err)
	}
	header := []string{"Bearer " + s.Reveal()}
	b.ReportAllocs()
	for b.Loop() {
		if _, e := a.Who(b.Context(), header, "/m"); e != nil {
			b.Fatal(e)
		}
	}
}

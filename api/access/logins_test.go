package access

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/api/auth"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
)

func logIn(t *testing.T, a *Access, token string) string {
	t.Helper()
	key, _, err := a.Logins.Begin(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	return key.Reveal()
}

// knows reports whether a key stands for somebody.
func knows(t *testing.T, a *Access, key string) bool {
	t.Helper()
	_, e := a.Logins.Who(t.Context(), key)
	return e == nil
}

func TestALoginCountsOnEveryNodeUntilItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := memstore.New()
		here, there := start(t, registry), start(t, registry)
		token, id := makeToken(t, here)
		key := logIn(t, here, token)
		if s, e := there.Logins.Who(t.Context(), key); e != nil || s.ID != id {
			t.Fatal("a login that began elsewhere:", s, e)
		}
		if err := there.Logins.End(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		if knows(t, there, key) {
			t.Error("it goes on where it was ended")
		}
		time.Sleep(2 * time.Second)
		if knows(t, here, key) {
			t.Error("it goes on elsewhere")
		}
		key = logIn(t, here, token)
		if err := here.Tokens.Revoke(t.Context(), auth.Root(), id); err != nil {
			t.Fatal(err)
		}
		if knows(t, here, key) {
			t.Error("it goes on without its token")
		}
	})
}

func TestALoginEndsWhenItIsNotUsedAndAfterTwelveHours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := start(t, memstore.New())
		token, _ := makeToken(t, a)
		idle, used := logIn(t, a, token), logIn(t, a, token)
		began := time.Now()
		for time.Since(began) < loginLife-loginIdle {
			time.Sleep(loginIdle - touchEvery)
			if !knows(t, a, used) {
				t.Fatal("a login that is used ends after", time.Since(began))
			}
		}
		if knows(t, a, idle) {
			t.Error("a login that is not used goes on")
		}
		time.Sleep(loginIdle)
		if knows(t, a, used) {
			t.Error("a login goes on for ever")
		}
		logIn(t, a, token)
		if all, _, err := a.registry.Records(t.Context(), kindLogin); err != nil || len(all) != 1 {
			t.Errorf("%d logins are kept that have ended, %v", len(all)-1, err)
		}
	})
}

// TestALoginIsNotMadeByWhoeverWritesToTheStore: records are sealed where a fleet has a key.
func TestALoginIsNotMadeByWhoeverWritesToTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := memstore.New()
		a := start(t, registry, "0123456789abcdef0123456789abcdef")
		token, _ := makeToken(t, a)
		key := logIn(t, a, token)
		all, _, err := registry.Records(t.Context(), kindLogin)
		if err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		if _, err := registry.PutRecord(t.Context(), store.Record{Kind: kindLogin, Name: loginName("guess"), Value: all[0].Value}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if !knows(t, a, key) || knows(t, a, "guess") {
			t.Error("a record under another key counts, or the right one does not")
		}
	})
}

package access

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/auth"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
)

func madeBy(t *testing.T, a *Access, maker *auth.Principal, name string) (*auth.Token, *auth.Principal) {
	t.Helper()
	made, _, err := a.Tokens.Create(t.Context(), maker, NewToken{Name: name, Grants: auth.Grants{{Verbs: auth.Admin, Namespace: auth.DefaultNamespace, Topics: "*"}}})
	if err != nil {
		t.Fatal(err)
	}
	return made, made.Principal()
}

// left are the names of the tokens that there are.
func left(t *testing.T, a *Access) (names []string) {
	t.Helper()
	all, err := a.Tokens.List(t.Context(), auth.Root())
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range all {
		names = append(names, k.Name)
	}
	slices.Sort(names)
	return names
}

func TestATokenIsRevokedWithThoseThatItMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := start(t, memstore.New())
		stolen, thief := madeBy(t, a, auth.Root(), "ops")
		_, namesake := madeBy(t, a, auth.Root(), "ops")
		madeBy(t, a, namesake, "of the other")
		between, second := madeBy(t, a, thief, "second")
		_, third := madeBy(t, a, second, "third")
		madeBy(t, a, third, "fourth")
		if _, _, err := a.Tokens.Rotate(t.Context(), thief, stolen.ID, time.Hour); err != nil {
			t.Fatal(err)
		}
		if between.MadeBy() != stolen.ID || stolen.MadeBy() != "" {
			t.Errorf("made by %q and %q, want %q and none", between.MadeBy(), stolen.MadeBy(), stolen.ID)
		}
		if err := a.Tokens.Revoke(t.Context(), thief, between.ID); err != nil { // which leaves what it made
			t.Fatal(err)
		}
		if err := a.Tokens.Revoke(t.Context(), auth.Root(), stolen.ID); err != nil {
			t.Fatal(err)
		}
		if got, want := left(t, a), []string{"fourth", "of the other", "ops", "ops", "third"}; !slices.Equal(got, want) {
			t.Errorf("revoked alone leaves %q, want %q", got, want)
		}
		if err := a.Tokens.RevokeWithMade(t.Context(), auth.Root(), stolen.ID); err != nil {
			t.Errorf("what a token made that is gone: %v", err)
		}
		if got, want := left(t, a), []string{"of the other", "ops"}; !slices.Equal(got, want) {
			t.Errorf("left are %q, want %q", got, want)
		}
		var e *problem.Error
		if err := a.Tokens.RevokeWithMade(t.Context(), auth.Root(), stolen.ID); !errors.As(err, &e) || e.Reason != "NO_TOKEN" {
			t.Errorf("when nothing is left: %v", err)
		}
	})
}

// Whoever may not end a token does not end it by its maker.
func TestRevokingWithMadeEndsNoMoreThanOneMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := start(t, memstore.New())
		maker, by := madeBy(t, a, auth.Root(), "maker")
		madeBy(t, a, by, "made")
		_, id := makeToken(t, a)
		weak, _ := a.Tokens.known(id)
		var e *problem.Error
		if err := a.Tokens.RevokeWithMade(t.Context(), weak.Principal, maker.ID); !errors.As(err, &e) || e.Reason != "NO_TOKEN" {
			t.Errorf("by one that may do less: %v", err)
		}
		if got := left(t, a); len(got) != 3 {
			t.Errorf("left are %q", got)
		}
	})
}

// A token knows the first and the last of many that it comes from.
func TestManyMakersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := start(t, memstore.New())
		first, by := madeBy(t, a, auth.Root(), "0")
		for range 50 {
			_, by = madeBy(t, a, by, "x")
		}
		if n := len(by.Makers); n != 32 || by.Makers[0] != first.ID {
			t.Errorf("%d makers, the first %s, want 32 from %s on", n, by.Makers[0], first.ID)
		}
		if err := a.Tokens.RevokeWithMade(t.Context(), auth.Root(), first.ID); err != nil || len(left(t, a)) != 0 {
			t.Errorf("%v, and left are %d", err, len(left(t, a)))
		}
	})
}

// A record of before names no maker.
func TestTokensOfBeforeHaveNoMaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := memstore.New()
		a := start(t, registry)
		k, _ := madeBy(t, a, auth.Root(), "old")
		records, _, err := registry.Records(t.Context(), kindToken)
		if err != nil || len(records) != 1 {
			t.Fatal(err, len(records))
		}
		if old, _, err := a.Tokens.open(&store.Record{Kind: kindToken, Name: k.ID, Value: records[0].Value}); err != nil || old.MadeBy() != "" || old.Makers != nil {
			t.Errorf("%+v, %v", old, err)
		}
	})
}

package access

import (
	"bytes"
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/api/auth"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
)

// readOnly is a registry that cannot be written for a while.
type readOnly struct {
	store.Registry
	on atomic.Bool
}

func (r *readOnly) PutRecord(ctx context.Context, record store.Record) (int64, error) {
	if r.on.Load() {
		return 0, store.ErrUnavailable
	}
	return r.Registry.PutRecord(ctx, record)
}

// TestFleetRotatesItsKey: a new key is added everywhere, made the first everywhere, and the old one is
// taken away everywhere. No token, binding or login is lost in between, and no open stream.
func TestFleetRotatesItsKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const older, newer = "0123456789abcdef", "fedcba9876543210"
		registry := memstore.New()
		nodes := []*Access{start(t, registry, older), start(t, registry, older), start(t, registry, older)}
		secret, id := makeToken(t, nodes[0])
		mail := auth.Grants{{Verbs: auth.Work, Namespace: auth.DefaultNamespace, Topics: "mail"}}
		if _, err := nodes[0].Bindings.Bind(t.Context(), auth.Root(), &auth.Binding{Name: "b", Certificate: "spiffe://a/", Grants: mail}); err != nil {
			t.Fatal(err)
		}
		key, _, err := nodes[0].Logins.Begin(t.Context(), secret)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		var open []*Session
		for _, n := range nodes {
			s, e := n.Who(t.Context(), []string{"Bearer " + secret}, "/m")
			if e != nil {
				t.Fatal(e)
			}
			open = append(open, s)
		}
		for _, keys := range [][]string{{older, newer}, {newer, older}, {newer}} {
			for i, n := range nodes {
				if err := n.UseKeys(t.Context(), clusterKeys(keys...)); err != nil {
					t.Fatal(err)
				}
				made, madeID := makeToken(t, n) // by either key
				time.Sleep(2 * time.Second)
				for j, other := range nodes {
					if got := reason(t, other, secret) + reason(t, other, made); got != "" {
						t.Errorf("keys %q at node %d, and node %d refuses tokens: %s", keys, i, j, got)
					}
					if _, e := other.Logins.Who(t.Context(), key.Reveal()); e != nil {
						t.Errorf("keys %q at node %d, and node %d forgot a login", keys, i, j)
					}
				}
				if err := n.Tokens.Revoke(t.Context(), auth.Root(), madeID); err != nil {
					t.Error(err)
				}
			}
		}
		for i, s := range open {
			if s.Gone().Err() != nil {
				t.Errorf("a stream ended at node %d", i)
			}
		}
		fresh := start(t, registry, newer)
		if got := reason(t, fresh, secret); got != "" {
			t.Errorf("a node that never had the older key: %s", got)
		}
		if all, err := fresh.Bindings.List(t.Context(), auth.Root()); err != nil || len(all) != 1 {
			t.Errorf("bindings: %v, %v", all, err)
		}
		if err := nodes[0].Tokens.Revoke(t.Context(), auth.Root(), id); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		for i, s := range open {
			if s.Gone().Err() == nil {
				t.Errorf("a revoked token has a stream at node %d", i)
			}
		}
	})
}

// TestRestartedFleetRotatesItsKey: keys may also be exchanged by restarts.
func TestRestartedFleetRotatesItsKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const older, newer = "0123456789abcdef", "fedcba9876543210"
		registry := memstore.New()
		first := start(t, registry, older)
		secret, _ := makeToken(t, first)
		first.Stop()
		start(t, registry, newer, older).Stop()
		if got := reason(t, start(t, registry, newer), secret); got != "" {
			t.Errorf("after the older key was taken away: %s", got)
		}
	})
}

// TestKeyCountsUntilNothingIsSealedWithIt: a key that is taken away while the store is away counts until
// the records are sealed anew, and a record of nobody's key stays as it is.
func TestKeyCountsUntilNothingIsSealedWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const older, newer = "0123456789abcdef", "fedcba9876543210"
		registry := &readOnly{Registry: memstore.New()}
		a, stranger := start(t, registry, older), start(t, registry, "another key here")
		secret, _ := makeToken(t, a)
		forged, forgedID := makeToken(t, stranger)
		before, _, err := registry.Records(t.Context(), kindToken)
		if err != nil {
			t.Fatal(err)
		}
		registry.on.Store(true)
		if err := a.UseKeys(t.Context(), clusterKeys(newer)); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("without the store: %v", err)
		}
		time.Sleep(5 * time.Second)
		if got := reason(t, a, secret); got != "" {
			t.Errorf("a token under the key that still counts: %s", got)
		}
		registry.on.Store(false)
		if err := a.UseKeys(t.Context(), clusterKeys(newer)); err != nil {
			t.Fatal(err)
		}
		if got := a.config.Keys.All(); len(got) != 1 {
			t.Errorf("%d keys count", len(got))
		}
		if got := reason(t, a, secret); got != "" {
			t.Errorf("the token: %s", got)
		}
		if got := reason(t, a, forged); got != "BAD_CREDENTIALS" {
			t.Errorf("the token of a stranger: %q", got)
		}
		after, _, err := registry.Records(t.Context(), kindToken)
		if err != nil {
			t.Fatal(err)
		}
		for i := range after {
			if same := bytes.Equal(before[i].Value, after[i].Value); same != (after[i].Name == forgedID) {
				t.Errorf("record %d: the same %v", i, same)
			}
		}
	})
}

func TestFleetWithoutKeysGetsNone(t *testing.T) {
	a := start(t, memstore.New())
	if err := a.UseKeys(t.Context(), clusterKeys("0123456789abcdef")); err == nil {
		t.Error("a fleet without keys took one")
	}
	b := start(t, memstore.New(), "0123456789abcdef")
	if err := b.UseKeys(t.Context(), nil); err == nil {
		t.Error("a fleet gave up its keys")
	}
}

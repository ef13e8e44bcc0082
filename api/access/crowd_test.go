package access

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/auth"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
)

// counted counts how often all records of a kind are read.
type counted struct {
	store.Registry
	reads atomic.Int64
}

func (c *counted) Records(ctx context.Context, kind string) ([]store.Record, int64, error) {
	c.reads.Add(1)
	return c.Registry.Records(ctx, kind)
}

// tokenOf makes a token of a namespace.
func tokenOf(t *testing.T, a *Access, namespace string, life time.Duration) (secret string, err error) {
	t.Helper()
	_, s, err := a.Tokens.Create(t.Context(), auth.Root(), NewToken{Name: "x", Life: life, Grants: auth.Grants{{Verbs: auth.Work, Namespace: namespace, Topics: "mail"}}})
	return s.Reveal(), err
}

func reasonOfError(err error) string {
	var e *problem.Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return fmt.Sprint(err)
}

// TestTenantsTakeNoTokensFromOthers: a namespace has a part of the tokens and logins that there may be.
func TestTenantsTakeNoTokensFromOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := &counted{Registry: memstore.New()}
		a, _ := New(Config{On: true, Node: "a"}, registry, slog.New(slog.DiscardHandler))
		a.Start(t.Context())
		defer a.Stop()
		var secret string
		made, before := 0, registry.reads.Load()
		for ; made < 2*mostOfNamespace; made++ {
			life := time.Hour
			if made%5 == 0 {
				life = time.Minute
			}
			s, err := tokenOf(t, a, "acme", life)
			if err != nil {
				if got := reasonOfError(err); got != "TOO_MANY_TOKENS" {
					t.Errorf("one token too many: %s", got)
				}
				break
			}
			secret = s
		}
		if made != mostOfNamespace {
			t.Errorf("a namespace has %d tokens, want %d", made, mostOfNamespace)
		}
		if reads := registry.reads.Load() - before; reads > 0 {
			t.Errorf("%d tokens read all records %d times", made, reads)
		}
		for _, namespace := range []string{"other", auth.DefaultNamespace} {
			if _, err := tokenOf(t, a, namespace, 0); err != nil {
				t.Errorf("a token of %q: %v", namespace, err)
			}
		}
		logins := 0
		for ; logins < 2*mostOfNamespace; logins++ {
			if _, _, err := a.Logins.Begin(t.Context(), secret); err != nil {
				if got := reasonOfError(err); got != "TOO_MANY_LOGINS" {
					t.Errorf("one login too many: %s", got)
				}
				break
			}
		}
		if logins != mostOfNamespace {
			t.Errorf("a namespace has %d logins, want %d", logins, mostOfNamespace)
		}
		other, err := tokenOf(t, a, "other", 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := a.Logins.Begin(t.Context(), other); err != nil {
			t.Errorf("a login of somebody else: %v", err)
		}
		if reads := registry.reads.Load() - before; reads > 0 {
			t.Errorf("tokens and logins read all records %d times", reads)
		}

		time.Sleep(2 * time.Minute) // some expire
		if _, err := tokenOf(t, a, "acme", 0); err != nil {
			t.Errorf("a token when others have expired: %v", err)
		}
	})
}

// TestWritesOfSeveralNodesAreSeen: a write that follows one of another node does not hide it.
func TestWritesOfSeveralNodesAreSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := memstore.New()
		var nodes []*Access
		for range 2 {
			a, _ := New(Config{On: true, Node: "a"}, db, slog.New(slog.DiscardHandler))
			a.Start(t.Context())
			defer a.Stop()
			nodes = append(nodes, a)
		}
		for i := range 40 {
			secret, err := tokenOf(t, nodes[i%3%2], "acme", 0)
			if err != nil {
				t.Fatal(err)
			}
			if got := reason(t, nodes[i%3%2], secret); got != "" {
				t.Errorf("token %d where it was made: %s", i, got)
			}
		}
		synctest.Wait()
		time.Sleep(2 * lookEvery)
		for i, a := range nodes {
			if _, n, _ := a.Tokens.count("acme", time.Now()); n != 40 {
				t.Errorf("node %d knows %d tokens", i, n)
			}
		}
	})
}

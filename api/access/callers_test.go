package access

import (
	"context"
	"crypto/x509"
	"errors"
	"log/slog"
	"net/url"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/auth"
	"github.com/ddq-io/ddq/api/auth/oidc"
	"github.com/ddq-io/ddq/api/auth/oidc/oidctest"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
)

// vouching counts all certificates while it is not withdrawn.
type vouching struct{ withdrawn atomic.Bool }

func (v *vouching) Vouched([]*x509.Certificate) bool { return !v.withdrawn.Load() }
func (v *vouching) Change() int64 {
	if v.withdrawn.Load() {
		return 2
	}
	return 1
}

// known is a node that knows callers by certificates and tokens of an issuer.
func known(t *testing.T, registry store.Registry) (*Access, *oidctest.Issuer, *vouching) {
	t.Helper()
	from, certs := oidctest.New(), new(vouching)
	issuers, err := oidc.New(oidc.Config{Issuers: []string{from.URL}, Audience: oidctest.Audience, Transport: from}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	issuers.Start()
	t.Cleanup(issuers.Stop)
	_, root, _ := auth.NewToken()
	a, err := New(Config{On: true, Node: "a", Root: root, Bearers: issuers, Certificates: certs}, registry, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	a.Start(t.Context())
	t.Cleanup(a.Stop)
	return a, from, certs
}

// knownNodes is known where certificates of some names are those of nodes.
func knownNodes(t *testing.T, onlyNodes bool) (*Access, *vouching) {
	t.Helper()
	_, root, _ := auth.NewToken()
	certs := new(vouching)
	a, err := New(Config{On: true, Node: "a", Root: root, Certificates: certs, Nodes: auth.Subjects{"spiffe://prod/ddq/"}, OnlyNodes: onlyNodes}, memstore.New(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	a.Start(t.Context())
	t.Cleanup(a.Stop)
	return a, certs
}

func bind(t *testing.T, a *Access, b *auth.Binding) {
	t.Helper()
	b.Grants = auth.Grants{{Verbs: auth.Work, Namespace: auth.DefaultNamespace, Topics: "mail"}}
	if _, err := a.Bindings.Bind(t.Context(), auth.Root(), b); err != nil {
		t.Fatal(err)
	}
}

// with calls as a connection that showed a certificate for a minute.
func with(t *testing.T, a *Access, uri string) (*Session, *problem.Error) {
	t.Helper()
	u, err := url.Parse(uri)
	if err != nil {
		t.Fatal(err)
	}
	leaf := &x509.Certificate{Raw: []byte(uri), URIs: []*url.URL{u}, NotAfter: begun.Add(time.Hour)}
	ctx := auth.WithOrigin(t.Context(), auth.Origin{Chain: []*x509.Certificate{leaf}})
	return a.Who(ctx, nil, "/m")
}

// begun is when bubbles begin.
var begun = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func endsSoon(t *testing.T, what string, s *Session) {
	t.Helper()
	at := time.Now()
	select {
	case <-s.Gone().Done():
	case <-time.After(2 * time.Second):
		t.Errorf("%s: the session goes on after %v", what, time.Since(at))
	}
}

func TestBindingsGiveGrantsOnEveryNodeAndTakeThemWithinTwoSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := memstore.New()
		here, from, _ := known(t, registry)
		there, _, _ := known(t, registry)
		const uri = "spiffe://prod/mail/a"
		token := from.Sign(from.Claims("mailer", "ops"))
		bind(t, here, &auth.Binding{Name: "certs", Certificate: "spiffe://prod/mail/"})
		bind(t, here, &auth.Binding{Name: "ops", Issuer: from.URL, Claim: "groups", Value: "ops"})
		time.Sleep(2 * time.Second)
		byCert, e := with(t, there, uri)
		if e != nil || !byCert.Allow(auth.Work, "mail") || byCert.Kind != auth.KindCertificate || byCert.Name != uri {
			t.Fatalf("certificate: %+v, %v", byCert, e)
		}
		byToken, e := here.Who(t.Context(), []string{"Bearer " + token}, "/m")
		if e != nil || !byToken.Allow(auth.Work, "mail") || byToken.Kind != auth.KindIssuer {
			t.Fatalf("token: %+v, %v", byToken, e)
		}
		if again, _ := here.Who(t.Context(), []string{"Bearer " + token}, "/m"); again != byToken {
			t.Error("a token that is known was checked again")
		}
		for _, name := range []string{"certs", "ops"} {
			if err := here.Bindings.Unbind(t.Context(), auth.Root(), name); err != nil {
				t.Fatal(err)
			}
		}
		endsSoon(t, "certificate", byCert)
		endsSoon(t, "token", byToken)
		if s, e := with(t, there, uri); e != nil || s.Allow(auth.Work, "mail") {
			t.Errorf("certificate without a binding: %+v, %v", s, e)
		}
	})
}

// A change that leaves a caller's grants as they are does not end its streams.
func TestBindingsOfOthersLeaveSessionsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _, _ := known(t, memstore.New())
		bind(t, a, &auth.Binding{Name: "certs", Certificate: "spiffe://prod/mail/"})
		s, e := with(t, a, "spiffe://prod/mail/a")
		if e != nil {
			t.Fatal(e)
		}
		bind(t, a, &auth.Binding{Name: "others", Certificate: "spiffe://prod/sms/"})
		makeToken(t, a)
		time.Sleep(3 * time.Second)
		if s.Gone().Err() != nil {
			t.Error("the session ended")
		}
	})
}

func TestWhatVouchedIsWithdrawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, from, certs := known(t, memstore.New())
		token := from.Sign(from.Claims("mailer"))
		byToken, e := a.Who(t.Context(), []string{"Bearer " + token}, "/m")
		if e != nil {
			t.Fatal(e)
		}
		byCert, e := with(t, a, "spiffe://prod/mail/a")
		if e != nil {
			t.Fatal(e)
		}
		certs.withdrawn.Store(true)
		endsSoon(t, "certificate", byCert)
		if _, e := with(t, a, "spiffe://prod/mail/a"); e == nil || e.Reason != "BAD_CREDENTIALS" {
			t.Errorf("a call on the connection that is open still: %v", e)
		}
		time.Sleep(time.Minute)
		from.Rotate(false)
		if _, e := a.Who(t.Context(), []string{"Bearer " + from.Sign(from.Claims("x"))}, "/m"); e != nil {
			t.Fatal(e)
		}
		endsSoon(t, "token", byToken)
		if _, e := a.Who(t.Context(), []string{"Bearer " + token}, "/m"); e == nil || e.Reason != "BAD_CREDENTIALS" {
			t.Errorf("under a key that was withdrawn: %v", e)
		}
	})
}

func TestCallersThatExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, from, _ := known(t, memstore.New())
		token := from.Sign(from.Claims("mailer"))
		call := func() *problem.Error {
			_, e := a.Who(t.Context(), []string{"Bearer " + token}, "/m")
			return e
		}
		if e := call(); e != nil {
			t.Fatal(e)
		}
		time.Sleep(11 * time.Minute)
		if e := call(); e == nil || e.Reason != "BAD_CREDENTIALS" {
			t.Errorf("after its end: %v", e)
		}
		if len(a.callers.by) != 0 {
			t.Errorf("%d callers are remembered", len(a.callers.by))
		}
		if _, e := with(t, a, "spiffe://prod/mail/a"); e != nil {
			t.Error(e)
		}
		time.Sleep(time.Hour)
		if _, e := with(t, a, "spiffe://prod/mail/a"); e == nil || e.Reason != "BAD_CREDENTIALS" {
			t.Errorf("a certificate after its end: %v", e)
		}
	})
}

func TestWhoIsNotLetIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := &away{Registry: memstore.New()}
		a, from, _ := known(t, registry)
		if _, e := with(t, a, "spiffe://prod/mail/../a"); e == nil || e.Reason != "BAD_CREDENTIALS" {
			t.Errorf("a certificate without a name that counts: %v", e)
		}
		if _, e := a.Who(t.Context(), nil, "/m"); e == nil || e.Reason != "NO_CREDENTIALS" {
			t.Errorf("nothing: %v", e)
		}
		if _, e := a.Who(auth.WithOrigin(t.Context(), auth.Origin{}), []string{"Bearer x.y.z"}, "/m"); e == nil || e.Reason != "BAD_CREDENTIALS" {
			t.Errorf("no token: %v", e)
		}
		registry.gone.Store(true)
		time.Sleep(11 * time.Minute)
		if _, e := with(t, a, "spiffe://prod/mail/a"); e == nil || e.Reason != "STORE_DOWN" {
			t.Errorf("bindings that are too old: %v", e)
		}
		from.Away.Store(true)
		from.Rotate(false)
		time.Sleep(11 * time.Minute)
		if _, e := a.Who(t.Context(), []string{"Bearer " + from.Sign(from.Claims("x"))}, "/m"); e == nil || e.Reason != "ISSUER_DOWN" {
			t.Errorf("issuer that is away: %v", e)
		}
	})
}

// More callers than are remembered are let in as well, and end with every change.
func TestMoreCallersThanAreRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _, _ := known(t, memstore.New())
		for i := range maxShown {
			a.callers.by[credential{byte(i), byte(i >> 8), byte(i >> 16)}] = &caller{Session: newSession(auth.Local()), identity: &auth.Identity{}}
		}
		s, e := with(t, a, "spiffe://prod/mail/a")
		if e != nil || len(a.callers.by) != maxShown {
			t.Fatalf("%v, %d remembered", e, len(a.callers.by))
		}
		bind(t, a, &auth.Binding{Name: "certs", Certificate: "spiffe://prod/sms/"})
		endsSoon(t, "one beyond", s)
	})
}

// Nobody binds more than they may, and those that end bind nothing.
func TestBindingsAreWithinTheGrantsOfTheirMaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _, _ := known(t, memstore.New())
		maker := func(topics auth.Pattern, end time.Time) *auth.Principal {
			admin, _ := auth.ParseVerb("admin")
			return &auth.Principal{Namespace: auth.DefaultNamespace, Expires: end, Grants: auth.Grants{{Verbs: admin, Namespace: auth.DefaultNamespace, Topics: topics}}}
		}
		put := func(by *auth.Principal, topics auth.Pattern) string {
			_, err := a.Bindings.Bind(context.Background(), by, &auth.Binding{
				Name: "x", Certificate: "spiffe://prod/a", Grants: auth.Grants{{Verbs: auth.Work, Namespace: auth.DefaultNamespace, Topics: topics}},
			})
			var e *problem.Error
			if errors.As(err, &e) {
				return e.Reason
			}
			return ""
		}
		for _, c := range []struct {
			by     *auth.Principal
			topics auth.Pattern
			want   string
		}{
			{maker("mail", time.Time{}), "sms", "BEYOND_GRANTS"},
			{maker("mail", time.Now().Add(time.Hour)), "mail", "BEYOND_GRANTS"},
			{maker("mail", time.Time{}), "mail", ""},
			{maker("sms", time.Time{}), "sms", "BEYOND_GRANTS"}, // it would take the binding from mail
			{maker("mail", time.Time{}), "*mail", "BAD_BINDING"},
		} {
			if got := put(c.by, c.topics); got != c.want {
				t.Errorf("%v on %s: %q, want %q", c.by.Grants, c.topics, got, c.want)
			}
		}
		if err := a.Bindings.Unbind(t.Context(), maker("sms", time.Time{}), "x"); err == nil {
			t.Error("somebody else ended it")
		}
		if all, err := a.Bindings.List(t.Context(), maker("sms", time.Time{})); err != nil || len(all) != 0 {
			t.Errorf("somebody else sees %v, %v", all, err)
		}
	})
}

// A certificate with the name of a node is that of a node, whatever bindings say of it.
func TestNodesByCertificate(t *testing.T) {
	for _, onlyNodes := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			a, certs := knownNodes(t, onlyNodes)
			bind(t, a, &auth.Binding{Name: "nodes", Certificate: "spiffe://prod/ddq/"})
			s, e := with(t, a, "spiffe://prod/ddq/n1")
			if e != nil || s.Kind != auth.KindNode || !s.MayBe("n1") || !s.MayBe("n2") || s.Allow(auth.Work, "mail") || !s.Grants.AllowFleet(auth.Node) {
				t.Fatalf("a node: %+v, %v", s, e)
			}
			if !s.Expires.Equal(begun.Add(time.Hour)) {
				t.Errorf("it counts until %v", s.Expires)
			}
			if again, _ := with(t, a, "spiffe://prod/ddq/n1"); again != s {
				t.Error("a certificate that is known was checked again")
			}
			client, e := with(t, a, "spiffe://prod/mailer")
			if onlyNodes && (e == nil || e.Reason != "NO_CREDENTIALS") || !onlyNodes && (e != nil || client.Kind != auth.KindCertificate) {
				t.Errorf("another name: %+v, %v", client, e)
			}
			if err := a.Bindings.Unbind(t.Context(), auth.Root(), "nodes"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Second)
			if s.Gone().Err() != nil {
				t.Error("it ended with a binding")
			}
			certs.withdrawn.Store(true)
			endsSoon(t, "node", s)
			if _, e := with(t, a, "spiffe://prod/ddq/n1"); e == nil || e.Reason != "BAD_CREDENTIALS" {
				t.Errorf("without its authority: %v", e)
			}
		})
	}
}

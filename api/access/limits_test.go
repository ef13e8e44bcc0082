package access

import (
	"context"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/auth"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
)

// counting counts how often somebody asks for the number of the last change.
type counting struct {
	store.Registry
	asked atomic.Int64
}

func (c *counting) RegistryChange(ctx context.Context) (int64, error) {
	c.asked.Add(1)
	return c.Registry.RegistryChange(ctx)
}

// from is a context of calls from an address.
func from(t *testing.T, addr string) context.Context {
	t.Helper()
	return auth.WithOrigin(t.Context(), auth.Origin{Addr: netip.MustParseAddr(addr)})
}

func TestAddressesThatFailTooOftenWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := &counting{Registry: memstore.New()}
		a := start(t, registry)
		a.failures.perSecond = 10
		secret, _ := makeToken(t, a)
		_, guess, _ := auth.NewToken()
		try := func(addr, header string) *problem.Error {
			_, e := a.Who(from(t, addr), []string{header}, "/m")
			return e
		}
		for i := range 10 {
			if e := try("192.0.2.1", "Bearer x"); e == nil || e.Reason != "BAD_CREDENTIALS" {
				t.Fatalf("failure %d: %v", i, e)
			}
		}
		before := registry.asked.Load()
		for range 100 {
			e := try("192.0.2.1", "Bearer "+guess.Reveal())
			if e == nil || e.Reason != "TOO_MANY_FAILURES" || e.Kind != problem.Exhausted || e.RetryAfter <= 0 || e.RetryAfter > 101*time.Millisecond {
				t.Fatalf("got %+v", e)
			}
		}
		if asked := registry.asked.Load() - before; asked != 0 {
			t.Errorf("the store was asked %d times for guesses", asked)
		}
		if e := try("192.0.2.1", "Basic x"); e == nil || e.Reason != "TOO_MANY_FAILURES" {
			t.Errorf("no token at all: %v", e)
		}
		for what, addr := range map[string]string{"another address": "192.0.2.2", "this machine": "127.0.0.1", "another network": "2001:db8:1::1"} {
			if e := try(addr, "Bearer x"); e == nil || e.Reason != "BAD_CREDENTIALS" {
				t.Errorf("%s: %v", what, e)
			}
		}
		if e := try("192.0.2.1", "Bearer "+secret); e != nil {
			t.Errorf("a token that is known, from that address: %v", e)
		}
		time.Sleep(time.Second)
		if e := try("192.0.2.1", "Bearer "+guess.Reveal()); e == nil || e.Reason != "BAD_CREDENTIALS" {
			t.Errorf("a second later: %v", e)
		}
		for i := range 11 {
			addr := []string{"2001:db8::1", "2001:db8::ffff:2"}[i%2]
			if e := try(addr, "Bearer x"); (i == 10) != (e.Reason == "TOO_MANY_FAILURES") {
				t.Errorf("network of IPv6, %d: %v", i, e)
			}
		}
	})
}

func TestAddressesThatFailedLongAgoAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFailures(10)
		fail := func(n int) {
			for i := range n {
				addr := netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})
				f.count(auth.WithOrigin(t.Context(), auth.Origin{Addr: addr}), time.Now())
			}
		}
		fail(manyAddresses)
		time.Sleep(time.Minute)
		f.count(from(t, "192.0.2.1"), time.Now())
		if len(f.by) != 1 {
			t.Errorf("%d addresses are remembered", len(f.by))
		}
	})
}

// Tokens do not escape their bound by making others.
func TestTokensInheritTheBoundOfTheirMaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := start(t, memstore.New())
		grants := auth.Grants{{Verbs: auth.Admin | auth.Work, Namespace: auth.DefaultNamespace, Topics: "mail"}}
		maker, _, err := a.Tokens.Create(t.Context(), auth.Root(), NewToken{Name: "x", Grants: grants, CallsPerSecond: 5})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			calls, want int // 0: refused
		}{{0, 5}, {5, 5}, {1, 1}, {6, 0}, {-1, 0}} {
			made, _, err := a.Tokens.Create(t.Context(), maker.Principal(), NewToken{Name: "y", Grants: grants, CallsPerSecond: c.calls})
			if (err == nil) != (c.want > 0) || err == nil && made.CallsPerSecond != c.want {
				t.Errorf("%d: %+v, %v", c.calls, made, err)
			}
		}
		if _, _, err := a.Tokens.Create(t.Context(), auth.Root(), NewToken{Name: "z", Grants: grants, CallsPerSecond: 1_000_001}); err == nil {
			t.Error("more than there may be")
		}
	})
}

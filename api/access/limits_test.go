package access

import (
	"context"
	"errors"
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
		if _, _, err := a.Logins.Begin(from(t, "192.0.2.1"), guess.Reveal()); reasonOf(err) != "TOO_MANY_FAILURES" {
			t.Errorf("a login with a guess: %v", err)
		}
		if _, _, err := a.Logins.Begin(from(t, "192.0.2.1"), secret); err != nil {
			t.Errorf("a login with a token that is known: %v", err)
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

// What a token may send is a second's worth at once, and on average no more than that, whatever the size of a call.
func TestVolumeOfPayloads(t *testing.T) {
	begin := time.Unix(1000, 0)
	v := newVolume(1000)
	for i, step := range []struct {
		at    time.Duration // since the beginning
		bytes int
		wait  time.Duration // 0: it is taken
	}{
		{0, 400, 0},
		{0, 600, 0},
		{0, 0, 0}, // nothing is never too much
		{0, 1, 2 * time.Millisecond},
		{time.Millisecond, 2, 2 * time.Millisecond},
		{2 * time.Millisecond, 1, 0},
		{500 * time.Millisecond, 500, 3 * time.Millisecond},
		{503 * time.Millisecond, 500, 0},
		{time.Second, 5000, 502 * time.Millisecond}, // for a whole second's worth
		{1504 * time.Millisecond, 5000, 0},
		{1504 * time.Millisecond, 1, 4002 * time.Millisecond}, // 4,000 are missing
		{5 * time.Second, 0, 0},
		{5506 * time.Millisecond, 1, 0},
		{time.Minute, 1000, 0},
		{time.Minute, 1000, 1001 * time.Millisecond}, // a rest gives no more than a second's worth
	} {
		wait, taken := v.take(step.bytes, begin.Add(step.at), 0)
		if taken != (step.wait == 0) || (wait-step.wait).Abs() > time.Millisecond {
			t.Errorf("step %d: wait %v, taken %v; want %v", i, wait, taken, step.wait)
		}
	}
}

func TestVolumeOfThoseWhoWait(t *testing.T) {
	v, now := newVolume(1000), time.Unix(1000, 0)
	for i, want := range []time.Duration{0, time.Second, 2 * time.Second, 3 * time.Second} { // in the order in which they come
		if wait, taken := v.take(1000, now, 3100*time.Millisecond); !taken || (wait-want).Abs() > time.Millisecond {
			t.Errorf("%d: %v, %v, want %v", i, wait, taken, want)
		}
	}
	if wait, taken := v.take(1000, now, 3100*time.Millisecond); taken || wait < 4*time.Second {
		t.Errorf("more than its patience: %v, %v", wait, taken)
	}
	if wait, _ := v.take(1, now.Add(3*time.Second), 0); wait > 2*time.Millisecond {
		t.Errorf("what was not taken was counted: %v", wait)
	}
}

func reasonOf(err error) string {
	e := (*problem.Error)(nil)
	if !errors.As(err, &e) {
		return ""
	}
	return e.Reason
}

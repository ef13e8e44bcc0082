package lease_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors/lease"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
)

const ttl = 2 * time.Second

func keeper(st store.Owner, addr string) *lease.Keeper {
	k := lease.New(st, slog.New(slog.DiscardHandler), store.Session{Node: "a", Start: store.NewToken(), TTL: ttl, Addr: addr})
	k.OnLost, k.OnBack, k.OnAbsent = func() {}, func() {}, func() {}
	return k
}

// TestOpenAsksWhoHasTheName: the session of a process that lives is not taken, whatever is known of its address, and that of
// a dead one is, at once where nobody is there.
func TestOpenAsksWhoHasTheName(t *testing.T) {
	for _, test := range []struct {
		name           string
		lives, answers bool
		dies           time.Duration // after the second one began; 0: not then
		taken          bool          // the name is
		within         time.Duration
	}{
		{"nobody has it", false, false, 0, false, 0},
		{"nobody answers", false, false, 0, false, 0},
		{"somebody else is at its address", false, true, 0, false, ttl + ttl/lease.Renewals},
		{"it lives", true, true, 0, true, 2 * ttl},
		{"it dies meanwhile", true, true, ttl / 8, false, 2 * ttl},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := memstore.New()
				if test.name != "nobody has it" {
					first := keeper(st, "10.0.0.1:9090")
					if err := first.Open(t.Context()); err != nil {
						t.Fatal(err)
					}
					first.Start()
					end := func() { first.Close() }
					switch {
					case !test.lives:
						end()
					case test.dies > 0:
						time.AfterFunc(test.dies, end)
					default:
						defer end()
					}
				}
				asked := ""
				second := keeper(st, "10.0.0.2:9090")
				second.Answers = func(_ context.Context, addr string) bool { asked = addr; return test.answers }
				began := time.Now()
				err := second.Open(t.Context())
				took := time.Since(began)
				named := (*lease.NameTakenError)(nil)
				if taken := errors.As(err, &named); taken != test.taken || err != nil && !taken || took > test.within {
					t.Errorf("got %v after %v, want that the name is taken: %v, within %v", err, took, test.taken, test.within)
				}
				if asked != "" && asked != "10.0.0.1:9090" || named != nil && *named != (lease.NameTakenError{Node: "a", Addr: "10.0.0.1:9090"}) {
					t.Errorf("asked %q, told %v", asked, named)
				}
			})
		})
	}
}

// TestAnEndedSessionIsNobodys: the next process of the name asks nobody, and knows where it is told to be.
func TestAnEndedSessionIsNobodys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New()
		nobody := func(context.Context, string) bool { t.Error("somebody is asked"); return true }
		first := keeper(st, "10.0.0.1:0")
		first.Answers = nobody
		if err := first.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		first.Addr = func() string { return "10.0.0.1:9090" }
		if addr := first.Session().Addr; addr != "10.0.0.1:9090" {
			t.Errorf("the session is at %s", addr)
		}
		first.Start()
		first.Close()
		first.End(t.Context())
		time.Sleep(time.Millisecond)
		second := keeper(st, "10.0.0.2:9090")
		second.Answers = nobody
		if err := second.Open(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

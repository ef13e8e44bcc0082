package taking

import (
	"context"
	"testing"
	"time"

	"github.com/ddq-io/ddq/store"
)

// bucket is a store with one rate, whose next token comes at a moment.
type bucket struct {
	now, next time.Time
}

func (b *bucket) Reserve(_ context.Context, asked []store.Reservation) ([]store.Tokens, error) {
	got := make([]store.Tokens, len(asked))
	for i, q := range asked {
		got[i] = store.Tokens{Now: b.now, First: b.next}
		if q.N > 0 && !b.next.After(b.now.Add(q.Ahead)) {
			got[i].N = 1
			b.next = b.next.Add(q.Rate.Spacing())
		}
	}
	return got, nil
}

func (b *bucket) Acquire(context.Context, []store.Acquire) ([]store.Acquired, error) { return nil, nil }

func (b *bucket) Free(context.Context, []store.Permit) ([][]string, error) { return nil, nil }

// Tokens that came while the clock of the store was an hour ahead were kept in hand when it was set back,
// and whoever was granted one waited for that hour.
func TestTokensOfAClockThatWasAheadAreForgotten(t *testing.T) {
	present := time.Date(2035, 1, 1, 0, 0, 0, 0, time.UTC)
	ahead := present.Add(time.Hour)
	b := &bucket{now: ahead, next: ahead}
	taker := Taker{Store: b, Now: func() time.Time { return b.now }}
	ask := func(back ...store.TokenReceipt) store.Taking {
		t.Helper()
		q := &store.Take{
			Topic: "mail", Limits: store.TopicLimits{Rate: store.Rate{Count: 1, Period: time.Second, Burst: 1}},
			Holders: store.NewTokens(1), Wants: make([]store.Want, 1), Back: back,
		}
		got, err := taker.Take(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		return got.Wants[0]
	}
	ask() // what is known of rates is swept behind the first call
	b.now = b.next
	first := ask()
	if first.Status != store.Granted {
		t.Fatalf("the first one is %v", first.Status)
	}
	b.now, b.next = present, present.Add(time.Second)
	if got := ask(first.Receipt); got.Status != store.NoToken || got.Again.After(b.next) {
		t.Errorf("after the clock was set back: %v at %v, again at %v; want no token until %v", got.Status, got.At, got.Again, b.next)
	}
	b.now = b.next
	if got := ask(); got.Status != store.Granted || got.At.After(b.now) {
		t.Errorf("a second later: %v at %v", got.Status, got.At)
	}
}

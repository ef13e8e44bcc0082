package limit_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/limit"
)

// fleet takes from a table as nodes do, in any order, and keeps what they got.
type fleet struct {
	*limit.Table
	limits store.TopicLimits
	now    time.Time
	calls  uint64
	used   map[string][]use // by rate key; empty: of the topic
	held   []*task
}

// use is a token that may be used at any moment from at until before before.
type use struct {
	at, before time.Time
	rate       store.Rate
}

// task is one that was granted.
type task struct {
	want   store.Want
	got    store.Taking
	holder store.Token
	until  time.Time
}

func (f *fleet) caps(w store.Want) (keys []store.LimitKey) {
	for i, key := range []string{w.CapKey, "", store.NamespaceCap} {
		if f.limits.Cap(key) > 0 && (i > 0 || key != "") {
			keys = append(keys, store.CapKey("mail", key))
		}
	}
	return keys
}

// take makes one call.
func (f *fleet) take(t *rapid.T) {
	q := &store.Take{Call: f.calls + 1, Topic: "mail", Node: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "node"), Limits: f.limits}
	f.calls++
	q.Holders = store.NewTokens(rapid.IntRange(0, 12).Draw(t, "room"))
	lasts := time.Duration(rapid.SampledFrom([]int{20, 5000}).Draw(t, "lasts")) * time.Millisecond
	q.Until = store.Millis(f.now.Add(lasts).UnixMilli())
	for range rapid.IntRange(0, 20).Draw(t, "wants") {
		q.Wants = append(q.Wants, store.Want{RateKey: rapid.SampledFrom([]string{"", "r", "s"}).Draw(t, "r"), CapKey: rapid.SampledFrom([]string{"", "c", "d"}).Draw(t, "c")})
	}
	var back []*task
	f.held = slices.DeleteFunc(f.held, func(h *task) bool {
		switch rapid.IntRange(0, 5).Draw(t, "end") {
		case 0: // it ended
		case 1: // it was not held
			q.Back = append(q.Back, h.got.Receipt)
			back = append(back, h)
		default:
			return false
		}
		for _, key := range f.caps(h.want) {
			q.Free = append(q.Free, store.Permit{Key: key, Holder: h.holder})
		}
		return true
	})
	for _, h := range back { // it was not used, whether its token went back or not
		f.unuse("", h.got.Receipt.Topic, h)
		f.unuse(h.want.RateKey, h.got.Receipt.Key, h)
	}
	reply, _ := f.Take(q, f.now)
	if again, _ := f.Take(q, f.now); fmt.Sprint(*again) != fmt.Sprint(*reply) {
		t.Fatalf("repeated: %+v, want %+v", *again, *reply)
	}
	n := 0
	for i, got := range reply.Wants {
		if got.Status != store.Granted {
			continue
		}
		w := q.Wants[i]
		f.held = append(f.held, &task{w, got, q.Holders[n], q.Until.Time()})
		n++
		if got.Receipt.Topic != (store.TokenMark{}) {
			f.used[""] = append(f.used[""], use{got.At, got.Before, f.limits.Rate})
		}
		if got.Receipt.Key != (store.TokenMark{}) {
			f.used[w.RateKey] = append(f.used[w.RateKey], use{got.At, got.Before, f.limits.KeyRate})
		}
		if !got.Before.IsZero() && !got.At.Before(got.Before) {
			t.Fatalf("may be held from %v until before %v", got.At, got.Before)
		}
	}
}

func (f *fleet) unuse(key string, m store.TokenMark, h *task) {
	if m == (store.TokenMark{}) {
		return
	}
	all := f.used[key]
	i := slices.IndexFunc(all, func(u use) bool { return u.at.Equal(h.got.At) && u.before.Equal(h.got.Before) })
	f.used[key] = slices.Delete(all, i, i+1)
}

// check finds more than the limits allow, however late or early the tokens are used.
func (f *fleet) check(t *rapid.T) {
	most := map[store.LimitKey]int{}
	for _, h := range f.held {
		if h.until.After(f.now) {
			for _, key := range f.caps(h.want) {
				if most[key]++; most[key] > f.limits.Cap(key.Key) {
					t.Fatalf("%d permits of %q, want at most %d", most[key], key, f.limits.Cap(key.Key))
				}
			}
		}
	}
	for key, all := range f.used {
		slices.SortFunc(all, func(a, b use) int { return a.at.Compare(b.at) })
		for i := range all {
			first := all[i].before
			for j := i; j < len(all); j++ {
				if all[j].before.Before(first) {
					first = all[j].before
				}
				// The least time in which these tokens can all be used.
				r, n, in := all[i].rate, j-i+1, max(0, all[j].at.Sub(first))
				if r.Kind == store.SlidingWindow {
					if in < r.Period-time.Microsecond && n > r.Count {
						t.Fatalf("%d tokens of %q within %v, want at most %d in %v", n, key, in, r.Count, r.Period)
					}
				} else if allowed := float64(r.Burst) + float64(r.Count)*float64(in+500*time.Millisecond+10*time.Microsecond)/float64(r.Period); float64(n) > allowed {
					t.Fatalf("%d tokens of %q within %v, want at most %.2f", n, key, in, allowed)
				}
			}
		}
	}
}

func drawRate(t *rapid.T, name string) store.Rate {
	n := rapid.SampledFrom([]int{1, 3, 50, 2000}).Draw(t, name+" count")
	per := rapid.SampledFrom([]time.Duration{200 * time.Millisecond, time.Second, 7 * time.Second}).Draw(t, name+" period")
	switch rapid.SampledFrom([]string{"none", "bucket", "window"}).Draw(t, name) {
	case "bucket":
		return store.Rate{Count: n, Period: per, Burst: rapid.SampledFrom([]int{1, n}).Draw(t, name+" burst")}
	case "window":
		return store.Rate{Kind: store.SlidingWindow, Count: n, Period: per}
	}
	return store.Rate{}
}

// TestNoLimitIsExceeded plays nodes that take, give back, free, die and repeat calls, beside callers of AcquireTokens.
func TestNoLimitIsExceeded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := func(name string) int { return rapid.SampledFrom([]int{0, 1, 2, 5}).Draw(t, name) }
		f := &fleet{Table: limit.NewTable(), now: time.UnixMilli(1_700_000_000_000).UTC(), used: map[string][]use{}, limits: store.TopicLimits{
			Rate: drawRate(t, "rate"), KeyRate: drawRate(t, "key rate"), Concurrency: most("cap"), KeyConcurrency: most("key cap"), Namespace: most("namespace"),
			DeadLetter: rapid.IntRange(0, 3).Draw(t, "over limit") == 0,
		}}
		t.Repeat(map[string]func(*rapid.T){
			"take": f.take,
			"time": func(t *rapid.T) {
				f.now = f.now.Add(time.Duration(rapid.SampledFrom([]int{1, 40, 2500, 9000, 60_000, 400_000, 3_000_000}).Draw(t, "us")) * time.Microsecond)
			},
			"caller": func(t *rapid.T) {
				if !f.limits.Rate.Limited() {
					return
				}
				r := f.limits.Rate
				n := rapid.IntRange(1, min(3, r.Most())).Draw(t, "n")
				got, _ := f.Reserve([]store.Reservation{{Key: mail, Rate: r, N: n, Whole: true, Ahead: 2 * time.Second}}, f.now)
				for i := range got[0].N {
					at := got[0].At(i, r)
					f.used[""] = append(f.used[""], use{at, r.Before(at), r})
				}
			},
			"": f.check,
		})
	})
}

var mail = store.LimitKey{Topic: "mail"}

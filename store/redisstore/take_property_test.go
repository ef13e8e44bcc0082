package redisstore_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/limit"
	"github.com/ddq-io/ddq/store/redisstore/redistest"
)

// TestTakeIsThatOfTheTable makes random calls of a Redis and, at the moments that it says, of a table of store/limit:
// script and rules say the same.
func TestTakeIsThatOfTheTable(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, server.URL())
	ctx := t.Context()
	run := 0
	rapid.Check(t, func(t *rapid.T) {
		run++
		topic := fmt.Sprint("acme", run, "/mail")
		table := limit.NewTable()
		limits := drawLimits(t)
		var held []heldPermits
		t.Repeat(map[string]func(*rapid.T){
			"take": func(t *rapid.T) {
				q := drawTake(t, topic, limits)
				held = slices.DeleteFunc(held, func(h heldPermits) bool {
					end := rapid.IntRange(0, 5).Draw(t, "end")
					if end == 1 {
						q.Back = append(q.Back, h.receipt)
					}
					if end < 2 {
						q.Free = append(q.Free, h.permits...)
					}
					return end < 2
				})
				got, err := s.Take(ctx, q)
				if err != nil {
					t.Fatal(err)
				}
				want, _ := table.Take(q, got.Now)
				sameTake(t, got, want)
				if rapid.Bool().Draw(t, "repeated") && q.Call != 0 {
					again, err := s.Take(ctx, q)
					if err != nil {
						t.Fatal(err)
					}
					sameTake(t, again, want)
				}
				n := 0
				for i := range got.Wants {
					if got.Wants[i].Status == store.Granted {
						h := heldPermits{receipt: got.Wants[i].Receipt}
						for k, key := range []string{q.Wants[i].CapKey, "", store.NamespaceCap} {
							if limits.Cap(key) > 0 && (k > 0 || key != "") {
								h.permits = append(h.permits, store.Permit{Key: store.CapKey(topic, key), Holder: q.Holders[n]})
							}
						}
						held = append(held, h)
						n++
					}
				}
			},
			"reserve": func(t *rapid.T) {
				key := store.LimitKey{Topic: topic, Key: rapid.SampledFrom([]string{"", "r"}).Draw(t, "key")}
				rate := limits.RateOf(key.Key)
				if !rate.Limited() {
					return
				}
				q := store.Reservation{Key: key, Rate: rate, Ahead: 500 * time.Millisecond, Whole: rapid.Bool().Draw(t, "whole")}
				q.N = rapid.IntRange(0, min(3, rate.Most())).Draw(t, "n")
				q.Life = rapid.SampledFrom([]time.Duration{0, 7 * time.Millisecond, time.Hour}).Draw(t, "life")
				got, err := s.Reserve(ctx, []store.Reservation{q})
				if err != nil {
					t.Fatal(err)
				}
				if want, _ := table.Reserve([]store.Reservation{q}, got[0].Now); got[0] != want[0] {
					t.Fatalf("reserved %+v, want %+v", got[0], want[0])
				}
			},
			"acquire": func(t *rapid.T) {
				if limits.Concurrency == 0 {
					return
				}
				q := store.Acquire{Key: store.CapKey(topic, ""), Max: limits.Concurrency, Holders: store.NewTokens(1), Until: farAway}
				got, err := s.Acquire(ctx, []store.Acquire{q})
				if err != nil {
					t.Fatal(err)
				}
				now, err := s.Clock(ctx)
				if err != nil {
					t.Fatal(err)
				}
				// Nodes in line may have lost their places between script and clock.
				if want := table.Acquire([]store.Acquire{q}, now); got[0].N != want[0].N {
					t.Fatalf("acquired %+v, want %+v", got[0], want[0])
				}
				if got[0].N == 1 {
					held = append(held, heldPermits{permits: []store.Permit{{Key: q.Key, Holder: q.Holders[0]}}})
				}
			},
			"time": func(t *rapid.T) {
				time.Sleep(time.Duration(rapid.SampledFrom([]int{0, 1, 3, 6, 12, 30}).Draw(t, "ms")) * time.Millisecond)
			},
		})
	})
}

// heldPermits is what one that was granted has.
type heldPermits struct {
	permits []store.Permit
	receipt store.TokenReceipt
}

// farAway is when permits end that do not end during the test.
const farAway = store.Millis(4_000_000_000_000)

func drawLimits(t *rapid.T) store.TopicLimits {
	rate := func(name string) store.Rate {
		n := rapid.SampledFrom([]int{1, 3, 50, 700}).Draw(t, name+" count")
		per := rapid.SampledFrom([]time.Duration{200 * time.Millisecond, time.Second, 7 * time.Second}).Draw(t, name+" period")
		switch rapid.SampledFrom([]string{"none", "bucket", "window"}).Draw(t, name) {
		case "bucket":
			return store.Rate{Count: n, Period: per, Burst: rapid.SampledFrom([]int{1, n}).Draw(t, name+" burst")}
		case "window":
			return store.Rate{Kind: store.SlidingWindow, Count: n, Period: per}
		}
		return store.Rate{}
	}
	most := func(name string) int { return rapid.SampledFrom([]int{0, 1, 2, 5}).Draw(t, name) }
	return store.TopicLimits{
		Rate: rate("rate"), KeyRate: rate("key rate"), Concurrency: most("cap"), KeyConcurrency: most("key cap"), Namespace: most("namespace"),
		DeadLetter: rapid.IntRange(0, 3).Draw(t, "over limit") == 0,
	}
}

var lastCall atomic.Uint64

func drawTake(t *rapid.T, topic string, limits store.TopicLimits) *store.Take {
	q := &store.Take{Topic: topic, Node: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "node"), Limits: limits, Until: farAway}
	if rapid.Bool().Draw(t, "remembered") {
		q.Call = lastCall.Add(1)
	}
	q.Life = rapid.SampledFrom([]time.Duration{0, 1, 900 * time.Microsecond, 7 * time.Millisecond, 90 * time.Millisecond, time.Hour}).Draw(t, "life")
	q.Holders = store.NewTokens(rapid.IntRange(0, 8).Draw(t, "room"))
	for range rapid.IntRange(0, 12).Draw(t, "wants") {
		q.Wants = append(q.Wants, store.Want{
			RateKey: rapid.SampledFrom([]string{"", "r", "s"}).Draw(t, "r"), CapKey: rapid.SampledFrom([]string{"", "c", "d"}).Draw(t, "c"),
		})
	}
	if rapid.IntRange(0, 3).Draw(t, "leaves") == 0 {
		q.Leave = rapid.SliceOfN(rapid.SampledFrom([]store.Limit{
			{Key: store.CapKey(topic, "")}, {Key: store.CapKey(topic, "c")}, {Key: store.CapKey(topic, store.NamespaceCap)},
			{Key: store.LimitKey{Topic: topic}, Rate: true}, {Key: store.LimitKey{Topic: topic, Key: "r"}, Rate: true},
		}), 1, 2).Draw(t, "leave")
	}
	return q
}

func sameTake(t *rapid.T, got, want *store.TakeReply) {
	t.Helper()
	if !got.Now.Equal(want.Now) {
		t.Fatalf("at %v, want %v", got.Now, want.Now)
	}
	for i := range want.Wants {
		if got.Wants[i] != want.Wants[i] {
			t.Fatalf("want %d of %d: got %+v, want %+v", i, len(want.Wants), got.Wants[i], want.Wants[i])
		}
	}
	if !slices.Equal(got.Notices, want.Notices) {
		t.Fatalf("notices: got %+v, want %+v", got.Notices, want.Notices)
	}
}

// TestALineOfAClockThatWasAheadIsOver has places and turns in the line of a cap that were written down by a clock an hour
// ahead.
func TestALineOfAClockThatWasAheadIsOver(t *testing.T) {
	const shift = `
local hour = 3600 * 1000000
for _, key in ipairs(redis.call('KEYS', 'ddq:{limit:*')) do
  local all = redis.call('TYPE', key).ok == 'hash' and redis.call('HGETALL', key) or {}
  for i = 1, #all, 2 do
    if #all[i + 1] == 16 and tonumber(all[i + 1]) == nil then
      local since, seen = struct.unpack('>i8i8', all[i + 1])
      redis.call('HSET', key, all[i], struct.pack('>i8i8', since + hour, seen + hour))
    elseif (all[i] == 't' or all[i] == 'b') and all[i + 1] ~= '0' then
      redis.call('HSET', key, all[i], string.format('%.0f', tonumber(all[i + 1]) + hour))
    end
  end
end
return #redis.call('KEYS', 'ddq:{limit:*')`
	server := redistest.Start(t)
	s := open(t, server.URL())
	take := func(node string, free ...store.Permit) store.TakeStatus {
		got, err := s.Take(t.Context(), &store.Take{
			Topic: "mail", Node: node, Limits: store.TopicLimits{Concurrency: 1}, Holders: []store.Token{{1: node[0]}}, Until: farAway,
			Wants: []store.Want{{}}, Free: free,
		})
		if err != nil {
			t.Fatal(err)
		}
		return got.Wants[0].Status
	}
	became := func(what string, got, want store.TakeStatus) {
		t.Helper()
		if got != want {
			t.Fatalf("%s became %d, want %d", what, got, want)
		}
	}
	became("the first", take("a"), store.Granted)
	became("one at the cap", take("b"), store.NoPermit)
	became("one behind it", take("c"), store.NoPermit)
	permit := store.Permit{Key: store.CapKey("mail", ""), Holder: store.Token{1: 'a'}}
	if _, err := s.Free(t.Context(), []store.Permit{permit}); err != nil {
		t.Fatal(err)
	}
	became("one that comes before its turn", take("c"), store.NoPermit) // the turn of b begins
	server.Do(t, "EVAL", shift, 0)
	became("one, once the places of others are over", take("c"), store.Granted)
}

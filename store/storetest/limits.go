package storetest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ddq-io/ddq/store"
)

func limitCases() []entry {
	return []entry{
		{"limits/a bucket gives its burst, then a token at a time", bucketGivesBurst},
		{"limits/a burst is whole, however long a token takes", burstIsWhole},
		{"limits/tokens of a bucket come at exact moments ahead", bucketMoments},
		{"limits/all or none", wholeReservations},
		{"limits/a look takes nothing", lookTakesNothing},
		{"limits/a window never has too many in any period", windowNeverTooMany},
		{"limits/a changed rate keeps what is owed", changedRate},
		{"limits/a rate goes on once a clock that was ahead is put right", rateAfterClock},
		{"limits/keys and topics do not share", limitsApart},
		{"limits/tokens are given once to callers at the same time", tokensGivenOnce},
		{"limits/never more permits than the cap", permitsUpToCap},
		{"limits/a permit is for one holder however often it is asked for", permitRepeated},
		{"limits/permits end by themselves", permitsEnd},
		{"limits/a moved permit lasts, also above the cap", permitsMove},
		{"limits/nodes that wait are in turn", permitsInTurn},
		{"limits/a node that does not ask again loses its turn", turnLapses},
		{"limits/permits are given once to callers at the same time", permitsGivenOnce},
		{"limits/many of everything in one call", manyLimits},
		{"limits/a hold at or past its before is late", holdLate},
		{"limits/a hold does not outlast its until", holdUntil},
		{"limits/an extension under a bound keeps to it, and does not revive", extendUntil},
	}
}

var mail = store.LimitKey{Topic: "mail"}

// perSecond is a bucket.
func perSecond(count, burst int) store.Rate {
	return store.Rate{Count: count, Period: time.Second, Burst: burst}
}

func (f *fixture) reserve(q store.Reservation) store.Tokens {
	f.Helper()
	got, err := f.s.Reserve(f.ctx, []store.Reservation{q})
	f.ok("reserve", err)
	return one(f, got)
}

func bucketGivesBurst(f *fixture) {
	slow := store.Rate{Count: 1, Period: time.Hour, Burst: 3}
	first := f.reserve(store.Reservation{Key: mail, Rate: slow, N: 10})
	equal(f, "tokens of a bucket that rested", first.N, 3)
	for i := range 3 {
		if at := first.At(i, slow); !at.Equal(first.Now) {
			f.Fatalf("token %d comes at %v, want now, %v", i, at, first.Now)
		}
	}
	next := f.reserve(store.Reservation{Key: mail, Rate: slow, N: 10})
	equal(f, "tokens of an empty bucket", next.N, 0)
	if in := next.First.Sub(first.Now); in != time.Hour {
		f.Fatalf("next token in %v, want an hour after the first", in)
	}
	ahead := f.reserve(store.Reservation{Key: mail, Rate: slow, N: 10, Ahead: 2 * time.Hour})
	equal(f, "tokens within two hours", ahead.N, 2)
	equal(f, "the first of them", ahead.First, next.First)
}

// burstIsWhole has tokens that take no whole number of microseconds.
func burstIsWhole(f *fixture) {
	for i, rate := range []store.Rate{perSecond(112, 2), perSecond(3, 3), {Count: 3, Period: 200 * time.Millisecond, Burst: 3}, perSecond(700_000, 50)} {
		key := store.LimitKey{Topic: "mail", Key: fmt.Sprint(i)}
		got := f.reserve(store.Reservation{Key: key, Rate: rate, N: rate.Burst, Whole: true})
		equal(f, fmt.Sprint("tokens of ", rate), got.N, rate.Burst)
		if last := got.At(got.N-1, rate); !last.Equal(got.Now) {
			f.Errorf("the last of %v comes %v later", rate, last.Sub(got.Now))
		}
		asked := store.Take{Limits: store.TopicLimits{KeyRate: rate, DeadLetter: true}}
		for range rate.Burst {
			asked.Wants = append(asked.Wants, store.Want{RateKey: fmt.Sprint("t", i)})
		}
		asked.Holders = holders(rate.Burst)
		equal(f, fmt.Sprint("tokens of ", rate, " that were taken"), granted(f.take(asked)), rate.Burst)
	}
}

func bucketMoments(f *fixture) {
	rate := store.Rate{Count: 3, Period: time.Minute, Burst: 1} // not a whole number of microseconds each
	rate.Period = 10 * time.Second
	a := f.reserve(store.Reservation{Key: mail, Rate: rate, N: 4, Ahead: long})
	b := f.reserve(store.Reservation{Key: mail, Rate: rate, N: 4, Ahead: long})
	equal(f, "tokens", a.N+b.N, 8)
	spacing := 10 * time.Second / 3
	for i := range 8 {
		at := a.At(i%4, rate)
		if i >= 4 {
			at = b.At(i-4, rate)
		}
		want := a.Now.Add(time.Duration(i) * spacing)
		if d := at.Sub(want); d < 0 || d > 3*time.Microsecond {
			f.Fatalf("token %d comes %v after its time", i, d)
		}
	}
}

func wholeReservations(f *fixture) {
	rate := store.Rate{Count: 1, Period: time.Hour, Burst: 5}
	got := f.reserve(store.Reservation{Key: mail, Rate: rate, N: 4, Whole: true})
	equal(f, "tokens of a full bucket", got.N, 4)
	refused := f.reserve(store.Reservation{Key: mail, Rate: rate, N: 2, Whole: true})
	equal(f, "tokens of one with a single one left", refused.N, 0)
	if in := refused.First.Sub(got.Now); in < time.Hour-time.Millisecond || in > time.Hour+time.Millisecond {
		f.Fatalf("both tokens in %v, want an hour", in)
	}
	equal(f, "the one that is left", f.reserve(store.Reservation{Key: mail, Rate: rate, N: 1, Whole: true}).N, 1)
	window := store.Rate{Kind: store.SlidingWindow, Count: 5, Period: time.Hour}
	key := store.LimitKey{Topic: "mail", Key: "w"}
	equal(f, "tokens of a window", f.reserve(store.Reservation{Key: key, Rate: window, N: 4, Whole: true}).N, 4)
	equal(f, "more than are left", f.reserve(store.Reservation{Key: key, Rate: window, N: 2, Whole: true}).N, 0)
	equal(f, "what is left", f.reserve(store.Reservation{Key: key, Rate: window, N: 1, Whole: true}).N, 1)
}

func lookTakesNothing(f *fixture) {
	for _, rate := range []store.Rate{{Count: 1, Period: time.Hour, Burst: 1}, {Kind: store.SlidingWindow, Count: 1, Period: time.Hour}} {
		key := store.LimitKey{Topic: "mail", Key: fmt.Sprint(rate.Kind)}
		for range 3 {
			look := f.reserve(store.Reservation{Key: key, Rate: rate})
			if look.N != 0 || look.First.After(look.Now) {
				f.Fatalf("a look at a rate that rested: %+v, want a token at once", look)
			}
		}
		equal(f, "token after looks", f.reserve(store.Reservation{Key: key, Rate: rate, N: 1}).N, 1)
		if look := f.reserve(store.Reservation{Key: key, Rate: rate}); !look.First.After(look.Now) {
			f.Fatalf("a look at an empty rate: %+v, want a token later", look)
		}
	}
}

func windowNeverTooMany(f *fixture) {
	rate := store.Rate{Kind: store.SlidingWindow, Count: 7, Period: 640 * time.Millisecond}
	var given []time.Time
	var ends []time.Time
	for range 200 {
		got := f.reserve(store.Reservation{Key: mail, Rate: rate, N: 3, Ahead: long})
		if got.N == 0 {
			f.Fatalf("no token within an hour")
		}
		for i := range got.N {
			at := got.At(i, rate)
			given, ends = append(given, at), append(ends, rate.Before(at))
		}
	}
	// Used as late as can be, or on time, in any order: no period has more than its count.
	for i := rate.Count; i < len(given); i++ {
		if apart := given[i].Sub(ends[i-rate.Count]); apart < rate.Period-time.Microsecond {
			f.Fatalf("token %d may come %v after token %d was used", i, apart, i-rate.Count)
		}
	}
	took := given[len(given)-1].Sub(given[0])
	if fair := rate.Period * time.Duration(len(given)-1) / time.Duration(rate.Count); took > fair*104/100 {
		f.Fatalf("%d tokens took %v, want at most 4%% more than %v", len(given), took, fair)
	}
}

func changedRate(f *fixture) {
	slow := store.Rate{Count: 1, Period: time.Hour, Burst: 1}
	f.reserve(store.Reservation{Key: mail, Rate: slow, N: 1})
	fast := store.Rate{Count: 10, Period: time.Second, Burst: 1}
	look := f.reserve(store.Reservation{Key: mail, Rate: fast, N: 0})
	if in := look.First.Sub(look.Now); in <= 0 || in > 100*time.Millisecond {
		f.Fatalf("after a change to ten a second the next token comes in %v, want at most 100ms", in)
	}
}

// rateAfterClock uses a rate up for longer than anybody does, as a clock that is ahead has
// it, and then by the right clock.
func rateAfterClock(f *fixture) {
	for kind, rate := range map[string]store.Rate{"bucket": perSecond(100, 1), "window": {Kind: store.SlidingWindow, Count: 100, Period: time.Second}} {
		key := store.LimitKey{Topic: "mail", Key: kind}
		used := 0
		for range 20 {
			used += f.reserve(store.Reservation{Key: key, Rate: rate, N: 1000, Ahead: store.MaxAhead - time.Second}).N
		}
		short := store.Reservation{Key: key, Rate: rate, N: 10, Ahead: 2 * time.Second}
		if got := f.reserve(short).N; got != 0 {
			f.Fatalf("%s: got %d tokens of a rate that is used up for a minute, after %d", kind, got, used)
		}
		for range 1000 {
			got := f.reserve(store.Reservation{Key: key, Rate: rate, N: 1000, Ahead: long})
			if used += got.N; used >= 3*100*int(store.MaxAhead/time.Second) {
				break
			}
		}
		equal(f, kind+": tokens once the clock is right", f.reserve(short).N, 10)
	}
}

func limitsApart(f *fixture) {
	rate := store.Rate{Count: 1, Period: time.Hour, Burst: 1}
	keys := []store.LimitKey{mail, {Topic: "mail", Key: "a"}, {Topic: "mail", Key: "b"}, {Topic: "mai", Key: "la"}, {Topic: "m", Key: "}:{"}}
	for _, key := range keys {
		equal(f, fmt.Sprintf("tokens of %q", key), f.reserve(store.Reservation{Key: key, Rate: rate, N: 2}).N, 1)
		got := f.acquire(store.Acquire{Key: key, Max: 1, Holders: holders(2), Until: f.now().Add(long)})
		equal(f, fmt.Sprintf("permits of %q", key), got.N, 1)
	}
}

func tokensGivenOnce(f *fixture) {
	rate := perSecond(1000, 100)
	var mu sync.Mutex
	var moments []time.Time
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				got, err := f.s.Reserve(f.ctx, []store.Reservation{{Key: mail, Rate: rate, N: 5, Ahead: long}})
				if err != nil {
					f.Errorf("reserve: %v", err)
					return
				}
				mu.Lock()
				for i := range got[0].N {
					moments = append(moments, got[0].First.Add(rate.Span(i)))
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	equal(f, "tokens", len(moments), 800)
	slices.SortFunc(moments, time.Time.Compare)
	for i := 1; i < len(moments); i++ {
		if apart := moments[i].Sub(moments[i-1]); apart < time.Millisecond {
			f.Fatalf("tokens %v apart, want a millisecond", apart)
		}
	}
}

func holders(n int) []store.Token { return store.NewTokens(n) }

func (f *fixture) acquire(q store.Acquire) store.Acquired {
	f.Helper()
	got, err := f.s.Acquire(f.ctx, []store.Acquire{q})
	f.ok("acquire", err)
	return one(f, got)
}

func (f *fixture) free(key store.LimitKey, holder store.Token) []string {
	f.Helper()
	waiting, err := f.s.Free(f.ctx, []store.Permit{{Key: key, Holder: holder}})
	f.ok("free", err)
	return one(f, waiting)
}

func permitsUpToCap(f *fixture) {
	until := f.now().Add(long)
	h := holders(5)
	got := f.acquire(store.Acquire{Key: mail, Max: 3, Holders: h, Until: until})
	equal(f, "what five get of three", got, store.Acquired{N: 3, InUse: 3})
	equal(f, "what one more gets", f.acquire(store.Acquire{Key: mail, Max: 3, Holders: h[3:4], Until: until}).N, 0)
	f.free(mail, h[0])
	equal(f, "what two get of one", f.acquire(store.Acquire{Key: mail, Max: 3, Holders: h[3:], Until: until}).N, 1)
	equal(f, "what is in use under a lower cap", f.acquire(store.Acquire{Key: mail, Max: 1}), store.Acquired{InUse: 3, Next: until})
	for _, holder := range h {
		f.free(mail, holder)
	}
	equal(f, "what is in use when all are free", f.acquire(store.Acquire{Key: mail, Max: 3}), store.Acquired{})
}

func permitRepeated(f *fixture) {
	h := holders(3)
	until := f.now().Add(long)
	for range 3 {
		got := f.acquire(store.Acquire{Key: mail, Max: 2, Holders: h, Until: until})
		equal(f, "permits", got, store.Acquired{N: 2, InUse: 2})
	}
	f.acquire(store.Acquire{Key: mail, Max: 2, Holders: h[:2], Until: until + 5})
	equal(f, "permits that are moved", f.acquire(store.Acquire{Key: mail, Max: 2}), store.Acquired{InUse: 2, Next: until + 5})
}

func permitsEnd(f *fixture) {
	until := f.now().Add(short)
	equal(f, "permits", f.acquire(store.Acquire{Key: mail, Max: 1, Holders: holders(1), Until: until}).N, 1)
	waitUntil(f, f.s, until)
	got := f.acquire(store.Acquire{Key: mail, Max: 1, Holders: holders(1), Until: f.now().Add(long)})
	equal(f, "permits when the first has ended", got.N, 1)
}

func permitsMove(f *fixture) {
	h, until := holders(3), f.now().Add(short)
	f.acquire(store.Acquire{Key: mail, Max: 1, Holders: h[:1], Until: until})
	far := f.now().Add(long)
	f.ok("move", f.s.Move(f.ctx, []store.Permit{{Key: mail, Holder: h[0], Until: far}, {Key: mail, Holder: h[1], Until: far}}))
	waitUntil(f, f.s, until)
	got := f.acquire(store.Acquire{Key: mail, Max: 2, Holders: h[2:], Until: far})
	equal(f, "permits beside those that were moved", got, store.Acquired{InUse: 2})
	equal(f, "what is in use", f.acquire(store.Acquire{Key: mail, Max: 2}), store.Acquired{InUse: 2, Next: far})
}

func permitsInTurn(f *fixture) {
	h, until := holders(6), f.now().Add(long)
	ask := func(node string, holders ...store.Token) int {
		return f.acquire(store.Acquire{Key: mail, Max: 2, Node: node, Holders: holders, Until: until}).N
	}
	equal(f, "what a gets", ask("a", h[0], h[1], h[2]), 2)
	equal(f, "what b gets", ask("b", h[3], h[4]), 0)
	equal(f, "what c gets", ask("c", h[5]), 0)
	same(f, "who waits", f.free(mail, h[0]), []string{"a", "b", "c"})
	equal(f, "what b gets, who is not the first in turn", ask("b", h[3], h[4]), 0)
	equal(f, "what a gets, who is", ask("a", h[2]), 1)
	same(f, "who waits", f.free(mail, h[1]), []string{"b", "c"})
	equal(f, "what a gets behind them", ask("a", h[0]), 0)
	equal(f, "what b gets", ask("b", h[3], h[4]), 1)
	same(f, "who waits", f.free(mail, h[2]), []string{"c", "a", "b"})
	equal(f, "what c gets when it needs none any more", ask("c"), 0)
	equal(f, "what a gets", ask("a", h[0]), 1)
	same(f, "who waits at the end", f.free(mail, h[0]), []string{"b"})
}

func turnLapses(f *fixture) {
	h, until := holders(3), f.now().Add(long)
	f.acquire(store.Acquire{Key: mail, Max: 1, Node: "a", Holders: h[:1], Until: until})
	f.acquire(store.Acquire{Key: mail, Max: 1, Node: "b", Holders: h[1:2], Until: until})
	f.free(mail, h[0])
	equal(f, "what c gets behind b", f.acquire(store.Acquire{Key: mail, Max: 1, Node: "c", Holders: h[2:], Until: until}).N, 0)
	waitUntil(f, f.s, f.now().Add(store.WaitLife+slack))
	equal(f, "what c gets when b is silent", f.acquire(store.Acquire{Key: mail, Max: 1, Node: "c", Holders: h[2:], Until: until}).N, 1)
}

func permitsGivenOnce(f *fixture) {
	var mu sync.Mutex
	inUse, most := 0, 0
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			for range 30 {
				q := store.Acquire{Key: mail, Max: 3, Node: fmt.Sprint(n), Holders: holders(1), Until: f.now().Add(long)}
				got, err := f.s.Acquire(f.ctx, []store.Acquire{q})
				if err != nil || got[0].N == 0 {
					continue
				}
				mu.Lock()
				inUse++
				most = max(most, inUse)
				mu.Unlock()
				mu.Lock()
				inUse--
				mu.Unlock()
				if _, err := f.s.Free(f.ctx, []store.Permit{{Key: mail, Holder: q.Holders[0]}}); err != nil {
					f.Errorf("free: %v", err)
				}
			}
		})
	}
	wg.Wait()
	if most == 0 || most > 3 {
		f.Fatalf("%d permits at a time, want up to 3", most)
	}
}

func manyLimits(f *fixture) {
	const n = 1500
	rate := store.Rate{Count: 1, Period: time.Hour, Burst: 1}
	reservations, acquires, permits := make([]store.Reservation, n), make([]store.Acquire, n), make([]store.Permit, n)
	until := f.now().Add(long)
	for i := range n {
		key := store.LimitKey{Topic: "mail", Key: strings.Repeat("k", 100) + fmt.Sprint(i/2)} // each twice
		reservations[i] = store.Reservation{Key: key, Rate: rate, N: 1}
		acquires[i] = store.Acquire{Key: key, Max: 1, Holders: holders(1), Until: until}
		permits[i] = store.Permit{Key: key, Holder: acquires[i].Holders[0], Until: until}
	}
	tokens, err := f.s.Reserve(f.ctx, reservations)
	f.ok("reserve", err)
	got, err := f.s.Acquire(f.ctx, acquires)
	f.ok("acquire", err)
	for i := range n {
		equal(f, fmt.Sprintf("tokens of item %d", i), tokens[i].N, 1-i%2)
		equal(f, fmt.Sprintf("permits of item %d", i), got[i].N, 1-i%2)
	}
	_, err = f.s.Free(f.ctx, permits)
	f.ok("free", err)
	f.ok("move", f.s.Move(f.ctx, permits))
	got, err = f.s.Acquire(f.ctx, acquires)
	f.ok("acquire", err)
	for i := range n {
		equal(f, fmt.Sprintf("permits of item %d once moved", i), got[i].N, 1)
		equal(f, fmt.Sprintf("permits in use of item %d", i), got[i].InUse, 2)
	}
}

func holdLate(f *fixture) {
	f.ready("a", "b")
	holds := holdsOf(long, "a", "b")
	holds[0].Before, holds[1].Before = f.now(), f.now().Add(long)
	_, results, err := f.s.Hold(f.ctx, f.shard, f.fence, holds)
	f.ok("hold", err)
	f.statuses("hold", results, store.Late, store.OK)
	f.states(store.StateReady, "a")
	equal(f, "attempts of a late task", f.get("a").Attempt, 0)
	f.hold("a")
}

func holdUntil(f *fixture) {
	f.ready("a", "b")
	own := task("c", f.now()-1000)
	own.Visibility = 2 * long
	f.add(own)
	until := f.now().Add(long / 2)
	holds := holdsOf(long, "a", "b", "c")
	holds[0].Until, holds[2].Until = until, until
	stamp, results, err := f.s.Hold(f.ctx, f.shard, f.fence, holds)
	f.ok("hold", err)
	equal(f, "deadline under a bound", results[0].Deadline, until)
	f.about("deadline without", results[1].Deadline, stamp.Now.Add(long))
	equal(f, "deadline of a task with its own visibility timeout", results[2].Deadline, until)
	for i, id := range []string{"a", "b", "c"} {
		equal(f, "stored deadline of "+id, f.get(id).Deadline, results[i].Deadline)
	}
}

func extendUntil(f *fixture) {
	f.ready("a", "b")
	tokens := f.holdFor(10*short, "a", "b")
	until := f.now().Add(long / 2)
	extend := func(id string, token store.Token, until store.Millis) store.ExtendResult {
		_, results, err := f.s.Extend(f.ctx, f.shard, []store.Extend{{ID: id, Token: token, Visibility: long, Until: until}})
		f.ok("extend", err)
		return one(f, results)
	}
	equal(f, "deadline under a bound", extend("a", tokens[0], until), store.ExtendResult{Status: store.OK, Deadline: until})
	equal(f, "stored deadline", f.get("a").Deadline, until)
	waitUntil(f, f.s, f.get("b").Deadline)
	equal(f, "status of a hold that is over", extend("b", tokens[1], until).Status, store.Stale)
	equal(f, "status of one that may be revived", extend("b", tokens[1], 0).Status, store.OK)
}

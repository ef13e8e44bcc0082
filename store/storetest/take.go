package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/ddq-io/ddq/store"
)

func takeCases() []entry {
	return []entry{
		{"take/a want gets all that it needs, or nothing", takeAllOrNothing},
		{"take/wants are looked at in order until the holders are used up", takeInOrder},
		{"take/limits that there are not need nothing", takeUnlimited},
		{"take/a token of a bucket is given up to the horizon ahead", takeHorizon},
		{"take/there is no horizon beside a window, nor with dead letters", takeNoHorizon},
		{"take/a dead letter lacks nothing but a token", takeOver},
		{"take/a window gives its count, and says when the next comes", takeWindow},
		{"take/a token of a window lasts as long as is asked", takeLife},
		{"take/a changed rate gives tokens to who asks again and again", takeChanged},
		{"take/fast rates let tokens gather", takeGathers},
		{"take/a bucket takes back what nobody took behind", takeBack},
		{"take/a window takes back each token", takeBackWindow},
		{"take/what ended is there for the wants of the same call", takeFree},
		{"take/permits end by themselves when a cap looks full", takeSweeps},
		{"take/a repeated call is answered as before", takeRepeated},
		{"take/copies of calls that come behind newer ones do nothing", takeLate},
		{"take/the state is that of the other calls", takeShared},
		{"take/the cap of a namespace is over its topics", takeNamespace},
		{"take/what is there is kept for the first in line for a turn", takeTurns},
		{"take/a place ends when its node asks no more", takePlaceEnds},
		{"take/who leaves a line has the next told", takeLeave},
		{"take/no token for a while, and others are in line: each node has its part", takeShares},
		{"take/tokens of callers come behind those kept for the line", takeCallers},
		{"take/many of everything in one call", takeMany},
	}
}

// take makes a Take of the topic mail, of node a unless it says another.
func (f *fixture) take(q store.Take) *store.TakeReply {
	f.Helper()
	if q.Node == "" {
		q.Node = "a"
	}
	if q.Topic == "" {
		q.Topic = "mail"
	}
	if q.Until == 0 {
		q.Until = f.now().Add(long)
	}
	got, err := f.s.Take(f.ctx, &q)
	f.ok("take", err)
	if len(got.Wants) != len(q.Wants) {
		f.Fatalf("got %d answers to %d wants", len(got.Wants), len(q.Wants))
	}
	return got
}

// plain are wants with no keys.
func plain(n int) []store.Want { return make([]store.Want, n) }

// became checks what became of wants.
func (f *fixture) became(what string, got *store.TakeReply, want ...store.TakeStatus) {
	f.Helper()
	all := make([]store.TakeStatus, len(got.Wants))
	for i := range all {
		all[i] = got.Wants[i].Status
	}
	same(f, what, all, want)
}

func (f *fixture) inUse(key store.LimitKey) int {
	f.Helper()
	return f.acquire(store.Acquire{Key: key, Max: 1}).InUse
}

// moment fails the case unless a moment of the store is what it is to be, to the microsecond or two.
func (f *fixture) moment(what string, got, want time.Time) {
	f.Helper()
	if d := got.Sub(want); d < -2*time.Microsecond || d > 2*time.Microsecond {
		f.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

func hourly(burst int) store.Rate { return store.Rate{Count: 1, Period: time.Hour, Burst: burst} }

func capOf(key string) store.LimitKey { return store.CapKey("mail", key) }

func takeAllOrNothing(f *fixture) {
	limits := store.TopicLimits{Rate: hourly(10), KeyRate: hourly(1), Concurrency: 9, KeyConcurrency: 1}
	h := holders(9)
	got := f.take(store.Take{Limits: limits, Holders: h, Wants: []store.Want{
		{RateKey: "r", CapKey: "c"}, {RateKey: "r", CapKey: "d"}, {RateKey: "s", CapKey: "c"}, {RateKey: "s", CapKey: "d"},
	}})
	f.became("wants", got, store.Granted, store.NoToken, store.NoPermit, store.Granted)
	equal(f, "what the second lacks", got.Wants[1].Lacks, store.Limit{Key: store.LimitKey{Topic: "mail", Key: "r"}, Rate: true})
	equal(f, "what the third lacks", got.Wants[2].Lacks, store.Limit{Key: capOf("c")})
	equal(f, "permits of the topic", f.inUse(capOf("")), 2)
	equal(f, "permits of c", f.inUse(capOf("c")), 1)
	equal(f, "permits of d", f.inUse(capOf("d")), 1)
	left := f.reserve(store.Reservation{Key: mail, Rate: limits.Rate, N: 100})
	equal(f, "tokens of the topic that are left", left.N, 8)
	for i, at := range []int{0, 3} {
		f.moment("when it may be held", got.Wants[at].At, got.Now)
		f.moment("when its token ends", got.Wants[at].Before, got.Now.Add(500*time.Millisecond))
		f.free(capOf([]string{"c", "d"}[i]), h[i]) // the i-th that is granted has the i-th holder
	}
	equal(f, "permits of c once its holder is freed", f.inUse(capOf("c")), 0)
	equal(f, "permits of d once its holder is freed", f.inUse(capOf("d")), 0)
}

func takeInOrder(f *fixture) {
	limits := store.TopicLimits{KeyConcurrency: 2}
	wants := []store.Want{{CapKey: "a"}, {CapKey: "a"}, {CapKey: "a"}, {CapKey: "b"}, {CapKey: "c"}, {CapKey: "d"}}
	got := f.take(store.Take{Limits: limits, Holders: holders(4), Wants: wants})
	f.became("wants", got, store.Granted, store.Granted, store.NoPermit, store.Granted, store.Granted, store.NotReached)
	equal(f, "permits of one that was not reached", f.inUse(capOf("d")), 0)
	f.became("wants without a holder", f.take(store.Take{Limits: limits, Wants: wants[5:]}), store.NotReached)
}

func takeUnlimited(f *fixture) {
	got := f.take(store.Take{Holders: holders(2), Wants: []store.Want{{RateKey: "a", CapKey: "b"}, {}}})
	f.became("wants", got, store.Granted, store.Granted)
	equal(f, "when its tokens end, of which it has none", got.Wants[0].Before.IsZero(), true)
	limits := store.TopicLimits{KeyRate: hourly(1), KeyConcurrency: 1}
	f.became("wants without keys", f.take(store.Take{Limits: limits, Holders: holders(2), Wants: plain(2)}), store.Granted, store.Granted)
}

func takeHorizon(f *fixture) {
	rate := store.Rate{Count: 1, Period: 24 * time.Millisecond, Burst: 1}
	got := f.take(store.Take{Limits: store.TopicLimits{KeyRate: rate}, Holders: holders(9), Wants: []store.Want{{RateKey: "a"}, {RateKey: "a"}, {RateKey: "a"}}})
	f.became("wants", got, store.Granted, store.Granted, store.NoToken)
	f.moment("the first", got.Wants[0].At, got.Now)
	f.moment("the second", got.Wants[1].At, got.Now.Add(24*time.Millisecond))
	f.moment("when the token of the second ends", got.Wants[1].Before, got.Wants[1].At.Add(500*time.Millisecond))
	f.moment("when to ask for the third", got.Wants[2].Again, got.Now.Add(48*time.Millisecond-store.TokenHorizon))
	both := store.TopicLimits{KeyRate: rate, Rate: perSecond(1000, 1)}
	got = f.take(store.Take{Topic: "other", Limits: both, Holders: holders(9), Wants: []store.Want{{RateKey: "a"}, {RateKey: "b"}, {RateKey: "a"}}})
	f.became("wants of two rates", got, store.Granted, store.Granted, store.Granted)
	f.moment("one whose topic has its token later", got.Wants[1].At, got.Now.Add(time.Millisecond))
	f.moment("one whose key has its token later", got.Wants[2].At, got.Now.Add(24*time.Millisecond))
	f.moment("when the first of its tokens ends", got.Wants[2].Before, got.Now.Add(502*time.Millisecond))
}

func takeNoHorizon(f *fixture) {
	rate := store.Rate{Count: 1, Period: 20 * time.Millisecond, Burst: 1}
	window := store.Rate{Kind: store.SlidingWindow, Count: 100, Period: time.Hour}
	got := f.take(store.Take{Limits: store.TopicLimits{KeyRate: rate, Rate: window}, Holders: holders(9), Wants: []store.Want{{RateKey: "a"}, {RateKey: "a"}}})
	f.became("wants beside a window", got, store.Granted, store.NoToken)
	f.moment("when to ask again", got.Wants[1].Again, got.Now.Add(20*time.Millisecond))
	got = f.take(store.Take{Topic: "other", Limits: store.TopicLimits{Rate: rate, DeadLetter: true}, Holders: holders(9), Wants: plain(2)})
	f.became("wants with dead letters", got, store.Granted, store.OverRate)
}

func takeOver(f *fixture) {
	limits := store.TopicLimits{Rate: hourly(2), Concurrency: 3, DeadLetter: true}
	f.take(store.Take{Limits: store.TopicLimits{Concurrency: 3}, Holders: holders(2), Wants: plain(2)})
	got := f.take(store.Take{Limits: limits, Holders: holders(5), Wants: plain(3)})
	f.became("wants", got, store.Granted, store.NoPermit, store.NoPermit)
	limits.Concurrency = 5
	got = f.take(store.Take{Limits: limits, Holders: holders(2), Wants: plain(4)})
	f.became("wants with permits", got, store.Granted, store.OverRate, store.OverRate, store.OverRate)
	equal(f, "what they lack", got.Wants[2].Lacks, store.Limit{Key: mail, Rate: true})
	equal(f, "permits: none of those that are over", f.inUse(capOf("")), 4)
}

func takeWindow(f *fixture) {
	rate := store.Rate{Kind: store.SlidingWindow, Count: 3, Period: time.Hour}
	got := f.take(store.Take{Limits: store.TopicLimits{Rate: rate}, Holders: holders(9), Wants: plain(5)})
	f.became("wants", got, store.Granted, store.Granted, store.Granted, store.NoToken, store.NoToken)
	f.moment("when a token ends", got.Wants[0].Before, rate.Before(got.Now))
	f.moment("when to ask again", got.Wants[3].Again, rate.Before(got.Now).Add(time.Hour))
	again := f.take(store.Take{Limits: store.TopicLimits{Rate: rate}, Holders: holders(9), Wants: plain(1)})
	f.became("one more", again, store.NoToken)
	f.moment("when to ask again, of one more", again.Wants[0].Again, got.Wants[3].Again)
}

func takeLife(f *fixture) {
	rate := store.Rate{Kind: store.SlidingWindow, Count: 3, Period: 128 * time.Millisecond} // slots of 2 ms
	for _, life := range []time.Duration{0, time.Millisecond, 3 * time.Millisecond, 100 * time.Millisecond, time.Hour} {
		topic := fmt.Sprint("lasts ", life)
		ask := func(n int) *store.TakeReply {
			return f.take(store.Take{Topic: topic, Limits: store.TopicLimits{Rate: rate}, Life: life, Holders: holders(9), Wants: plain(n)})
		}
		got := ask(4)
		f.became(topic, got, store.Granted, store.Granted, store.Granted, store.NoToken)
		lasts, least := got.Wants[0].Before.Sub(got.Now), min(max(life, rate.Slot()), store.MaxTokenLife)
		if lasts < least || lasts > least+rate.Slot() {
			f.T.Errorf("%s: a token lasts %v", topic, lasts)
		}
		f.moment(topic+": when the next comes", got.Wants[3].Again, got.Wants[0].Before.Add(rate.Period))
		back := store.Take{Topic: topic, Limits: store.TopicLimits{Rate: rate}, Life: life, Holders: holders(9), Wants: plain(2)}
		back.Back = append(back.Back, got.Wants[0].Receipt)
		f.became(topic+", and one back", f.take(back), store.Granted, store.NoToken)
	}
}

func takeChanged(f *fixture) {
	ask := func(rate store.Rate) *store.TakeReply {
		return f.take(store.Take{Limits: store.TopicLimits{Rate: rate}, Holders: holders(1), Wants: plain(1)})
	}
	f.became("one an hour", ask(hourly(1)), store.Granted)
	first := ask(perSecond(5, 1))
	f.became("one in 200ms", first, store.NoToken)
	waitUntil(f, f.s, store.Millis(first.Now.Add(20*time.Millisecond).UnixMilli()))
	f.moment("when to ask again, when asked again", ask(perSecond(5, 1)).Wants[0].Again, first.Wants[0].Again)
}

func takeGathers(f *fixture) {
	got := f.take(store.Take{Limits: store.TopicLimits{Rate: perSecond(1000, 1)}, Holders: holders(99), Wants: plain(40)})
	if n := granted(got); n != 26 {
		f.Fatalf("%d tokens of a thousand a second within 25ms, want 26", n)
	}
	f.moment("when to ask again", got.Wants[26].Again, got.Now.Add(store.TokenHorizon/2))
}

func granted(got *store.TakeReply) (n int) {
	for i := range got.Wants {
		if got.Wants[i].Status == store.Granted {
			n++
		}
	}
	return n
}

func receipts(got *store.TakeReply) (all []store.TokenReceipt) {
	for i := range got.Wants {
		if got.Wants[i].Status == store.Granted {
			all = append(all, got.Wants[i].Receipt)
		}
	}
	return all
}

func takeBack(f *fixture) {
	limits := store.TopicLimits{Rate: hourly(5), KeyRate: hourly(1)}
	first := f.take(store.Take{Limits: limits, Holders: holders(9), Wants: []store.Want{{RateKey: "a"}, {RateKey: "b"}, {RateKey: "c"}}})
	f.became("wants", first, store.Granted, store.Granted, store.Granted)
	back := receipts(first)
	equal(f, "lost tokens of those that came last", f.take(store.Take{Limits: limits, Back: back[1:]}).Lost, 0) // whatever their order
	got := f.take(store.Take{Limits: limits, Holders: holders(9), Wants: []store.Want{{RateKey: "a"}, {RateKey: "b"}, {RateKey: "c"}, {RateKey: "d"}, {RateKey: "e"}, {RateKey: "f"}}})
	f.became("wants once two went back", got, store.NoToken, store.Granted, store.Granted, store.Granted, store.Granted, store.NoToken)
	lost := f.take(store.Take{Call: 9, Limits: limits, Back: back[:1]}).Lost // others took of the topic since, and nobody of its key
	equal(f, "lost tokens of one behind which others took", lost, 1)
	equal(f, "lost tokens of the same call made again", f.take(store.Take{Call: 9, Limits: limits, Back: back[:1]}).Lost, 1)
	f.take(store.Take{Limits: limits, Back: back[:1]}) // no second time
	f.became("once one went back behind which others took", f.take(store.Take{Limits: limits, Holders: holders(1), Wants: []store.Want{{RateKey: "a"}}}), store.NoToken)
	key := f.reserve(store.Reservation{Key: store.LimitKey{Topic: "mail", Key: "a"}, Rate: limits.KeyRate, N: 9})
	equal(f, "tokens of its key", key.N, 1)
	equal(f, "tokens of the topic", f.reserve(store.Reservation{Key: mail, Rate: limits.Rate, N: 9}).N, 0)
}

func takeBackWindow(f *fixture) {
	limits := store.TopicLimits{Rate: store.Rate{Kind: store.SlidingWindow, Count: 4, Period: time.Hour}}
	first := f.take(store.Take{Limits: limits, Holders: holders(2), Wants: plain(2)})
	f.take(store.Take{Limits: limits, Holders: holders(2), Wants: plain(2)})
	equal(f, "lost tokens of a window", f.take(store.Take{Limits: limits, Back: receipts(first)[:1]}).Lost, 0)
	got := f.take(store.Take{Limits: limits, Holders: holders(2), Wants: plain(2)})
	f.became("wants once one went back", got, store.Granted, store.NoToken)
	got = f.take(store.Take{Limits: limits, Back: receipts(first)[1:], Holders: holders(2), Wants: plain(2)})
	f.became("wants in the call that gives one back", got, store.Granted, store.NoToken)
}

func takeFree(f *fixture) {
	limits := store.TopicLimits{Concurrency: 2, KeyConcurrency: 1}
	h := holders(3)
	f.became("wants", f.take(store.Take{Limits: limits, Holders: h, Wants: []store.Want{{CapKey: "c"}, {CapKey: "d"}}}), store.Granted, store.Granted)
	got := f.take(store.Take{
		Limits: limits, Holders: h[2:], Wants: []store.Want{{CapKey: "d"}, {CapKey: "c"}},
		Free: []store.Permit{{Key: capOf("c"), Holder: h[0]}, {Key: capOf(""), Holder: h[0]}},
	})
	f.became("wants in the call that frees", got, store.NoPermit, store.Granted)
	equal(f, "permits", f.inUse(capOf("")), 2)
	f.take(store.Take{Limits: limits, Free: []store.Permit{{Key: capOf("c"), Holder: h[0]}}}) // has none any more
	equal(f, "permits once one who has none is freed", f.inUse(capOf("c")), 1)
}

func takeSweeps(f *fixture) {
	limits := store.TopicLimits{Concurrency: 2}
	until := f.now().Add(short)
	f.take(store.Take{Limits: limits, Holders: holders(2), Wants: plain(2), Until: until})
	waitUntil(f, f.s, until+1)
	f.became("wants when permits have ended", f.take(store.Take{Limits: limits, Holders: holders(3), Wants: plain(3)}), store.Granted, store.Granted, store.NoPermit)
}

func takeRepeated(f *fixture) {
	window := store.Rate{Kind: store.SlidingWindow, Count: 2, Period: time.Hour}
	limits := store.TopicLimits{Rate: window, KeyRate: hourly(1), Concurrency: 4}
	before := f.take(store.Take{Limits: limits, Holders: holders(1), Wants: plain(1)})
	q := store.Take{
		Call: 7, Limits: limits, Holders: holders(3), Back: receipts(before), Until: f.now().Add(long),
		Wants: []store.Want{{RateKey: "a"}, {RateKey: "a"}, {RateKey: "b"}, {RateKey: "c"}},
	}
	first := f.take(q)
	f.became("wants", first, store.Granted, store.NoToken, store.Granted, store.NoToken)
	for range 3 {
		again := f.take(q)
		equal(f, "the answer to a call made again", fmt.Sprint(*again), fmt.Sprint(*first))
	}
	equal(f, "permits", f.inUse(capOf("")), 3)
	q.Node, q.Back = "b", nil
	f.became("the same call of another node", f.take(q), store.NoToken, store.NoToken, store.NoToken, store.NoToken)
	next := q
	next.Node, next.Call = "a", 8
	f.became("the next call", f.take(next), store.NoToken, store.NoToken, store.NoToken, store.NoToken)
	q.Node = "a"
	f.became("a call before the last", f.take(q), store.NotReached, store.NotReached, store.NotReached, store.NotReached)
}

// takeLate has copies of calls arrive behind newer ones: what they took was freed, and what they gave back is not there twice.
func takeLate(f *fixture) {
	limits := store.TopicLimits{Rate: store.Rate{Kind: store.SlidingWindow, Count: 4, Period: time.Hour}, Concurrency: 2}
	const number = 1<<64 - 1_000_000_000_007
	for i, call := range []uint64{700, number} {
		node := fmt.Sprint("n", i)
		h := holders(2)
		take := store.Take{Call: call, Node: node, Limits: limits, Holders: h[:1], Wants: plain(1), Until: f.now().Add(long)}
		got := f.take(take)
		f.became("a want", got, store.Granted)
		back := store.Take{Call: call + 1, Node: node, Limits: limits, Free: []store.Permit{{Key: mail, Holder: h[0]}}, Back: receipts(got)}
		f.take(back)
		f.became("the next want", f.take(store.Take{Call: call + 2, Node: node, Limits: limits, Holders: h[1:], Wants: plain(1), Until: f.now().Add(long)}), store.Granted)
		f.became("a copy of the first", f.take(take), store.NotReached)
		f.take(back)
		equal(f, "permits", f.inUse(mail), i+1)
	}
	far := f.take(store.Take{Call: 700 - store.LateCalls - 1 + 1<<63, Node: "n0", Limits: store.TopicLimits{Rate: limits.Rate}, Holders: holders(4), Wants: plain(4)})
	f.became("wants of another process of a name", far, store.Granted, store.Granted, store.NoToken, store.NoToken)
}

func takeShared(f *fixture) {
	limits := store.TopicLimits{Rate: hourly(3), Concurrency: 3}
	f.reserve(store.Reservation{Key: mail, Rate: limits.Rate, N: 1})
	h := holders(3)
	f.acquire(store.Acquire{Key: mail, Max: 3, Holders: h[:1], Until: f.now().Add(long)})
	f.became("wants beside what other calls took", f.take(store.Take{Limits: limits, Holders: h[1:], Wants: plain(3)}), store.Granted, store.Granted, store.NotReached)
	equal(f, "tokens that are left", f.reserve(store.Reservation{Key: mail, Rate: limits.Rate, N: 9}).N, 0)
	equal(f, "what another call gets", f.acquire(store.Acquire{Key: mail, Max: 3, Holders: holders(1), Until: f.now().Add(long)}), store.Acquired{InUse: 3})
	far := f.now().Add(2 * long)
	f.ok("move", f.s.Move(f.ctx, []store.Permit{{Key: mail, Holder: h[0], Until: far}, {Key: mail, Holder: h[1], Until: far}, {Key: mail, Holder: h[2], Until: far}}))
	equal(f, "when the first of them ends", f.acquire(store.Acquire{Key: mail, Max: 3}).Next, far)
	f.became("a want", f.take(store.Take{Limits: store.TopicLimits{Concurrency: 3}, Node: "b", Holders: holders(1), Wants: plain(1)}), store.NoPermit)
	same(f, "who waits", f.free(mail, h[0]), []string{"b"})
	slow := f.acquire(store.Acquire{Key: mail, Max: 3, Node: "c", Holders: holders(1), Until: far})
	equal(f, "what one gets behind the line", slow.N, 0)
}

func takeNamespace(f *fixture) {
	key := store.CapKey("acme/mail", store.NamespaceCap)
	limits := store.TopicLimits{Namespace: 2, Concurrency: 5}
	h := holders(3)
	f.became("wants", f.take(store.Take{Topic: "acme/mail", Limits: limits, Holders: h, Wants: plain(3)}), store.Granted, store.Granted, store.NoPermit)
	equal(f, "permits of the namespace", f.inUse(key), 2)
	got := f.take(store.Take{Topic: "acme/sms", Limits: limits, Holders: holders(1), Wants: plain(1)})
	f.became("a want of another topic", got, store.NoPermit)
	equal(f, "what it lacks", got.Wants[0].Lacks, store.Limit{Key: key})
	equal(f, "permits of its topic", f.inUse(store.CapKey("acme/sms", "")), 0)
	f.became("a want of another namespace", f.take(store.Take{Topic: "else/sms", Limits: limits, Holders: holders(1), Wants: plain(1)}), store.Granted)
	freed := f.take(store.Take{Topic: "acme/mail", Limits: limits, Free: []store.Permit{{Key: key, Holder: h[0]}, {Key: store.CapKey("acme/mail", ""), Holder: h[0]}}})
	equal(f, "who is told", toldOf(freed, key), "a acme/sms 5ms") // behind the topic that waited first
	got = f.take(store.Take{Topic: "acme/mail", Limits: limits, Holders: holders(1), Wants: plain(1)})
	f.became("a want of the first in turn", got, store.Granted)
}

// toldOf is who is told of something of a limit.
func toldOf(got *store.TakeReply, key store.LimitKey) (told string) {
	for i, n := range got.Notices {
		if n.Limit.Key == key {
			if i > 0 {
				told += ", "
			}
			told += fmt.Sprint(n.Node, " ", n.Topic, " ", n.After)
		}
	}
	return told
}

func takeTurns(f *fixture) {
	limits := store.TopicLimits{Concurrency: 1}
	ask := func(node string, free ...store.Token) (*store.TakeReply, store.TakeStatus, store.Token) {
		f.Helper()
		h := holders(1)
		q := store.Take{Node: node, Limits: limits, Holders: h, Wants: plain(1)}
		for _, freed := range free {
			q.Free = append(q.Free, store.Permit{Key: mail, Holder: freed})
		}
		got := f.take(q)
		return got, got.Wants[0].Status, h[0]
	}
	_, status, held := ask("x")
	equal(f, "what x gets", status, store.Granted)
	for _, node := range []string{"a", "b", "c"} {
		got, status, _ := ask(node)
		equal(f, "what it gets of a full cap", status, store.NoPermit)
		f.moment("when it asks again if nobody tells it", got.Wants[0].Again, got.Now.Add(store.NoticeWait))
	}
	freed := f.take(store.Take{Node: "x", Limits: limits, Free: []store.Permit{{Key: mail, Holder: held}}})
	equal(f, "who is told", toldOf(freed, mail), "a mail 0s, b mail 5ms, c mail 10ms")

	// What comes too late for its turn says nothing: a busy machine.
	during := func(got *store.TakeReply, turns int) bool {
		return got.Now.Sub(freed.Now) < time.Duration(turns)*store.LineTurn
	}
	got, status, _ := ask("b")
	if during(got, 1) {
		equal(f, "what the second gets in the turn of the first", status, store.NoPermit)
		f.moment("when it asks again", got.Wants[0].Again, got.Now.Add(2*store.LineTurn+time.Millisecond))
	}
	if status != store.Granted {
		got, status, _ = ask("x")
		if during(got, 2) {
			equal(f, "what one behind the line gets", status, store.NoPermit)
		}
	}
	waitUntil(f, f.s, store.Millis(freed.Now.Add(2*store.LineTurn).UnixMilli())+1)
	if status != store.Granted {
		_, status, held = ask("c")
		equal(f, "what the third gets when two turns are over", status, store.Granted)
		freed = f.take(store.Take{Node: "c", Limits: limits, Free: []store.Permit{{Key: mail, Holder: held}}})
		equal(f, "who is told then, each in its place", toldOf(freed, mail), "a mail 0s, b mail 5ms, x mail 10ms")
		_, status, _ = ask("a")
		equal(f, "what the first in line gets, who did not come", status, store.Granted)
	}
}

func takePlaceEnds(f *fixture) {
	limits := store.TopicLimits{Concurrency: 1}
	h := holders(2)
	f.take(store.Take{Limits: limits, Holders: h[:1], Wants: plain(1)})
	f.take(store.Take{Node: "dead", Limits: limits, Holders: h[1:], Wants: plain(1)})
	waitUntil(f, f.s, f.now().Add(store.WaitLife+slack))
	got := f.take(store.Take{Limits: limits, Free: []store.Permit{{Key: mail, Holder: h[0]}}, Holders: holders(1), Wants: plain(1)})
	f.became("a want behind a node that asks no more", got, store.Granted)
	equal(f, "who is told", len(got.Notices), 0)
}

func takeLeave(f *fixture) {
	limits := store.TopicLimits{Concurrency: 1}
	h := holders(1)
	f.take(store.Take{Node: "x", Limits: limits, Holders: h, Wants: plain(1)})
	for _, node := range []string{"a", "b", "c"} {
		f.take(store.Take{Node: node, Limits: limits, Holders: holders(1), Wants: plain(1)})
	}
	got := f.take(store.Take{Node: "c", Limits: limits, Leave: []store.Limit{{Key: mail}}})
	equal(f, "who is told when nothing is there", len(got.Notices), 0)
	f.take(store.Take{Node: "x", Limits: limits, Free: []store.Permit{{Key: mail, Holder: h[0]}}})
	got = f.take(store.Take{Node: "a", Limits: limits, Leave: []store.Limit{{Key: mail}, {Key: mail, Rate: true}, {Key: capOf("k")}}})
	equal(f, "who is told when the first in line leaves", toldOf(got, mail), "b mail 0s")
	// b lacks something else: whoever is behind it is told.
	f.take(store.Take{Node: "d", Limits: store.TopicLimits{Concurrency: 1, KeyConcurrency: 1}, Holders: holders(1), Wants: plain(1)})
	both := store.TopicLimits{Concurrency: 1, Rate: hourly(1)}
	f.reserve(store.Reservation{Key: mail, Rate: both.Rate, N: 1})
	got = f.take(store.Take{Node: "b", Limits: both, Holders: holders(1), Wants: plain(1)})
	if f.inUse(mail) == 0 { // else d came when two turns were over
		f.became("one that has its permit and lacks a token", got, store.NoToken)
		equal(f, "who is told when it lacks something else", toldOf(got, mail), "d mail 0s")
	}
}

// takeShares has two nodes ask for a fast rate: who asks first has no more of it than the other.
func takeShares(f *fixture) {
	limits := store.TopicLimits{Rate: perSecond(10_000, 1000)}
	ask := func(node string) int {
		f.Helper()
		return granted(f.take(store.Take{Node: node, Limits: limits, Holders: holders(512), Wants: plain(512)}))
	}
	for ask("a") == 512 { //nolint:revive // until it is refused, and in line
	}
	first := f.take(store.Take{Node: "b", Limits: limits, Holders: holders(512), Wants: plain(512)})
	if n := granted(first); n == 512 {
		f.Fatalf("b got all of %d wants, want it to be refused", n)
	}
	// Both are in line, or were a moment ago, and there are more tokens than before.
	waitUntil(f, f.s, f.now().Add(20*time.Millisecond))
	got := f.take(store.Take{Node: "a", Limits: limits, Holders: holders(512), Wants: plain(512)})
	left := f.reserve(store.Reservation{Key: mail, Rate: limits.Rate, N: 1000, Ahead: store.TokenHorizon})
	there := granted(got) + left.N
	if got.Now.Sub(first.Now) < 2*store.LineTurn && granted(got) > there/2+granted(first)+1 {
		f.Fatalf("a got %d of %d while b was in line, want at most its part", granted(got), there)
	}
}

func takeCallers(f *fixture) {
	rate := store.Rate{Count: 1, Period: 300 * time.Millisecond, Burst: 1}
	limits := store.TopicLimits{Rate: rate}
	first := f.take(store.Take{Limits: limits, Holders: holders(1), Wants: plain(1)})
	f.became("a want", first, store.Granted)
	f.became("a want that waits in line", f.take(store.Take{Limits: limits, Holders: holders(1), Wants: plain(1)}), store.NoToken)
	caller := f.reserve(store.Reservation{Key: mail, Rate: rate, N: 1, Whole: true, Ahead: long})
	equal(f, "tokens of a caller", caller.N, 1)
	f.moment("when the caller's comes, behind that of the line", caller.First, first.Now.Add(600*time.Millisecond))
	more := f.reserve(store.Reservation{Key: mail, Rate: rate, N: 1, Whole: true, Ahead: long})
	f.moment("when another caller's comes", more.First, first.Now.Add(900*time.Millisecond))
	waitUntil(f, f.s, store.Millis(first.Now.Add(300*time.Millisecond).UnixMilli())+1)
	got := f.take(store.Take{Limits: limits, Holders: holders(2), Wants: plain(2)})
	if got.Now.Sub(first.Now) < 700*time.Millisecond { // else the token has ended
		f.became("wants when the token of the line comes", got, store.Granted, store.NoToken)
		f.moment("when it ends", got.Wants[0].Before, first.Now.Add(800*time.Millisecond))
	}
}

func takeMany(f *fixture) {
	const n = store.MaxWants
	limits := store.TopicLimits{Rate: hourly(10_000), KeyRate: hourly(1), Concurrency: 10_000, KeyConcurrency: 1, Namespace: 10_000}
	wants := make([]store.Want, n)
	for i := range wants {
		key := fmt.Sprint("key", i/2)
		wants[i] = store.Want{RateKey: key, CapKey: key}
	}
	h := holders(n)
	got := f.take(store.Take{Call: 1, Limits: limits, Holders: h, Wants: wants})
	var free []store.Permit
	for i := range n {
		equal(f, fmt.Sprintf("want %d", i), got.Wants[i].Status, []store.TakeStatus{store.Granted, store.NoPermit}[i%2])
		if i%2 == 0 {
			for _, key := range []string{wants[i].CapKey, "", store.NamespaceCap} {
				free = append(free, store.Permit{Key: capOf(key), Holder: h[i/2]})
			}
		}
	}
	equal(f, "permits", f.inUse(mail), n/2)
	got = f.take(store.Take{Call: 2, Limits: limits, Holders: h, Wants: wants, Free: free, Back: receipts(got)})
	equal(f, "granted once all is given back", granted(got), n/2)
	slices.Reverse(free)
	f.take(store.Take{Call: 3, Limits: limits, Free: free})
	equal(f, "permits once all are freed", f.inUse(mail), 0)
}

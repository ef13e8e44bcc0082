package storetest

import (
	"errors"
	"fmt"
	"time"

	"github.com/ddq-io/ddq/store"
)

func ownCases() []entry {
	return []entry{
		{"Claim/OneOwnerWhileItsSessionLives", claimOwned},
		{"Claim/EveryClaimHasANewFence", claimAgain},
		{"Claim/AfterTheOwnersSession", claimAfterSession},
		{"Claim/ByTheNextLifeOfTheNode", claimNextLife},
		{"Claim/NeedsTheNodesSession", claimSessionLost},
		{"Session/SaysWhetherItWasKnown", sessionForgot},
		{"Claim/FenceOutlivesTheSession", claimFenceLasts},
		{"Claim/OnlyOneOfManyWins", claimRace},
		{"Claim/SaysWhichServerAnswers", claimServer},
		{"Claim/RefusedLeavesANote", claimWants},
		{"Claim/NotesAreFew", claimWantsMany},
		{"Release/FreesTheShard", release},
		{"Release/RefusedWithoutTheFence", releaseFenced},
		{"Release/LeavesNoFence", releaseLeavesNone},
		{"Session/RenewedAfterItRanOut", sessionRanOut},
		{"Session/RenewingPutsTheEndOff", sessionRenewed},
		{"Session/BeginReplaces", sessionBegin},
		{"Session/ForgottenBeginsAgain", sessionForgotten},
		{"Session/TakesOverWhatIsOver", sessionTakesOver},
	}
}

func claimOwned(f *fixture) {
	other := f.begin("node-2", long)
	_, _, err := f.s.Claim(f.ctx, f.shard, other)
	f.refused("claim of a live node's shard", err, store.ErrOwned)
	equal(f, "owner", f.stats().Owner, "node-1")
	equal(f, "epoch", f.stats().Epoch, f.fence.Epoch)
	f.ready("a")
	f.hold("a") // the refused claim did not touch the fence
}

func claimAgain(f *fixture) {
	f.scheduled("a")
	seq := f.seq()
	seen := map[store.Token]bool{f.fence.Nonce: true, {}: true}
	for range 3 {
		stamp, fence, err := f.s.Claim(f.ctx, f.shard, f.session)
		f.ok("claim", err)
		equal(f, "epoch", fence.Epoch, f.fence.Epoch+1)
		equal(f, "nonce seen before", seen[fence.Nonce], false)
		equal(f, "seq", stamp.Seq, seq)
		equal(f, "epoch in stats", f.stats().Epoch, fence.Epoch)
		f.within("now of the claim", stamp.Now)
		seen[fence.Nonce] = true
		f.fence = fence
	}
	equal(f, "first epoch of a shard", f.claim(store.Shard{Topic: "mail", N: 1}, f.session).Epoch, 1)
}

// claimWants: the owner learns once, when it renews its session, who wants what.
func claimWants(f *fixture) {
	other := f.begin("node-2", long)
	_, _, err := f.s.Claim(f.ctx, f.shard, other)
	f.refused("claim of a live node's shard", err, store.ErrOwned)
	equal(f, "shards wanted by who did not say so", len(f.renew(f.session)), 0)

	other.Wants = true
	for range 2 {
		_, _, err = f.s.Claim(f.ctx, f.shard, other)
		f.refused("claim of a live node's shard", err, store.ErrOwned)
		var owned *store.OwnedError
		equal(f, "error that says whose it is", errors.As(err, &owned), true)
		equal(f, "owner", owned.Node, "node-1")
	}
	equal(f, "wanted of another node", len(f.renew(other)), 0)
	equal(f, "wanted", one(f, f.renew(f.session)), store.Wanted{Shard: f.shard.Name(), By: "node-2"})
	equal(f, "wanted once more", len(f.renew(f.session)), 0)
	equal(f, "owner", f.stats().Owner, "node-1")

	free := store.Shard{Topic: "mail", N: 13}
	f.claim(free, other)
	f.ready("a")
	f.hold("a") // nothing of this touched the fence
}

// claimWantsMany: what a node does not read does not pile up.
func claimWantsMany(f *fixture) {
	other := f.begin("node-2", long)
	other.Wants = true
	for n := range store.MaxWanted + 10 {
		shard := store.Shard{Topic: "many", N: n}
		f.claim(shard, f.session)
		_, _, err := f.s.Claim(f.ctx, shard, other)
		f.refused("claim of a live node's shard", err, store.ErrOwned)
	}
	equal(f, "notes", len(f.renew(f.session)), store.MaxWanted)
}

// renew renews a session and returns what others want.
func (f *fixture) renew(session store.Session) []store.Wanted {
	f.Helper()
	session.Begin = false
	r, err := f.s.RenewSession(f.ctx, session)
	f.ok("renew", err)
	return r.Wanted
}

// claimServer has the same server answer all the time.
func claimServer(f *fixture) {
	f.ready("a")
	server := f.stats().Server
	for range 2 {
		stamp, _, err := f.s.Claim(f.ctx, f.shard, f.session)
		f.ok("claim", err)
		equal(f, "server of the claim", stamp.Server, server)
		counts, err := f.s.Counts(f.ctx, []store.Shard{f.shard})
		f.ok("counts", err)
		equal(f, "server of the counts", counts[0].Server, server)
	}
}

// within checks that a moment is the store's present.
func (f *fixture) within(what string, got time.Time) {
	f.Helper()
	now, err := f.s.Clock(f.ctx)
	f.ok("clock", err)
	if d := now.Sub(got); d < -slack || d > time.Minute {
		f.Fatalf("%s is %v, the clock %v", what, got, now)
	}
}

func claimAfterSession(f *fixture) {
	shard := store.Shard{Topic: "mail", N: 2}
	brief := f.begin("brief", short)
	fence := f.claim(shard, brief)
	waitUntil(f, f.s, f.now().Add(short)+2)
	other := f.begin("node-2", long)
	_, next, err := f.s.Claim(f.ctx, shard, other)
	f.ok("claim after the owner's session", err)
	equal(f, "epoch", next.Epoch, fence.Epoch+1)

	_, _, err = f.s.Claim(f.ctx, shard, f.begin("brief", long))
	f.refused("claim by the former owner", err, store.ErrOwned)
	_, _, err = f.s.Hold(f.ctx, shard, fence, holdsOf(long, "a"))
	f.refused("hold by the former owner", err, store.ErrFenced)
	f.refused("release by the former owner", f.s.Release(f.ctx, shard, fence), store.ErrFenced)
	stats, err := f.s.Stats(f.ctx, []store.Shard{shard})
	f.ok("stats", err)
	equal(f, "owner", one(f, stats).Owner, "node-2")
}

func claimNextLife(f *fixture) {
	next := f.begin("node-1", long) // restarted within the lease
	fence := f.claim(f.shard, next)
	equal(f, "epoch", fence.Epoch, f.fence.Epoch+1)
	_, _, err := f.s.Claim(f.ctx, f.shard, f.session)
	f.refused("claim by the earlier life", err, store.ErrSessionLost)
	_, err = f.s.RenewSession(f.ctx, f.session)
	f.refused("renewal by the earlier life", err, store.ErrSessionLost)
	_, _, err = f.s.Hold(f.ctx, f.shard, f.fence, holdsOf(long, "a"))
	f.refused("hold by the earlier life", err, store.ErrFenced)
	equal(f, "epoch", f.stats().Epoch, fence.Epoch)
}

// sessionForgot: a renewal says whether the store knew the node.
func sessionForgot(f *fixture) {
	session := store.Session{Node: "new", Start: store.NewToken(), TTL: long, Addr: "new:9090"}
	for i, want := range []bool{true, false, false} {
		if i == 2 { // another start
			session.Start, session.Begin = store.NewToken(), true
		}
		renewal, err := f.s.RenewSession(f.ctx, session)
		f.ok("renewal", err)
		equal(f, fmt.Sprint("forgot at renewal ", i), renewal.Forgot, want)
	}
}

func claimSessionLost(f *fixture) {
	shard := store.Shard{Topic: "mail", N: 3}
	_, _, err := f.s.Claim(f.ctx, shard, store.Session{Node: "stranger", Start: store.NewToken(), TTL: long})
	f.refused("claim without a session", err, store.ErrSessionLost)
	_, _, err = f.s.Claim(f.ctx, shard, store.Session{Node: "node-1", Start: store.NewToken(), TTL: long})
	f.refused("claim under another start", err, store.ErrSessionLost)
	stats, err := f.s.Stats(f.ctx, []store.Shard{shard})
	f.ok("stats", err)
	equal(f, "owner", one(f, stats).Owner, "")
	equal(f, "epoch", one(f, stats).Epoch, 0)
}

// claimFenceLasts: what counts is that nobody else has claimed, not the lease.
func claimFenceLasts(f *fixture) {
	f.shard = store.Shard{Topic: "mail", N: 4}
	f.fence = f.claim(f.shard, f.begin("brief", short))
	f.ready("a")
	waitUntil(f, f.s, f.now().Add(short)+2)
	f.hold("a")
}

// claimRace lets nodes claim a free shard at once.
func claimRace(f *fixture) {
	shard := store.Shard{Topic: "mail", N: 5}
	const nodes = 8
	outcomes := make(chan error, nodes)
	for _, node := range numbered(nodes) {
		session := f.begin(node, long)
		go func() {
			_, _, err := f.s.Claim(f.ctx, shard, session)
			outcomes <- err
		}()
	}
	won := 0
	for range nodes {
		err := <-outcomes
		if err == nil {
			won++
			continue
		}
		f.refused("claim", err, store.ErrOwned)
	}
	equal(f, "number of successful claims", won, 1)
}

func release(f *fixture) {
	other := f.begin("node-2", long)
	f.ok("release", f.s.Release(f.ctx, f.shard, f.fence))
	stats := f.stats()
	equal(f, "owner", stats.Owner, "")
	equal(f, "epoch", stats.Epoch, f.fence.Epoch)
	fence := f.claim(f.shard, other)
	equal(f, "epoch", fence.Epoch, f.fence.Epoch+1)
	equal(f, "owner", f.stats().Owner, "node-2")
}

func releaseFenced(f *fixture) {
	for name, fence := range f.wrongFences() {
		f.refused("release with a fence "+name, f.s.Release(f.ctx, f.shard, fence), store.ErrFenced)
	}
	f.refused("release of a free shard", f.s.Release(f.ctx, store.Shard{Topic: "mail", N: 6}, store.Fence{}), store.ErrFenced)
	equal(f, "owner", f.stats().Owner, "node-1")
	f.ok("release", f.s.Release(f.ctx, f.shard, f.fence))
	f.refused("release once more", f.s.Release(f.ctx, f.shard, f.fence), store.ErrFenced)
}

// releaseLeavesNone looks for a fence that fits a shard that nobody owns.
func releaseLeavesNone(f *fixture) {
	f.ready("a")
	f.ok("release", f.s.Release(f.ctx, f.shard, f.fence))
	for _, fence := range []store.Fence{f.fence, {}, {Epoch: f.fence.Epoch}, {Epoch: f.fence.Epoch + 1}} {
		_, _, err := f.s.Hold(f.ctx, f.shard, fence, holdsOf(long, "a"))
		f.refused("hold after the release", err, store.ErrFenced)
	}
	for _, fence := range []store.Fence{{}, {Epoch: 1}, f.fence} {
		_, _, err := f.s.Hold(f.ctx, store.Shard{Topic: "mail", N: 7}, fence, holdsOf(long, "a"))
		f.refused("hold in a shard never claimed", err, store.ErrFenced)
	}
	f.states(store.StateReady, "a")
}

func sessionRanOut(f *fixture) {
	session := f.begin("brief", short)
	shard := store.Shard{Topic: "mail", N: 8}
	waitUntil(f, f.s, f.now().Add(short)+2)
	session.TTL = long
	_, err := f.s.RenewSession(f.ctx, session)
	f.ok("renew a session that ran out", err)
	f.claim(shard, session)
	_, _, err = f.s.Claim(f.ctx, shard, f.session)
	f.refused("claim of the renewed node's shard", err, store.ErrOwned)
}

func sessionRenewed(f *fixture) {
	session := f.begin("brief", short)
	shard := store.Shard{Topic: "mail", N: 9}
	f.claim(shard, session)
	end := f.now().Add(short) + 2
	session.TTL = long
	before := f.now()
	renewal, err := f.s.RenewSession(f.ctx, session)
	f.ok("renew", err)
	if at := renewal.Now; at.Before(before.Time()) || at.After((f.now().Add(session.TTL) + 1).Time()) {
		f.Fatalf("renewing returned %v, neither now nor the end of the lease", at)
	}
	waitUntil(f, f.s, end)
	_, _, err = f.s.Claim(f.ctx, shard, f.session)
	f.refused("claim after the first lease", err, store.ErrOwned)

	session.TTL = short // a shorter lease counts too
	_, err = f.s.RenewSession(f.ctx, session)
	f.ok("renew", err)
	waitUntil(f, f.s, f.now().Add(short)+2)
	f.claim(shard, f.session)
}

func sessionBegin(f *fixture) {
	first := f.begin("node-2", long)
	second := f.begin("node-2", long)
	_, err := f.s.RenewSession(f.ctx, first)
	f.refused("renewal of the replaced session", err, store.ErrSessionLost)
	_, err = f.s.RenewSession(f.ctx, second)
	f.ok("renewal of the current session", err)
	second.Begin = true
	_, err = f.s.RenewSession(f.ctx, second) // repeated: its outcome was unknown
	f.ok("begin again", err)
	f.claim(store.Shard{Topic: "mail", N: 10}, second)
}

// sessionForgotten renews a session that the store knows nothing of, as after a restore.
func sessionForgotten(f *fixture) {
	session := store.Session{Node: "node-2", Start: store.NewToken(), TTL: long}
	shard := store.Shard{Topic: "mail", N: 11}
	_, err := f.s.RenewSession(f.ctx, session)
	f.ok("renewal of a session that was forgotten", err)
	f.claim(shard, session)
	_, _, err = f.s.Claim(f.ctx, shard, f.session)
	f.refused("claim by another node", err, store.ErrOwned)
	other := session
	other.Start = store.NewToken()
	_, err = f.s.RenewSession(f.ctx, other)
	f.refused("renewal under another start while that lasts", err, store.ErrSessionLost)
}

// sessionTakesOver renews a session after that of a later process of its name ended.
func sessionTakesOver(f *fixture) {
	first := f.begin("node-2", long)
	f.begin("node-2", short)
	waitUntil(f, f.s, f.now().Add(short)+2)
	_, _, err := f.s.Claim(f.ctx, store.Shard{Topic: "mail", N: 12}, first)
	f.refused("claim before the renewal", err, store.ErrSessionLost)
	_, err = f.s.RenewSession(f.ctx, first)
	f.ok("renewal after the later process ended", err)
	f.claim(store.Shard{Topic: "mail", N: 12}, first)
}

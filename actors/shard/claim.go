package shard

import (
	"context"
	"errors"
	"time"

	"github.com/ddq-io/ddq/actors/agenda"
	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/store"
)

const (
	claimRetry = 250 * time.Millisecond // pause before claiming again after an error
	ownedRetry = 50 * time.Millisecond  // and while another node owns the shard, at first
)

// What the claimer's store calls came to, each in a CallDone.
type (
	claimed struct {
		fence  store.Fence
		seq    int64
		server uint64
		err    error
	}
	// givenUp: a claim was released, or could not be.
	givenUp struct {
		fence store.Fence
		err   error
	}
)

// claimer owns the shard for this node, or asks to. It is the claim of the agenda, and what
// store calls say about it.
type claimer struct {
	*shardState
	claimHooks
	store interface {
		store.Owner
		store.Reader
	}
	claim   agenda.Claim
	stopped chan struct{} // of ReleaseShard: closed once the claim is released
	warned  time.Time     // see warn
	refuser string        // the node that owned the shard when it was claimed last
}

// claimHooks are what works under the claim.
type claimHooks struct {
	parts   []batchingPart
	granted func(seq int64, server uint64) // the store granted the claim, and had come to seq
	load    func()                         // the shard is owned: what the store has of it is to be read
}

func newClaimer(b *shardState, hooks claimHooks) claimer {
	return claimer{shardState: b, claimHooks: hooks, store: b.Store}
}

// owned reports whether the shard may hold, recover and load.
func (c *claimer) owned() bool { return c.claim.Owned() }

// elsewhere reports whether the shard is neither this node's nor to become so.
func (c *claimer) elsewhere() bool { return c.claim.Elsewhere() }

// fence is what calls of the owner carry.
func (c *claimer) fence() store.Fence { return c.claim.Fence() }

// inherited reports whether the holds of whoever owned the shard before are known.
func (c *claimer) inherited() bool { return c.claim.Inherited }

func (c *claimer) inherit() { c.claim.Inherited = true }

// idle reports whether no store call runs or waits that somebody depends on.
func (c *claimer) idle() bool {
	if c.claim.GivingUp() {
		return false
	}
	for _, p := range c.parts {
		if !p.idle() {
			return false
		}
	}
	return true
}

// fenced is how many calls under the claim are in flight.
func (c *claimer) fenced() (n int) {
	for _, p := range c.parts {
		n += p.fenced()
	}
	return n
}

// receive handles a message of the claimer. What an earlier incarnation was granted says
// nothing about now.
func (c *claimer) receive(message any, own bool) {
	switch m := message.(type) {
	case *Placed:
		c.on(agenda.ClaimEvent{Kind: agenda.ClaimPlaced, Wanted: m.Forsaken || c.Fleet.Owns(c.id)})
		if m.Told {
			c.on(agenda.ClaimEvent{Kind: agenda.ClaimTold})
		}
	case *HandShard:
		c.on(agenda.ClaimEvent{Kind: agenda.ClaimHandOver})
	case *YieldShard:
		c.on(agenda.ClaimEvent{Kind: agenda.ClaimYield})
	case *LeaseLost:
		c.on(agenda.ClaimEvent{Kind: agenda.ClaimLeaseLost})
	case *LeaseBack:
		c.retry()
	case *ReleaseShard:
		c.stopOnceIdle(m.Done)
	case *claimed:
		if own {
			c.onClaimed(m)
		}
	case *givenUp:
		c.onReleased(m)
	}
}

// retry claims the shard if it is to be claimed.
func (c *claimer) retry() { c.on(agenda.ClaimEvent{Kind: agenda.ClaimRetry}) }

// stop ends the counting of the claim: the next incarnation counts its own.
func (c *claimer) stop() {
	if c.owned() {
		c.Metrics.Owned.Dec()
	}
}

// on tells the claim what happened, and carries out what follows.
func (c *claimer) on(e agenda.ClaimEvent) {
	e.Leased = c.Keeper.Err() == nil
	c.step(e)
}

func (c *claimer) step(e agenda.ClaimEvent) {
	was := c.owned()
	effects := c.claim.Step(e)
	switch owned := c.owned(); {
	case owned && !was:
		c.Metrics.Owned.Inc()
	case was && !owned:
		c.Metrics.Owned.Dec()
	}
	for _, effect := range effects {
		c.carryOut(effect)
	}
}

func (c *claimer) carryOut(effect agenda.ClaimEffect) {
	switch effect.Do {
	case agenda.DoAsk:
		c.ask(effect)
	case agenda.DoCheck:
		c.check()
	case agenda.DoNoteOwner:
		c.NoteUnseen(c.refuser)
	case agenda.DoBegin:
		c.tellTopic(&Owned{Shard: c.id.N})
	case agenda.DoLoad:
		c.tasks.Own()
		c.tasks.Reread()
		c.load()
	case agenda.DoLose:
		c.lose()
	case agenda.DoRelease:
		c.release(effect.Fence)
	case agenda.DoTell:
		c.Log.Debug("shard given up", "topic", c.id.Topic, "shard", c.id.N)
		c.tellReleased()
	case agenda.DoReleaseLast:
		c.releaseLast(effect.Fence)
	case agenda.DoEndStop:
		close(c.stopped)
		c.stopped = nil
	}
}

// advance follows every message: what the claim waited for may have come.
func (c *claimer) advance() {
	c.step(agenda.ClaimEvent{Kind: agenda.ClaimHandled})
	if c.fenced() == 0 {
		c.step(agenda.ClaimEvent{Kind: agenda.ClaimCallsOver})
	}
	if c.claim.Stopping() && c.idle() {
		c.on(agenda.ClaimEvent{Kind: agenda.ClaimIdle})
	}
}

// ask asks the store for ownership. Refused, it answers after a pause.
func (c *claimer) ask(effect agenda.ClaimEffect) {
	session, pause := c.Keeper.Session(), claimRetry
	session.Wants = effect.Want && c.ref.Workers.Load()
	if !effect.Slow { // most are given up at once; the jitter keeps those of a dead node apart
		pause = ownedRetry/2 + time.Duration(c.Random()*float64(ownedRetry))
	}
	c.calls.Run(func(ctx context.Context) {
		m := c.storeClaim(ctx, session)
		switch {
		case errors.Is(m.err, store.ErrOwned):
			if effect.Remind {
				c.remind(ownerOf(m.err))
			}
			Sleep(ctx, pause)
		case m.err != nil:
			Sleep(ctx, claimRetry)
		}
		c.done(m)
	})
}

func (c *claimer) storeClaim(ctx context.Context, session store.Session) *claimed {
	stamp, fence, err := c.store.Claim(ctx, c.id, session)
	return &claimed{seq: stamp.Seq, server: stamp.Server, fence: fence, err: err}
}

// remind has the node that owns the shard in the store look whether it should: after a
// failover that undid its release, or a claim whose answer was lost, it does not know
// that it does, and would for as long as it lives.
func (c *claimer) remind(owner string) {
	c.Fleet.Notify(owner, fleet.Notice{Released: []store.Shard{c.id}})
}

// ownerOf is the node that a claim was refused for; empty when it is not known.
func ownerOf(err error) string {
	if owned := (*store.OwnedError)(nil); errors.As(err, &owned) {
		return owned.Node
	}
	return ""
}

// check claims the shard if the store says that it is this node's.
func (c *claimer) check() {
	session := c.Keeper.Session()
	c.calls.Run(func(ctx context.Context) {
		m := &claimed{err: store.ErrOwned}
		stats, err := c.store.Counts(ctx, []store.Shard{c.id})
		if err == nil && stats[0].Owner == c.Name {
			m = c.storeClaim(ctx, session)
		}
		c.done(m)
	})
}

func (c *claimer) onClaimed(m *claimed) {
	e := agenda.ClaimEvent{Kind: agenda.ClaimGranted, Fence: m.fence}
	switch {
	case errors.Is(m.err, store.ErrSessionLost):
		c.Keeper.Lost(m.err)
		e.Kind = agenda.ClaimUnleased
	case errors.Is(m.err, store.ErrOwned):
		e.Kind, c.refuser = agenda.ClaimRefused, ownerOf(m.err)
	case m.err != nil:
		c.noteError(m.err)
		e.Kind = agenda.ClaimFailed
	default:
		c.Log.Debug("shard claimed", "topic", c.id.Topic, "shard", c.id.N, "epoch", m.fence.Epoch)
		c.granted(m.seq, m.server)
	}
	c.on(e)
}

// lose drops what only an owner knows. Holds run on at their workers.
func (c *claimer) lose() {
	for _, p := range c.parts {
		p.lose()
	}
	c.tasks.Lose()
	c.tellTopic(&Lost{Shard: c.id.N})
	c.scheduleFlush()
}

func (c *claimer) release(fence store.Fence) {
	c.calls.Run(func(ctx context.Context) {
		m := &givenUp{fence: fence}
		if m.err = c.store.Release(ctx, c.id, fence); m.err != nil && !errors.Is(m.err, store.ErrFenced) {
			c.Log.Debug("shard not released", "topic", c.id.Topic, "shard", c.id.N, "err", m.err)
			Sleep(ctx, claimRetry)
		}
		c.done(m)
	})
}

// onReleased handles the end of a release, also of one that an earlier incarnation began.
func (c *claimer) onReleased(m *givenUp) {
	kind := agenda.ClaimReleased
	if m.err != nil && !errors.Is(m.err, store.ErrFenced) {
		kind = agenda.ClaimReleaseFailed
	}
	c.on(agenda.ClaimEvent{Kind: kind, Fence: m.fence})
}

func (c *claimer) tellReleased() {
	c.Fleet.NotifyOwner(c.id, fleet.Notice{Released: []store.Shard{c.id}})
}

// stopOnceIdle has the claim released once the shard is idle, and done closed.
func (c *claimer) stopOnceIdle(done chan struct{}) {
	c.stopped = done
	c.on(agenda.ClaimEvent{Kind: agenda.ClaimStop})
}

// releaseLast gives the claim up at shutdown, so that the next owner need not wait.
func (c *claimer) releaseLast(fence store.Fence) {
	done := c.stopped
	c.stopped = nil
	c.tasks.Lose()
	c.calls.Run(func(ctx context.Context) {
		defer close(done)
		if err := c.store.Release(ctx, c.id, fence); err != nil {
			c.Log.Debug("shard not released", "topic", c.id.Topic, "shard", c.id.N, "err", err)
			return
		}
		c.tellReleased()
	})
}

// noteError acts on what a failed store call says about ownership.
func (c *claimer) noteError(err error) {
	switch {
	case err == nil, errors.Is(err, context.Canceled):
	case errors.Is(err, store.ErrFenced) && !c.owned(): // of a claim that is over already
	case errors.Is(err, store.ErrFenced):
		c.Log.Warn("shard lost to another claim", "topic", c.id.Topic, "shard", c.id.N, "epoch", c.fence().Epoch)
		c.on(agenda.ClaimEvent{Kind: agenda.ClaimFenced})
	case errors.Is(err, store.ErrSealed): // those who add look again where it goes
	default:
		c.tasks.Doubt()
		c.Metrics.StoreErrors.Inc()
		c.Log.Debug("store call failed", "topic", c.id.Topic, "shard", c.id.N, "err", err)
		c.warn(err)
	}
}

// warnPause is how often a shard says at most that its store calls fail.
const warnPause = time.Minute

// warn tells of what is wrong with this shard alone. That the store is away or full is
// told by others, once for all shards.
func (c *claimer) warn(err error) {
	for _, common := range []error{store.ErrUnavailable, store.ErrUnknown, store.ErrAnotherServer, store.ErrFull, store.ErrClosed, context.DeadlineExceeded} {
		if errors.Is(err, common) {
			return
		}
	}
	if now := time.Now(); now.Sub(c.warned) >= warnPause {
		c.warned = now
		c.Log.Warn("store calls of a shard fail", "topic", c.id.Topic, "shard", c.id.N, "err", err)
	}
}

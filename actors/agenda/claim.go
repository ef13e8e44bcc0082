package agenda

import "github.com/ddq-io/ddq/store"

// Claim is a node's ownership of one shard, as a state machine. Step is given what
// happened and answers what to do about it, in order. It has no clock, no goroutine and
// no I/O: the shard actor turns messages into events and effects into calls.
//
//	        ask                granted               lost lease
//	free ----------> asking ------------> owned --------------------> left
//	 ^ ^               |                  |   |                       ^  |
//	 | +-- refused ----+      not wanted, |   | fenced                |  | not wanted
//	 |     (or left)          hand over   v   +-----> free            |  |
//	 |                                  giving <----------------------|--+
//	 |                                    | calls are over            |
//	 |                released            v                 failed    |
//	 +-------------------------------- releasing ---------------------+
//
// Invariants:
//   - at most one call of the claim is in flight: the one of asking, or of releasing
//   - the shard holds, recovers and loads in owned only
//   - what was granted is released, or followed by another claim, or known to be another
//     node's: a claim that may be in the store is never forgotten
//   - a claim is released only once the calls that carry its fence have ended
type Claim struct {
	state    claimState
	back     claimState  // where asking ends that is not granted: free or left
	fence    store.Fence // of owned, giving, releasing, left, and of what asking goes back to
	wanted   bool        // placement says that the shard is for this node
	stopping bool        // the node shuts down: it asks for nothing, and releases once idle
	refusals int         // of asking in a row, since another node owns the shard
	effects  []ClaimEffect

	// Facts that the owner reports. Each claim that is granted starts them over.
	Inherited bool // the holds of whoever owned the shard before are known
}

const (
	remindAfter = 100 // refusals until the owner is told that it owns the shard, and the pauses get longer
	remindEvery = 20  // refusals until it is told again: notices get lost
	wantAfter   = 20  // refusals, a second of them: a node that hands over is done by then
	wantEvery   = 10  // refusals until the owner is asked again
	unseenAfter = 40  // refusals that take as long as the lease of a dead server
)

// claimState is where a claim is. Each has its row in claimTable.
type claimState uint8

const (
	claimFree      claimState = iota // not ours, as far as is known
	claimLeft                        // not owned, but the store may have a claim of ours still
	claimAsking                      // a call may bring it
	claimOwned                       // granted, and not lost
	claimGiving                      // handed over: calls under the claim have to end first
	claimReleasing                   // the store is told
	claimStates
)

// ClaimEventKind is the kind of a ClaimEvent.
type ClaimEventKind uint8

const (
	ClaimPlaced        ClaimEventKind = iota // placement said whether the shard is for this node
	ClaimRetry                               // the lease is back, or the time to try again has come
	ClaimTold                                // another node said that this one has the shard, and should not
	ClaimGranted                             // the call of asking: the store has the claim
	ClaimRefused                             // another node owns the shard
	ClaimFailed                              // the store did not answer
	ClaimUnleased                            // the store does not know this node's lease
	ClaimFenced                              // a call under the claim was refused: it is over
	ClaimLeaseLost                           // what the lease allowed has to stop
	ClaimHandOver                            // somebody asked for the shard to be given up
	ClaimYield                               // another node has workers for it, and this one has none
	ClaimHandled                             // the shard has handled a message
	ClaimCallsOver                           // no call that needs the claim is in flight
	ClaimReleased                            // the call of releasing: done, or the store knew better
	ClaimReleaseFailed                       // its outcome is unknown
	ClaimStop                                // the node shuts down
	ClaimIdle                                // it does, and no store call waits or runs
	claimEvents
)

// ClaimEvent is what happened.
type ClaimEvent struct {
	Kind   ClaimEventKind
	Wanted bool        // of ClaimPlaced
	Fence  store.Fence // of ClaimGranted, and of the two ends of a release
	Leased bool        // the node has its lease; ClaimHandled and ClaimCallsOver need not say
}

// ClaimDo is what a ClaimEffect asks for.
type ClaimDo uint8

const (
	DoAsk         ClaimDo = iota // claim the shard in the store
	DoCheck                      // and this only if the store says that the shard is this node's
	DoNoteOwner                  // the owner may be a node that this one does not see
	DoBegin                      // the shard is owned from now on
	DoLoad                       // read what the store has of it
	DoLose                       // the shard is owned no more: drop what only an owner knows
	DoRelease                    // release the claim under Fence, and report the end
	DoTell                       // tell the next owner that the shard is released
	DoReleaseLast                // release the claim under Fence, and end the shutdown
	DoEndStop                    // end the shutdown: nothing is to be released, or the lease takes it along
)

// ClaimEffect is one thing to do.
type ClaimEffect struct {
	Do     ClaimDo
	Fence  store.Fence // of DoRelease and DoReleaseLast
	Remind bool        // of DoAsk: should the claim be refused again, tell the owner that it owns the shard
	Slow   bool        // of DoAsk: it was refused so often that it can wait longer
	Want   bool        // of DoAsk: should it be refused again, have the store tell the owner that the shard is wanted
}

// NewClaim returns the claim of a shard that begins; left is what an earlier incarnation
// may have in the store.
func NewClaim(wanted bool, left *store.Fence) Claim {
	c := Claim{wanted: wanted}
	if left != nil {
		c.state, c.fence = claimLeft, *left
	}
	return c
}

// Owned reports whether the shard may hold, recover and load.
func (c *Claim) Owned() bool { return c.state == claimOwned }

// Fence is what the calls of the owner carry.
func (c *Claim) Fence() store.Fence { return c.fence }

// Stopping reports whether the claim waits for ClaimIdle.
func (c *Claim) Stopping() bool { return c.stopping }

// GivingUp reports whether a claim is being given up: the shard is not idle yet.
func (c *Claim) GivingUp() bool { return c.state == claimGiving || c.state == claimReleasing }

// Elsewhere reports whether the shard is neither this node's nor to become so.
func (c *Claim) Elsewhere() bool { return !c.wanted && !c.Owned() }

// InStore is the claim that the store may have for this node, for the incarnation after
// this one; nil: none. What is being released is not among them: its end is reported to
// that incarnation.
func (c *Claim) InStore() *store.Fence {
	if c.state == claimFree || c.state == claimReleasing || c.state == claimAsking && c.back == claimFree {
		return nil
	}
	fence := c.fence
	return &fence
}

// claimTable says what each event leads to in each state. What is not in it changes
// nothing: it comes too late, or is for another state to act on.
var claimTable = [claimStates][claimEvents]func(*Claim, ClaimEvent){
	claimFree: {
		ClaimPlaced:        (*Claim).ask,
		ClaimRetry:         (*Claim).ask,
		ClaimTold:          (*Claim).check,
		ClaimYield:         (*Claim).check,
		ClaimReleased:      (*Claim).releasedBefore,
		ClaimReleaseFailed: (*Claim).leftBefore,
		ClaimIdle:          (*Claim).endStop,
	},
	claimLeft: {
		ClaimPlaced:        (*Claim).ask,
		ClaimRetry:         (*Claim).ask,
		ClaimTold:          (*Claim).check,
		ClaimYield:         (*Claim).check,
		ClaimHandled:       (*Claim).giveLeft,
		ClaimReleased:      (*Claim).releasedBefore,
		ClaimReleaseFailed: (*Claim).leftBefore,
		ClaimIdle:          (*Claim).releaseLeft,
	},
	claimAsking: {
		ClaimGranted:       (*Claim).own,
		ClaimRefused:       (*Claim).refused,
		ClaimFailed:        (*Claim).failed,
		ClaimUnleased:      (*Claim).unleased,
		ClaimReleased:      (*Claim).releasedBefore,
		ClaimReleaseFailed: (*Claim).leftBefore,
		ClaimIdle:          (*Claim).releaseLeft,
	},
	claimOwned: {
		ClaimPlaced:    (*Claim).placedElsewhere,
		ClaimHandOver:  (*Claim).handOver,
		ClaimYield:     (*Claim).handOver,
		ClaimFenced:    (*Claim).fenced,
		ClaimLeaseLost: (*Claim).leave,
		ClaimReleased:  (*Claim).releasedBefore,
		ClaimIdle:      (*Claim).releaseLast,
	},
	claimGiving: {
		ClaimCallsOver: (*Claim).release,
		ClaimReleased:  (*Claim).releasedBefore,
	},
	claimReleasing: {
		ClaimReleased:      (*Claim).released,
		ClaimReleaseFailed: (*Claim).releaseFailed,
	},
}

// Step is told what happened and returns what to do, in order. The effects are valid
// until the next Step.
func (c *Claim) Step(e ClaimEvent) []ClaimEffect {
	c.effects = c.effects[:0]
	switch e.Kind {
	case ClaimPlaced:
		if c.wanted = e.Wanted; c.wanted {
			c.refusals = 0
		}
	case ClaimYield: // until it is placed anew
		c.wanted = false
	case ClaimStop:
		c.stopping = true
	case ClaimIdle:
		c.stopping = false
	}
	if act := claimTable[c.state][e.Kind]; act != nil {
		act(c, e)
	}
	return c.effects
}

func (c *Claim) do(d ClaimDo) { c.effects = append(c.effects, ClaimEffect{Do: d}) }

// ask asks for a shard that this node should own.
func (c *Claim) ask(e ClaimEvent) {
	if !c.wanted || !e.Leased || c.stopping {
		return
	}
	c.back, c.state = c.state, claimAsking
	c.effects = append(c.effects, ClaimEffect{
		Do:     DoAsk,
		Remind: c.refusals >= remindAfter && c.refusals%remindEvery == 0,
		Slow:   c.refusals >= remindAfter,
		Want:   c.refusals >= wantAfter && c.refusals%wantEvery == 0,
	})
}

// check asks for a shard that another node says this one has: after a failover that undid
// its release, or a claim whose answer was lost, it does not know. Granted, it is given up.
func (c *Claim) check(e ClaimEvent) {
	if c.wanted || !e.Leased || c.stopping {
		return
	}
	c.back, c.state = c.state, claimAsking
	c.do(DoCheck)
}

func (c *Claim) own(e ClaimEvent) {
	c.state, c.fence, c.refusals = claimOwned, e.Fence, 0
	c.Inherited = false
	c.do(DoBegin)
	if !c.wanted { // placed elsewhere meanwhile
		c.handOver(e)
		return
	}
	c.do(DoLoad)
}

func (c *Claim) refused(e ClaimEvent) {
	if c.refusals++; c.refusals >= unseenAfter && c.refusals%wantEvery == 0 {
		c.do(DoNoteOwner)
	}
	c.failed(e)
}

func (c *Claim) failed(e ClaimEvent) {
	c.state = c.back
	c.ask(e)
}

// unleased leaves it to ClaimRetry to ask again, once the lease is back.
func (c *Claim) unleased(ClaimEvent) { c.state = c.back }

func (c *Claim) placedElsewhere(e ClaimEvent) {
	if !c.wanted {
		c.handOver(e)
	}
}

func (c *Claim) handOver(ClaimEvent) {
	c.state = claimGiving
	c.do(DoLose)
}

// fenced is the end of a claim that another one followed.
func (c *Claim) fenced(e ClaimEvent) {
	c.state = claimFree
	c.do(DoLose)
	c.ask(e)
}

// leave stops what the lease allowed. The claim stays in the store: this node claims it
// again, or releases it once the shard is to be another's. With the lease back nobody
// else could claim it.
func (c *Claim) leave(ClaimEvent) {
	c.state = claimLeft
	c.do(DoLose)
}

// giveLeft gives up what was left behind, unless it is to be claimed again.
func (c *Claim) giveLeft(ClaimEvent) {
	if !c.wanted && !c.stopping {
		c.state = claimGiving
	}
}

func (c *Claim) release(ClaimEvent) {
	c.state = claimReleasing
	c.effects = append(c.effects, ClaimEffect{Do: DoRelease, Fence: c.fence})
}

func (c *Claim) released(e ClaimEvent) {
	if e.Fence != c.fence {
		c.releasedBefore(e)
		return
	}
	c.state = claimFree
	c.releasedBefore(e)
}

// releaseFailed keeps the claim in mind: in the store it is in everybody's way.
func (c *Claim) releaseFailed(e ClaimEvent) {
	if e.Fence == c.fence {
		c.leftBefore(e)
	}
}

// releasedBefore is also the end of a release that an earlier incarnation began.
func (c *Claim) releasedBefore(e ClaimEvent) {
	c.do(DoTell)
	if c.state == claimFree || c.state == claimLeft {
		c.ask(e)
	}
}

// leftBefore is also the end of a release that an earlier incarnation began. An owned
// shard has no use for it: its claim followed that one.
func (c *Claim) leftBefore(e ClaimEvent) {
	c.fence = e.Fence
	if c.state == claimAsking {
		c.back = claimLeft
		return
	}
	c.state = claimLeft
	c.ask(e)
}

func (c *Claim) endStop(ClaimEvent) { c.do(DoEndStop) }

// releaseLeft releases what was left behind, while the lease lasts: without it the claim
// lapses by itself.
func (c *Claim) releaseLeft(e ClaimEvent) {
	left := c.state == claimLeft || c.back == claimLeft
	if !left || !e.Leased {
		c.do(DoEndStop)
		return
	}
	c.releaseLast(e)
}

// releaseLast releases the claim of a node that stops. An answer that is still to come is
// handed over at once: the shard is not wanted any more.
func (c *Claim) releaseLast(ClaimEvent) {
	c.wanted, c.back = false, claimFree
	if c.state != claimAsking {
		c.state = claimFree
	}
	c.effects = append(c.effects, ClaimEffect{Do: DoReleaseLast, Fence: c.fence})
}

package store

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"
)

// Taker takes what tasks need of the limits of their topic: tokens and permits together, or nothing.
// It works on the state that the calls of Limits work on. Any node may call it, about any topic.
type Taker interface {
	// Take does all of a Take in one atomic step, in this order: it ends Free, gives Back, ends the places of
	// Leave, and then looks at the wants in order until each holder has one. A want gets all that it needs, or
	// nothing, and then the answer says what it lacks. Permits whose time is over are swept when a cap looks full.
	//
	// It is as durable as Acquire for permits and as Reserve for tokens.
	//
	// Errors are those of Store. After ErrUnavailable nothing was done. After ErrUnknown the same Take may be
	// made again, see Take.Call. ErrNoTake means that this store cannot take in one step: the limits of its
	// fleet are still named as by versions without Take. Then Reserve, Acquire and Free do.
	Take(ctx context.Context, t *Take) (*TakeReply, error)
}

// Bounds of a Take, and the times of its rules.
const (
	// MaxWants is how many Wants and how many Holders a Take has at most. Free, Back and Leave have at most
	// eight times as many.
	MaxWants = 512

	// TokenHorizon is how far ahead of its moment a token of a bucket is given to a want. There is no horizon
	// (a token is given at its moment) when a rate of the topic or of its keys is a sliding window, and under
	// DeadLetter.
	TokenHorizon = 25 * time.Millisecond

	// LineTurn is for how long what is there is kept for the first in line; for the first two for one more,
	// and then for nobody.
	LineTurn = 5 * time.Millisecond

	// SharePeriod is the time over which the nodes in line have equal parts of what is given.
	SharePeriod = 60 * time.Millisecond

	// NoticeWait is after how long a node in line asks for a permit again when nobody told it of one.
	NoticeWait = time.Second

	// CallLife is for how long a Take is answered as before. A node makes none again after that: what it took
	// is lost then, and what it gave Back counts as given.
	CallLife = 30 * time.Second

	// LateCalls is how many calls before the last one of a node and topic are known to be late, within CallLife.
	LateCalls = 1000
)

// Take asks for what tasks need that could go now: for each the tokens and permits of the limits of its
// topic, of its keys and of its namespace.
type Take struct {
	// Call tells this Take from others of its node and topic, also of former processes of that name: nodes
	// draw the first number at random. The last Take of a node and topic is answered as before, and nothing
	// is done, when it is made again within CallLife. One of the LateCalls before that is a copy that was on its way:
	// nothing is done, and no want is reached. 0: it is never made again, and is not remembered.
	Call uint64

	Topic  string
	Node   string      // has places in line under this name; not empty
	Limits TopicLimits // of the topic now

	// Holders are the places at workers that the wants are for: the i-th want that is granted has its permits
	// under the i-th, which is to be the token of its hold. There may be fewer than wants: those behind are
	// looked at when those before lack something.
	Holders []Token
	Until   Millis // when the permits end by themselves

	Wants []Want // in order

	// Life is how long a token of a window is to last at least, up to MaxTokenLife: as long as it takes from
	// here to a hold. It lasts one or two slots otherwise, which are a few milliseconds of a short period. It counts
	// for a period longer than it lasts.
	Life time.Duration

	Free  []Permit       // of holds that ended, of caps of the topic and its namespace; Until does not count
	Back  []TokenReceipt // of wants that were granted and not used: they were certainly not held
	Leave []Limit        // lines in which the node has a place that is of no use to it
}

// Want is a task that asks for all that it needs.
type Want struct {
	RateKey string // empty: it has none
	CapKey  string // its concurrency key; empty: it has none
}

// Limit is a rate or a cap.
type Limit struct {
	Key  LimitKey // that of a cap is as by CapKey
	Rate bool     // a rate, not a cap
}

// TakeReply is the answer to a Take.
type TakeReply struct {
	Now     time.Time // the store's clock at the step, to the microsecond; all moments are by it
	Wants   []Taking  // one for each want, in order
	Notices []Notice  // for others, to pass on
	Lost    int       // tokens of Back that are lost, see TokenMark
}

// TakeStatus is what became of a want.
type TakeStatus uint8

// What becomes of a want. The numbers are a part of what stores keep.
const (
	NotReached TakeStatus = iota // not looked at: there was no holder left
	Granted                      // it has all that it needs
	NoToken                      // it lacks a token of the rate Lacks
	NoPermit                     // it lacks a permit of the cap Lacks
	OverRate                     // under DeadLetter: it had a holder and could have had its permits, and lacks a token of the rate Lacks
)

// Taking is what became of a want.
type Taking struct {
	Status TakeStatus

	// At is from when the task may be held: the moment of its last token, up to TokenHorizon ahead of
	// TakeReply.Now, and not before that. Of Granted.
	At time.Time
	// Before is when the first of its tokens ends: a hold that comes then or later needs others. Zero: it has
	// no token. Of Granted.
	Before time.Time
	// Receipt is what gives the tokens Back. Of Granted. Its permits are freed under their holder.
	Receipt TokenReceipt

	// Lacks is the first limit that it lacks something of: of the caps that of its key, the topic's, the
	// namespace's; then of the rates that of its key, the topic's. The node has a place in line there until
	// WaitLife after it asked last. (Not of OverRate: nobody waits.)
	Lacks Limit
	// Again is when asking again is of use, if no Notice of Lacks comes before. It allows for TokenHorizon, and
	// lets tokens of a fast rate gather. Of NoToken, NoPermit.
	Again time.Time
}

// TokenReceipt tells the tokens of a want from those that were taken after them.
type TokenReceipt struct {
	RateKey string    // whose token Key is of
	Key     TokenMark // of the rate of RateKey
	Topic   TokenMark // of the rate of the topic
}

// TokenMark is one token in the state of its rate. The zero TokenMark is none.
//
// A token of a bucket goes back if it is the last that was taken: the state is as it left it. Else it is
// lost, as the bucket could give two within the time of one. A token of a window always goes back. Nothing goes back
// to a rate that has rested since.
type TokenMark struct {
	Kind RateKind
	From int64 // microseconds. Of a bucket: when it came, which is before Now where the bucket rested
	To   int64 // microseconds. Of a bucket: when the next one comes; 0: it cannot go back. Of a window: the end of its slot
}

// Notice tells a node that something is there of a limit in whose line it has a place. Those of permits
// follow whenever one is there after a Take that touched the cap; those of tokens when some went Back or a
// node left the line. A node that is told asks, or answers with Leave.
type Notice struct {
	Node  string        // whom to tell, perhaps the node that asked
	Topic string        // which of its topics; another than that of the Take only for the cap of their namespace
	Limit Limit         // of what
	After time.Duration // when to tell it: those behind come if those before did not
}

// LineName is the name under which a node has a place in the line for a limit. The line for the cap of a
// namespace has topics at nodes, so that each of them has its turn.
func LineName(node, topic string, key LimitKey) string {
	if key.Key == NamespaceCap {
		return node + NamespaceCap + topic
	}
	return node
}

// FromLine returns whom a name in the line for a limit of a topic is of.
func FromLine(name, topic string) (node, of string) {
	if node, of, namespaced := strings.Cut(name, NamespaceCap); namespaced {
		return node, of
	}
	return name, topic
}

// Ahead is how far ahead of their moments tokens are given: TokenHorizon, or 0.
func (t *Take) Ahead() time.Duration {
	l := &t.Limits
	if l.DeadLetter || l.Rate.Limited() && l.Rate.Kind == SlidingWindow || l.KeyRate.Limited() && l.KeyRate.Kind == SlidingWindow {
		return 0
	}
	return TokenHorizon
}

// Granted is what became of a want that took tokens at a moment of the store, as stores make it.
func (t *Take) Granted(now time.Time, r TokenReceipt) Taking {
	got := Taking{Status: Granted, At: now, Receipt: r}
	for _, token := range [...]struct {
		rate Rate
		mark TokenMark
	}{{t.Limits.KeyRate, r.Key}, {t.Limits.Rate, r.Topic}} {
		if token.mark == (TokenMark{}) {
			continue
		}
		at := now
		if from := time.UnixMicro(token.mark.From).UTC(); token.mark.Kind == TokenBucket && from.After(now) {
			at = from
		}
		if at.After(got.At) {
			got.At = at
		}
		if before := token.mark.before(token.rate, at); got.Before.IsZero() || before.Before(got.Before) {
			got.Before = before
		}
	}
	return got
}

// before is when the token ends, which comes at a moment, or was there then.
func (m TokenMark) before(r Rate, at time.Time) time.Time {
	if m.Kind == TokenBucket && m.To == 0 {
		return r.Before(time.UnixMicro(m.From).UTC())
	}
	if m.Kind == SlidingWindow {
		return time.UnixMicro(m.To).UTC()
	}
	return r.Before(at)
}

// KeyMark is a token to be given back, and whose it is.
type KeyMark struct {
	Key LimitKey
	TokenMark
}

// Marks are the tokens of Back in the order in which they can go back: the last that was taken first.
func (t *Take) Marks() []KeyMark {
	all := make([]KeyMark, 0, 2*len(t.Back))
	for i := range t.Back {
		r := &t.Back[i]
		for _, m := range [...]KeyMark{{LimitKey{t.Topic, r.RateKey}, r.Key}, {LimitKey{t.Topic, ""}, r.Topic}} {
			if m.To != 0 {
				all = append(all, m)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b KeyMark) int { return cmp.Compare(b.To, a.To) })
	return all
}

// RateOf is the rate of a rate key, or of the topic when it is empty.
func (l *TopicLimits) RateOf(key string) Rate {
	if key == "" {
		return l.Rate
	}
	return l.KeyRate
}

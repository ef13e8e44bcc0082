package store

import (
	"context"
	"hash/fnv"
	"time"
)

// Limits keeps what the nodes of a fleet share of rates and caps. Any node may call
// it, about any topics and keys together; it belongs to no shard, and does not move
// with one. What Reserve, Acquire and Move did is at least as durable as a Hold that
// follows them, and tokens that are reserved as a whole outlive the node that has the answer; a
// permit whose holder has no hold may be forgotten when the store starts.
type Limits interface {
	// Reserve takes tokens of rates, now and for moments to come. A token that is not
	// used in its time is lost. Repeated, it takes others.
	Reserve(ctx context.Context, asked []Reservation) ([]Tokens, error)

	// Acquire takes permits. Those that a holder has are moved to Until. A call that
	// gets fewer than it asks for makes its node wait in turn with other nodes: each
	// that waits has a permit before one that came later has another. A node that asks
	// for none waits no longer.
	Acquire(ctx context.Context, asked []Acquire) ([]Acquired, error)

	// Move makes permits last until another moment, above the cap also those that
	// were not held.
	Move(ctx context.Context, permits []Permit) error

	// Free ends permits, and returns for each the nodes that wait for one of its key,
	// the first in turn first.
	Free(ctx context.Context, permits []Permit) ([][]string, error)
}

// LimitParts is how many parts the limits are spread over.
const LimitParts = 64

// LimitKey names tasks of a topic that share a limit: those that carry the key, or
// all of them when it is empty.
type LimitKey struct{ Topic, Key string }

// Part is where the state of a key lies, from 0 to LimitParts - 1.
func (k LimitKey) Part() int {
	h := fnv.New32a()
	h.Write([]byte(k.Topic))
	h.Write([]byte{0})
	h.Write([]byte(k.Key))
	return int(h.Sum32() % LimitParts)
}

// RateKind is how a rate counts.
type RateKind uint8

const (
	TokenBucket   RateKind = iota // Count in Period on average, Burst at once after a rest
	SlidingWindow                 // at most Count in any Period
)

// What a Rate may be.
const (
	MaxRateCount  = 1_000_000
	MinRatePeriod = time.Millisecond
	MaxRatePeriod = 24 * time.Hour
	MaxBurst      = 100_000
)

// Rate is how fast something may go. The zero Rate is no limit.
type Rate struct {
	Kind   RateKind
	Count  int           // tokens in Period
	Period time.Duration // whole milliseconds
	Burst  int           // of a token bucket, at least 1
}

// Limited reports whether r is a limit.
func (r Rate) Limited() bool { return r.Count > 0 }

// Most is how many tokens there can be at one moment.
func (r Rate) Most() int {
	if r.Kind == SlidingWindow {
		return r.Count
	}
	return max(1, r.Burst)
}

// Spacing is the time from one token to the next, on average.
func (r Rate) Spacing() time.Duration { return r.Period / time.Duration(max(1, r.Count)) }

// windowSlots is how finely a sliding window counts: a token counts for up to two
// slots longer than its period.
const windowSlots = 64

// Slot is the width of a slot of a sliding window.
func (r Rate) Slot() time.Duration {
	return max(time.Millisecond, (r.Period / windowSlots).Truncate(time.Microsecond))
}

// MaxTokenLife is how long a token can be used: each of a bucket, and one of a window at most.
const MaxTokenLife = 500 * time.Millisecond

// Before is when a token that came at a moment ends: a Hold that comes later needs
// another. That keeps late tokens from adding up.
func (r Rate) Before(moment time.Time) time.Time {
	if r.Kind == SlidingWindow {
		return moment.Add(-sinceSlot(moment, r.Slot())).Add(2 * r.Slot())
	}
	return moment.Add(MaxTokenLife)
}

// SlotEnd is when a token of a window ends that is given at a moment and is to last: the end of a slot, see Take.Life.
func (r Rate) SlotEnd(moment time.Time, life time.Duration) time.Time {
	return r.Before(moment.Add(max(0, min(life, MaxTokenLife)-r.Slot())))
}

// sinceSlot is how long ago the slot of a moment began.
func sinceSlot(moment time.Time, slot time.Duration) time.Duration {
	return time.Duration(moment.UnixMicro()%slot.Microseconds()) * time.Microsecond
}

// NamespaceCap is the key of the cap of a namespace, over all its topics. No task has it: keys of tasks are UTF-8.
const NamespaceCap = "\xff"

// CapKey names a cap that tasks of a topic are under: that of a concurrency key, of the topic where the key is
// empty, or of its namespace.
func CapKey(topic, key string) LimitKey {
	if key == NamespaceCap {
		namespace, _ := SplitName(topic)
		topic = namespace + "/" // no topic has that name
	}
	return LimitKey{Topic: topic, Key: key}
}

// TopicLimits are the rates and caps of a topic. Zero fields are no limit.
type TopicLimits struct {
	Rate           Rate // of all its tasks
	KeyRate        Rate // of the tasks of each rate key
	Concurrency    int  // most tasks held at a time
	KeyConcurrency int  // of each concurrency key
	DeadLetter     bool // tasks over a rate are dead-lettered rather than waiting

	// Namespace is the most tasks held at a time of all topics of its namespace. It is a quota of that: nodes add
	// it to what stores keep of a topic.
	Namespace int
}

// Capped reports whether there is a cap.
func (l *TopicLimits) Capped() bool {
	return l.Concurrency > 0 || l.KeyConcurrency > 0 || l.Namespace > 0
}

// Cap is the most tasks held at a time of a concurrency key, of the topic when it is empty,
// or of the namespace; 0: no limit.
func (l *TopicLimits) Cap(key string) int {
	switch key {
	case "":
		return l.Concurrency
	case NamespaceCap:
		return l.Namespace
	}
	return l.KeyConcurrency
}

// PermitSkew is how much longer than a hold its permit lasts in any case: what the clocks
// of a store's servers may differ by.
const PermitSkew = 500 * time.Millisecond

// MaxReserve is how many tokens a node reserves at once, and a caller may ask for.
const MaxReserve = 4096

// MaxAhead is the farthest ahead that tokens are reserved in earnest. Where a rate is used up
// for longer, the clock was ahead when that happened and has been put right: the rate
// begins anew. (A longer Ahead in a Reservation goes for the tokens of that one.)
const MaxAhead = time.Minute

// Reservation asks for tokens of a key.
type Reservation struct {
	Key   LimitKey
	Rate  Rate
	N     int           // at most 1,000, and Rate.Most when Whole; 0 only looks
	Ahead time.Duration // how far from now the last of them may come, see MaxAhead
	Whole bool          // all N or none
	Life  time.Duration // as Take.Life
}

// Tokens are what a Reservation got.
type Tokens struct {
	N   int       // how many
	Now time.Time // the store's clock
	// First is when the first of them comes; for none, when there is one again, or
	// all when Whole. It may be before Now.
	First time.Time
}

// At is when the i-th token of a reservation comes, i from 0.
func (t Tokens) At(i int, r Rate) time.Time {
	at := t.First
	if r.Kind == TokenBucket {
		at = at.Add(r.Span(i))
	}
	if at.Before(t.Now) {
		return t.Now
	}
	return at
}

// Span is the time that n tokens of a bucket take, in whole microseconds, rounded up.
func (r Rate) Span(n int) time.Duration {
	count := int64(max(1, r.Count))
	return time.Duration((int64(n)*r.Period.Microseconds()+count-1)/count) * time.Microsecond
}

// Slack is how far the first token can lie back of a bucket that rests, so that all of its burst are there.
func (r Rate) Slack() time.Duration { return r.Span(r.Most() - 1) }

// Acquire asks for a permit of one key for each of its holders.
type Acquire struct {
	Key     LimitKey
	Max     int     // permits of the key at any moment
	Node    string  // that asks; empty: it does not wait for those it does not get
	Holders []Token // the tokens of the holds
	Until   Millis  // when the permits end by themselves
}

// Acquired is what an Acquire got.
type Acquired struct {
	N     int    // the first N of the holders have a permit
	InUse int    // permits of the key now
	Next  Millis // of an Acquire with neither holders nor a node: when the first of them ends by itself; 0: there is none
}

// Permit is one holder's right to be one of a key.
type Permit struct {
	Key    LimitKey
	Holder Token
	Until  Millis // not of Free
}

// WaitLife is how long a node that was refused keeps its turn. It asks again before.
const WaitLife = 2 * time.Second

package dispatch

import (
	"slices"
	"time"

	"github.com/ddq-io/ddq/store"
)

// Lack is a limit of which a task may lack a token or a permit.
type Lack uint8

// The limits that a topic may have.
const (
	LackRate         Lack = iota // of the topic
	LackKeyRate                  // of a rate key
	LackCap                      // of the topic
	LackKeyCap                   // of a concurrency key
	LackNamespaceCap             // of the topic's namespace

	Lacks // how many there are
)

// Of reports whether a topic has such a limit.
func (l Lack) Of(limits *store.TopicLimits) bool {
	switch l {
	case LackRate:
		return limits.Rate.Limited()
	case LackKeyRate:
		return limits.KeyRate.Limited()
	case LackCap:
		return limits.Concurrency > 0
	case LackKeyCap:
		return limits.KeyConcurrency > 0
	case LackNamespaceCap:
		return limits.Namespace > 0
	}
	return false
}

// lack is the limit that a key is of.
func (n keyName) lack() Lack {
	switch {
	case n.rate && n.key == "":
		return LackRate
	case n.rate:
		return LackKeyRate
	case n.key == "":
		return LackCap
	case n.key == store.NamespaceCap:
		return LackNamespaceCap
	}
	return LackKeyCap
}

// LimitCounts is what happened under the limits of a topic.
type LimitCounts struct {
	Refused  [Lacks]int    // limits of which the store had nothing more, by kind; each once a call
	Returned int           // tokens that were not used, and went back
	Lost     int           // tokens that were not used, and did not, or perhaps not
	Waited   time.Duration // the longest wait that ended, see Topic.Pressing
}

// gaveBack counts the tokens that a call gave back.
func (c *LimitCounts) gaveBack(call *TakeCall, a *Taken) {
	n := 0
	for i := range call.Back {
		n += boolToInt(call.Back[i].Key.To != 0) + boolToInt(call.Back[i].Topic.To != 0)
	}
	switch {
	case a.Reply != nil:
		c.Returned += n - a.Reply.Lost
		c.Lost += a.Reply.Lost
	case a.Unknown:
		c.Lost += n
	}
}

// pressing reports whether a task could go that has not gone, as far as is known: it is asked for, or it is open and there
// is room for it. So it lacks nothing but an answer of the store.
func (t *assigner) pressing() bool {
	g := t.limiter
	switch {
	case t.core.paused || !slices.ContainsFunc(t.core.subs, func(s *subState) bool { return s.room() > 0 }): // nobody can have it
		return false
	case g.call != nil && g.call.Room > 0:
		return true
	}
	return g.shut() == nil && g.counts.open > 0 && g.through(t.core.vacancy()) > 0
}

// watch notes from when on a task could go.
func (t *assigner) watch(now time.Time) {
	switch g := t.limiter; {
	case !t.pressing():
		g.could = time.Time{}
	case g.could.IsZero():
		g.could = now
	}
}

// Pressing is since when, without a break, a task has had room and, as far as is known, all that its limits ask for, and the
// store has answered for none; zero: no task waits like that.
func (t *Topic) Pressing() (since time.Time) {
	if t.limiter != nil {
		since = t.limiter.could
	}
	return since
}

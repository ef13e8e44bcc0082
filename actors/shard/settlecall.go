package shard

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/ddq-io/ddq/actors/agenda"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/store"
)

// SettleCall is a set of settlements that are answered together, or in parts.
type SettleCall struct {
	Asked   []subscription.Settlement
	Tokens  []store.Token
	Results []subscription.Settled
	*Countdown
	parts *settleParts // nil: all are answered together
}

// NewSettleCall returns a call of which nothing is settled; done is told the outcomes, by
// whoever finishes the last.
func NewSettleCall(asked []subscription.Settlement, done func([]subscription.Settled)) *SettleCall {
	c := &SettleCall{
		Asked:   asked,
		Tokens:  make([]store.Token, len(asked)),
		Results: make([]subscription.Settled, len(asked)),
	}
	c.Countdown = NewCountdown(len(asked), func() { done(c.Results) })
	for i, a := range asked {
		c.Results[i] = subscription.Settled{ID: a.ID, Token: a.Token, Kind: a.Kind, Name: a.Name}
	}
	return c
}

// NewSettleCallInParts is NewSettleCall for those who hear what is decided while the rest takes long, as
// that of a shard does whose store does not answer: tell is called until it was told all outcomes, by one
// goroutine at a time.
func NewSettleCallInParts(asked []subscription.Settlement, tell func([]subscription.Settled)) *SettleCall {
	c := NewSettleCall(asked, tell)
	p := &settleParts{decided: make([]uint32, len(asked)), pause: settlePart}
	c.parts = p
	p.mu.Lock()
	defer p.mu.Unlock()
	c.Countdown = NewCountdown(len(asked), func() { p.rest(c, tell) })
	p.late = time.AfterFunc(settlePart, func() { p.some(c, tell) })
	return c
}

// settleParts tells the outcomes of a call as they come. It owns a timer until all are told.
type settleParts struct {
	decided []uint32 // 1: its result is final; by atomic calls

	mu    sync.Mutex
	late  *time.Timer   // of the next part; guarded by mu
	pause time.Duration // before it; guarded by mu
	told  []bool        // nil: none; guarded by mu
	left  int           // of told; guarded by mu
	over  bool          // all is told; guarded by mu
}

// Pauses before parts, for all to be in one and for others to join.
const (
	settlePart        = 50 * time.Millisecond
	settlePartLongest = 400 * time.Millisecond
)

// some tells what is decided, while not all is.
func (p *settleParts) some(c *SettleCall, tell func([]subscription.Settled)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return
	}
	if p.told == nil {
		p.told, p.left = make([]bool, len(c.Results)), len(c.Results)
	}
	if p.tellDecided(c, tell); p.left > 0 {
		p.pause = min(2*p.pause, settlePartLongest)
		p.late.Reset(p.pause)
	}
}

// rest tells all that was not told: the last is decided.
func (p *settleParts) rest(c *SettleCall, tell func([]subscription.Settled)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	p.late.Stop()
	if p.told == nil {
		tell(c.Results)
		return
	}
	p.tellDecided(c, tell) // which all are
}

// tellDecided tells what is decided and was not told. mu is held.
func (p *settleParts) tellDecided(c *SettleCall, tell func([]subscription.Settled)) {
	part := make([]subscription.Settled, 0, p.left)
	for i := range c.Results {
		if !p.told[i] && atomic.LoadUint32(&p.decided[i]) == 1 {
			p.told[i] = true
			part = append(part, c.Results[i])
		}
	}
	if p.left -= len(part); len(part) > 0 {
		tell(part)
	}
}

// Refuse finishes one settlement of the call.
func (c *SettleCall) Refuse(i int, err *problem.Error) {
	c.finish(i, func(r *subscription.Settled) { r.Err = err })
}

func (c *SettleCall) finish(i int, edit func(r *subscription.Settled)) {
	edit(&c.Results[i])
	if c.parts != nil {
		atomic.StoreUint32(&c.parts.decided[i], 1)
	}
	c.Finish(1)
}

// settleItem is one settlement of a call.
type settleItem struct {
	call *SettleCall
	i    int
	ask  *subscription.Settlement
	agenda.Retries
	known  bool          // retries is set
	lasts  time.Duration // extends: what the hold lasted at first; 0 unknown
	until  store.Millis  // the hold's deadline, as far as is known; else 0
	capped bool          // under caps, and its hold is not known here
}

// resultSize is what counts of an ack.
func resultSize(it *settleItem) int { return len(it.ask.Result) + len(it.ask.Say) }

func (it *settleItem) token() store.Token { return it.call.Tokens[it.i] }

func (it *settleItem) finish(edit func(r *subscription.Settled)) {
	it.call.finish(it.i, edit)
}

// outlived reports whether the hold was alive at a moment that the store's clock had
// not passed: nobody but the token's worker can have ended it then.
func (it *settleItem) outlived(latest store.Millis) bool { return latest < it.until }

func (it *settleItem) refuse(err *problem.Error) {
	it.call.Refuse(it.i, err)
}

func refuseAll(items []settleItem, err *problem.Error) {
	for i := range items {
		items[i].refuse(err)
	}
}

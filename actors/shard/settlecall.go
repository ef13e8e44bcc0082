package shard

import (
	"time"

	"github.com/ddq-io/ddq/actors/agenda"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/store"
)

// SettleCall is a set of settlements that are answered together.
type SettleCall struct {
	Asked   []subscription.Settlement
	Tokens  []store.Token
	Results []subscription.Settled
	*Countdown
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
	edit(&it.call.Results[it.i])
	it.call.Finish(1)
}

// outlived reports whether the hold was alive at a moment that the store's clock had
// not passed: nobody but the token's worker can have ended it then.
func (it *settleItem) outlived(latest store.Millis) bool { return latest < it.until }

func (it *settleItem) refuse(err *problem.Error) {
	it.finish(func(r *subscription.Settled) { r.Err = err })
}

func refuseAll(items []settleItem, err *problem.Error) {
	for i := range items {
		items[i].refuse(err)
	}
}

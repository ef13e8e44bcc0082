package shard

import (
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
		c.Results[i] = subscription.Settled{ID: a.ID, Token: a.Token, Kind: a.Kind}
	}
	return c
}

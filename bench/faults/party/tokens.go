package party

import (
	"context"
	"time"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/bench/faults/plan"
	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/tap"
)

const (
	// tokenEvery is how often a producer takes tokens of a rate.
	tokenEvery = 700 * time.Millisecond
	// tokenShare is how many of the handlers of tasks under a rate take a token of it for
	// something else, one of so many.
	tokenShare = 6
	// tokenAhead is how long they wait for one.
	tokenAhead = 300 * time.Millisecond
	// noTokens is the reason of a call that got none.
	noTokens = "NO_TOKENS"
)

// takeTokens takes tokens of a rate by which tasks are delivered, too, once or a few at a
// time, and writes down what it was told.
func takeTokens(ctx context.Context, c *client.Client, log *ledger.Writer, dice uint64) {
	n, key := 1, plan.Customer(dice/6)
	if dice%3 == 0 { // of the topic's rate, which is higher
		n, key = 1+int(dice/3%2), ""
	}
	call := ledger.Event{Kind: ledger.Call, Op: ledger.Acquire, Call: log.NextCall(), Topic: plan.Rated, Key: key, Tokens: n}
	log.Append(call)
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	got, err := c.TryAcquireTokens(ctx, plan.Rated, key, n, tokenAhead)
	answer := ledger.Event{Kind: ledger.Answer, Op: ledger.Acquire, Call: call.Call, Topic: plan.Rated, Key: key, Result: ledger.OK, DelayMS: got.Wait.Milliseconds()}
	switch {
	case err != nil:
		answer.Result, answer.Reason = tap.Outcome(err)
	case !got.Granted:
		answer.Result, answer.Reason = ledger.Refused, noTokens
	}
	log.Append(answer)
}

// takeOften takes tokens for as long as tasks are sent.
func (p *producer) takeOften(ctx context.Context) {
	for at := tokenEvery; at < p.c.For; at += tokenEvery {
		p.when(ctx, at, func() { takeTokens(ctx, p.client, p.log, plan.Draw(p.c.Seed, p.c.Name+at.String(), "tokens")) })
	}
}

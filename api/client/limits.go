package client

import (
	"context"
	"time"

	"github.com/ddq-io/ddq/api/client/internal/call"
	"github.com/ddq-io/ddq/api/client/internal/wire"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// Rate is how fast tasks of a topic or of a key are delivered. The zero Rate is no
// limit.
type Rate struct {
	Kind   RateKind
	Count  int           // in a period: up to 1,000,000
	Period time.Duration // 1ms to 24h
	Burst  int           // of a token bucket, how many may go at once after a rest; 0 means 1
}

// RateKind is how a rate counts.
type RateKind int32

// The kinds of rates.
const (
	TokenBucket   RateKind = 0                                                 // Count in a period on average, evenly, and Burst after a rest
	SlidingWindow RateKind = RateKind(ddqv1.RateKind_RATE_KIND_SLIDING_WINDOW) // at most Count in any period
)

// OverLimit is what becomes of a task that is due when a rate has no token left.
type OverLimit int32

// What may become of it.
const (
	OverLimitWait       OverLimit = OverLimit(ddqv1.OverLimit_OVER_LIMIT_WAIT)        // it waits; the default
	OverLimitDeadLetter OverLimit = OverLimit(ddqv1.OverLimit_OVER_LIMIT_DEAD_LETTER) // it is dead-lettered
)

// String returns the word of the command line.
func (o OverLimit) String() string { return wire.Word(ddqv1.OverLimit(o).String(), "OVER_LIMIT_") }

// WaitingFor is what a task that is due lacks.
type WaitingFor int32

// What it may lack.
const (
	WaitingForNothing     WaitingFor = WaitingFor(ddqv1.WaitingFor_WAITING_FOR_UNSPECIFIED) // but a worker
	WaitingForRate        WaitingFor = WaitingFor(ddqv1.WaitingFor_WAITING_FOR_RATE)
	WaitingForConcurrency WaitingFor = WaitingFor(ddqv1.WaitingFor_WAITING_FOR_CONCURRENCY)
	WaitingForOrder       WaitingFor = WaitingFor(ddqv1.WaitingFor_WAITING_FOR_ORDER) // for another task of its ordering key
)

// String returns it in lower case, and "" for nothing.
func (w WaitingFor) String() string {
	return wire.WordOr(ddqv1.WaitingFor(w).String(), "WAITING_FOR_", "")
}

// TokenGrant is the outcome of TryAcquireTokens.
type TokenGrant struct {
	Granted bool
	Wait    time.Duration // granted: before the tokens may be used; else before asking again
}

// TryAcquireTokens takes n tokens of a topic's rate, or with a key of the rate of that
// key, all or none: those that tasks are delivered by, for what a handler calls by
// itself. Tokens to come are taken up to maxWait ahead, a minute at most. One that is
// not used half a second after it came is to be left.
func (c *Tasks) TryAcquireTokens(ctx context.Context, topic, key string, n int, maxWait time.Duration) (got TokenGrant, err error) {
	request := &ddqv1.AcquireTokensRequest{Topic: topic, Key: key, Tokens: wire.Int32(n), MaxWaitMs: wire.Millis(maxWait)}
	reply, err := call.Answer(ctx, c.do, call.Once, c.queue.AcquireTokens, request)
	return TokenGrant{reply.GetGranted(), wire.Duration(reply.GetWaitMs())}, err
}

// tokenWait is how far ahead AcquireTokens takes tokens.
const tokenWait = 10 * time.Second

// AcquireTokens is TryAcquireTokens that returns once the tokens may be used, or ctx ends.
func (c *Tasks) AcquireTokens(ctx context.Context, topic, key string, n int) error {
	for {
		got, err := c.TryAcquireTokens(ctx, topic, key, n, tokenWait)
		if err != nil {
			return err
		}
		pause := time.NewTimer(got.Wait)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return ctx.Err()
		}
		if got.Granted {
			return nil
		}
	}
}

// limits adds the limits that are set.
func (p *Policy) limits(w *ddqv1.TopicPolicy) {
	w.Rate, w.KeyRate = p.Rate.wire(), p.KeyRate.wire()
	w.Concurrency, w.KeyConcurrency = wire.Int32Ptr(p.Concurrency), wire.Int32Ptr(p.KeyConcurrency)
	if p.OverLimit != nil {
		w.OverLimit = ddqv1.OverLimit(*p.OverLimit)
	}
}

func (r *Rate) wire() *ddqv1.RateLimit {
	if r == nil {
		return nil
	}
	return &ddqv1.RateLimit{
		Kind: ddqv1.RateKind(r.Kind), Count: wire.Int32(r.Count), PeriodMs: wire.Millis(r.Period), Burst: wire.Int32(r.Burst),
	}
}

func rateFrom(r *ddqv1.RateLimit) *Rate {
	rate := &Rate{Count: int(r.GetCount()), Period: wire.Duration(r.GetPeriodMs()), Burst: int(r.GetBurst())}
	if r.GetKind() == ddqv1.RateKind_RATE_KIND_SLIDING_WINDOW {
		rate.Kind = SlidingWindow
	}
	return rate
}

// limitsFrom reads the limits of a topic.
func (p *Policy) limitsFrom(w *ddqv1.TopicPolicy) {
	p.Rate, p.KeyRate = rateFrom(w.GetRate()), rateFrom(w.GetKeyRate())
	p.Concurrency, p.KeyConcurrency = new(int(w.GetConcurrency())), new(int(w.GetKeyConcurrency()))
	p.OverLimit = new(OverLimit(w.GetOverLimit()))
}

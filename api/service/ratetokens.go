package service

import (
	"cmp"
	"context"
	"time"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/service/text"
	"github.com/ddq-io/ddq/store"
)

// maxTokenWait is the farthest ahead that tokens are taken for a caller.
const maxTokenWait = store.MaxAhead

// TokenGrant is the outcome of AcquireTokens.
type TokenGrant struct {
	Granted bool
	Wait    time.Duration // granted: before they may be used; else before asking again
}

// AcquireTokens takes n tokens, 0 meaning 1, of a topic's rate, or with a key of the
// rate of that key, all or none, no farther ahead than wait.
func (s *Topics) AcquireTokens(ctx context.Context, topic, key string, n int, wait time.Duration) (TokenGrant, error) {
	if err := text.CheckKey("key", key); err != nil {
		return TokenGrant{}, err
	}
	ref, e := s.node.Topics().Open(ctx, topic, false)
	if e != nil {
		return TokenGrant{}, e
	}
	limits := ref.Config().Limits
	rate, field := limits.Rate, "rate"
	if key != "" {
		rate, field = limits.KeyRate, "key_rate"
	}
	n = cmp.Or(n, 1)
	switch {
	case !rate.Limited():
		return TokenGrant{}, &problem.Error{Kind: problem.Precondition, Reason: "NO_RATE", Field: "topic", Message: "the topic has no " + field}
	case n < 1 || n > min(rate.Most(), store.MaxReserve):
		return TokenGrant{}, problem.BadField("tokens", "OUT_OF_RANGE_FIELD", "tokens must be 1 to %d, which is what the rate has at once", min(rate.Most(), store.MaxReserve))
	case wait < 0 || wait > maxTokenWait:
		return TokenGrant{}, problem.BadField("max_wait_ms", "OUT_OF_RANGE_FIELD", "max_wait_ms must be 0 to %d", maxTokenWait.Milliseconds())
	}
	got, err := s.store.Reserve(ctx, []store.Reservation{{
		Key: store.LimitKey{Topic: topic, Key: key}, Rate: rate, N: n, Ahead: wait, Whole: true,
	}})
	if err != nil {
		return TokenGrant{}, problem.AsError(err)
	}
	tokens := got[0]
	if tokens.N == 0 {
		return TokenGrant{Wait: max(0, tokens.First.Sub(tokens.Now)-wait)}, nil
	}
	return TokenGrant{Granted: true, Wait: tokens.At(n-1, rate).Sub(tokens.Now)}, nil
}

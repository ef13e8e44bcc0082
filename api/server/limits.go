package server

import (
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/wire"
	"github.com/ddq-io/ddq/store"
)

// limitsOf converts the rates and caps that are set.
func limitsOf(c *service.TopicChange, p *ddqv1.TopicPolicy) (e *problem.Error) {
	if c.Rate, e = rateOf(p.Rate, "policy.rate"); e != nil {
		return e
	}
	if c.KeyRate, e = rateOf(p.KeyRate, "policy.key_rate"); e != nil {
		return e
	}
	c.Concurrency, c.KeyConcurrency = intOrNil(p.Concurrency), intOrNil(p.KeyConcurrency)
	switch p.OverLimit {
	case ddqv1.OverLimit_OVER_LIMIT_UNSPECIFIED:
	case ddqv1.OverLimit_OVER_LIMIT_WAIT, ddqv1.OverLimit_OVER_LIMIT_DEAD_LETTER:
		c.OverLimitDead = new(p.OverLimit == ddqv1.OverLimit_OVER_LIMIT_DEAD_LETTER)
	default:
		return wire.Invalid("BAD_ENUM", "policy.over_limit", "has no value %d", p.OverLimit)
	}
	return nil
}

func rateOf(r *ddqv1.RateLimit, field string) (*store.Rate, *problem.Error) {
	if r == nil {
		return nil, nil
	}
	rate := &store.Rate{Count: int(r.Count), Burst: int(r.Burst)}
	switch r.Kind {
	case ddqv1.RateKind_RATE_KIND_UNSPECIFIED, ddqv1.RateKind_RATE_KIND_TOKEN_BUCKET:
	case ddqv1.RateKind_RATE_KIND_SLIDING_WINDOW:
		rate.Kind = store.SlidingWindow
	default:
		return nil, wire.Invalid("BAD_ENUM", field+".kind", "has no value %d", r.Kind)
	}
	var e *problem.Error
	rate.Period, e = wire.Span(r.PeriodMs, field+".period_ms")
	return rate, e
}

func limitsWire(p *ddqv1.TopicPolicy, l *store.TopicLimits) {
	p.Rate, p.KeyRate = rateWire(l.Rate), rateWire(l.KeyRate)
	p.Concurrency, p.KeyConcurrency = new(int32(l.Concurrency)), new(int32(l.KeyConcurrency))
	p.OverLimit = ddqv1.OverLimit_OVER_LIMIT_WAIT
	if l.DeadLetter {
		p.OverLimit = ddqv1.OverLimit_OVER_LIMIT_DEAD_LETTER
	}
}

// rateWire leaves out what is no limit.
func rateWire(r store.Rate) *ddqv1.RateLimit {
	if !r.Limited() {
		return nil
	}
	return &ddqv1.RateLimit{
		Kind: wire.Enum(rateToWire[:], r.Kind), Count: int32(r.Count), PeriodMs: store.CeilMillis(r.Period), Burst: int32(r.Burst),
	}
}

func intOrNil[N int32 | int64](n *N) *int {
	if n == nil {
		return nil
	}
	i := int(*n)
	return &i
}

package record

import "github.com/ddq-io/ddq/store"

func encodeLimits(l store.TopicLimits) *Limits {
	if l == (store.TopicLimits{}) {
		return nil
	}
	return &Limits{
		Rate:           encodeRate(l.Rate),
		KeyRate:        encodeRate(l.KeyRate),
		Concurrency:    int32(l.Concurrency),
		KeyConcurrency: int32(l.KeyConcurrency),
		DeadLetter:     l.DeadLetter,
	}
}

func decodeLimits(l *Limits) store.TopicLimits {
	return store.TopicLimits{
		Rate:           decodeRate(l.GetRate()),
		KeyRate:        decodeRate(l.GetKeyRate()),
		Concurrency:    int(l.GetConcurrency()),
		KeyConcurrency: int(l.GetKeyConcurrency()),
		DeadLetter:     l.GetDeadLetter(),
	}
}

func encodeRate(r store.Rate) *Rate {
	if r == (store.Rate{}) {
		return nil
	}
	return &Rate{Kind: int32(r.Kind), Count: int32(r.Count), PeriodMs: r.Period.Milliseconds(), Burst: int32(r.Burst)}
}

func decodeRate(r *Rate) store.Rate {
	return store.Rate{
		Kind:   store.RateKind(r.GetKind()),
		Count:  int(r.GetCount()),
		Period: store.FromMillis(r.GetPeriodMs()),
		Burst:  int(r.GetBurst()),
	}
}

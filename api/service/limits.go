package service

import (
	"time"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/store"
)

// maxConcurrency is the highest cap.
const maxConcurrency = 100_000

// checkRate allows the zero rate, and gives a bucket its default burst of 1.
func checkRate(field string, r *store.Rate) *problem.Error {
	if r.Count == 0 {
		*r = store.Rate{}
		return nil
	}
	switch {
	case r.Count < 0 || r.Count > store.MaxRateCount:
		return problem.BadField(field+".count", "OUT_OF_RANGE_FIELD", "%s.count must be 0 to %d", field, store.MaxRateCount)
	case r.Period < store.MinRatePeriod || r.Period > store.MaxRatePeriod:
		return problem.BadField(field+".period_ms", "OUT_OF_RANGE_FIELD", "%s.period_ms must be %d to %d", field,
			store.MinRatePeriod.Milliseconds(), store.MaxRatePeriod.Milliseconds())
	case r.Kind > store.SlidingWindow:
		return problem.BadField(field+".kind", "BAD_ENUM", "%s.kind is not one of this version", field)
	case r.Kind == store.SlidingWindow && r.Burst != 0:
		return problem.BadField(field+".burst", "OUT_OF_RANGE_FIELD", "%s.burst must be 0 for a sliding window", field)
	case r.Burst < 0 || r.Burst > store.MaxBurst:
		return problem.BadField(field+".burst", "OUT_OF_RANGE_FIELD", "%s.burst must be 0 to %d", field, store.MaxBurst)
	}
	if r.Kind == store.TokenBucket {
		r.Burst = max(1, r.Burst)
	}
	r.Period = r.Period.Truncate(time.Millisecond)
	return nil
}

func checkCap(field string, most int) *problem.Error {
	if most < 0 || most > maxConcurrency {
		return problem.BadField(field, "OUT_OF_RANGE_FIELD", "%s must be 0 to %d", field, maxConcurrency)
	}
	return nil
}

package checker

import "github.com/ddq-io/ddq/bench/ledger"

// Tokens of a bucket may be used half a second late, and times are cut to milliseconds.
const (
	tokenLife = 500
	cut       = 1
)

// spent is how far the i-th of some holds is ahead of the rate of a bucket.
func spent(r *ledger.Rate, run []interval, i int) int64 {
	return int64(i)*r.PeriodMS - int64(r.Count)*run[i].from
}

// exceeded reports whether n holds in that many ms are too many.
func exceeded(r *ledger.Rate, n int, took int64) bool {
	if r.Window {
		return n > r.Count && took < r.PeriodMS-cut
	}
	return int64(n-max(1, r.Burst))*r.PeriodMS > int64(r.Count)*(took+tokenLife+cut)
}

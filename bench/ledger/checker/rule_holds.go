package checker

import (
	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/ledger/verdict"
)

// doubled looks for one hold that was handed out twice.
func doubled(t *task) {
	seen := map[string]bool{}
	for _, d := range t.deliveries {
		if seen[d.Token] {
			t.offend(verdict.Repeated, "attempt %d was delivered twice under one hold", d.Attempt)
			return
		}
		seen[d.Token] = true
	}
}

// overlaps looks for an attempt that came while the hold of an earlier one was alive.
func overlaps(t *task) {
	for _, a := range t.deliveries {
		for _, b := range t.deliveries {
			if a.loose || b.loose || a.Attempt >= b.Attempt || a.settledBefore(b.Mono) {
				continue
			}
			if end := t.until(a, b.Mono); b.Mono < end-millisecond {
				t.offend(verdict.Overlap, "attempt %d came %d ms before the hold of attempt %d was over", b.Attempt, (end-b.Mono)/millisecond, a.Attempt)
				return
			}
		}
	}
}

// attempts looks for numbers that came twice, or that are missing without a reason.
func attempts(t *task) {
	tokens := map[int]*delivery{}
	highest := 0
	for _, d := range t.deliveries {
		if d.loose {
			return
		}
		// A released attempt is not counted, so that its number comes again.
		if other := tokens[d.Attempt]; other != nil && !released(t.deliveries, d.Attempt) {
			t.offend(verdict.Repeated, "attempt %d was delivered under two holds", d.Attempt)
			return
		}
		tokens[d.Attempt] = d
		highest = max(highest, d.Attempt)
	}
	// Attempts that no worker saw ran out: each took the length of a hold, by the store's clock.
	hold, last := t.holds[t.topic], 0
	since := t.clock.Reached(t.earliest)
	for n := 1; n <= highest; n++ {
		d := tokens[n]
		if d == nil {
			continue
		}
		if missing := int64(n - last - 1); missing > 0 && d.Mono < t.clock.After(since, missing*(hold-1)*millisecond) {
			t.offend(verdict.Skipped, "attempt %d follows %d within %d ms, less than holds of %d ms take", n, last, (d.Mono-since)/millisecond, hold)
			return
		}
		last, since = n, t.granted(d)
	}
}

// released reports whether the worker gave an attempt back, or may have.
func released(deliveries []*delivery, attempt int) bool {
	for _, d := range deliveries {
		if d.Attempt != attempt {
			continue
		}
		for _, o := range d.settles {
			if o.Op == ledger.Release && o.may() {
				return true
			}
		}
	}
	return false
}

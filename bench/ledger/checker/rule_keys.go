package checker

import (
	"slices"

	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/ledger/verdict"
)

// keyed holds an idempotency key to its promise.
func keyed(t *task) {
	switch t.conflict() {
	case ledger.Return, ledger.Reject:
		if t.creations() < 2 {
			t.oneTask()
		}
	case ledger.Replace:
		if t.Audited {
			t.lastOne()
		}
	}
}

// oneTask: within its window all enqueues of a key name one task, which is that of the
// first of them.
func (t *task) oneTask() {
	var first *op
	unknown := false
	for _, o := range t.enqueues {
		switch {
		case o.result == ledger.OK && first != nil:
			t.offend(verdict.Twinned, "two enqueues were told that the key was free")
			return
		case o.result == ledger.OK:
			first = o
		}
		unknown = unknown || o.result == ledger.Unknown
	}
	for _, o := range t.enqueues {
		if taken := o.result == ledger.Already || o.result == ledger.Refused && o.answer.Reason == ledger.KeyTaken; taken && t.nobodyBefore(o) {
			t.offend(verdict.Wrong, "an enqueue was told that the key was taken, and nobody had it")
			return
		}
	}
	ids := t.ids()
	if len(ids) > 1 {
		t.offend(verdict.Twinned, "the tasks %s and %s have one key", ids[0], ids[1])
		return
	}
	for _, d := range t.deliveries {
		if first != nil && !unknown && d.Sum != first.Sum {
			t.offend(verdict.Garbled, "attempt %d has not the payload of the enqueue that got the key", d.Attempt)
			return
		}
	}
}

// nobodyBefore reports whether no other enqueue can have got the key before o was answered.
func (t *task) nobodyBefore(o *op) bool {
	return !slices.ContainsFunc(t.enqueues, func(other *op) bool {
		return other != o && (other.result == ledger.OK || other.result == ledger.Unknown) && other.Mono < o.to
	})
}

// lastOne: an enqueue that replaces is delivered, or one is that may have replaced it.
func (t *task) lastOne() {
	for _, o := range t.enqueues {
		if !o.did() {
			continue
		}
		sums := map[string]bool{o.Sum: true}
		for _, later := range t.enqueues {
			if later.may() && later.to > o.Mono {
				sums[later.Sum] = true
			}
		}
		got := slices.ContainsFunc(t.deliveries, func(d *delivery) bool { return sums[d.Sum] }) ||
			slices.ContainsFunc(t.allFound, func(f *ledger.Event) bool { return sums[f.Sum] })
		if !got {
			t.offend(verdict.Lost, "neither enqueue #%d nor a later one of the key was delivered", o.Call)
			return
		}
	}
}

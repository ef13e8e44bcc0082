package checker

import (
	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/ledger/verdict"
)

// The rules of edits. A task has version 1 when it is enqueued, and one more with every
// edit that was accepted; a delivery tells the version that it is of. Edits that are not
// answered, and those of many tasks at a time, may have made a version that nobody told.

// versions holds every version that was told to those before and after it.
func versions(t *task) {
	known := t.numbered()
	for i, o := range known {
		if i > 0 && known[i-1].answer.Version == o.answer.Version {
			t.offend(verdict.Wrong, "%s and %s both made version %d", known[i-1].Op, o.Op, o.answer.Version)
			return
		}
		if o.IfVersion != 0 && o.answer.Version != o.IfVersion+1 {
			t.offend(verdict.Wrong, "%s of version %d made version %d", o.Op, o.IfVersion, o.answer.Version)
			return
		}
		t.reachable(o.answer, string(o.Op))
	}
	for _, o := range t.edits {
		if o.result == ledger.Refused && o.answer.Reason == ledger.Mismatch {
			t.mismatch(o)
		}
	}
	for _, d := range t.deliveries {
		if !d.loose {
			t.reachable(d.Event, "a delivery")
			t.seen(d)
		}
	}
	if f := t.found; f != nil {
		t.reachable(f, "the store")
	}
}

// reachable complains of a version that e tells when the edits until then cannot have
// made it: there were too few, or one that was accepted before is not in it.
func (t *task) reachable(e *ledger.Event, who string) {
	if e.Version == 0 {
		return
	}
	most, least, repeated := int64(1), int64(1), false
	asked := e.Mono // by who told
	for _, o := range t.edits {
		if o.answer == e {
			asked = o.Mono
		}
	}
	if e.Kind == ledger.Delivered {
		asked = never // what it was at the hold, see seen
	}
	for _, o := range t.edits {
		if o.may() && o.Mono <= e.Mono {
			most++
		}
		repeated = repeated || o.Mono <= e.Mono && o.mayBeRepeated()
		if o.did() && o.to < asked && e.Kind != ledger.Delivered {
			least = max(least, o.answer.Version)
		}
	}
	switch {
	case e.Version > most && !repeated:
		t.offend(verdict.Wrong, "%s tells version %d, and there were %d edits at most", who, e.Version, most-1)
	case e.Version < least && e.Kind == ledger.Found:
		t.offend(verdict.Outdated, "version %d in the store at the end, though version %d was accepted", e.Version, least)
	case e.Version < least:
		t.offend(verdict.Wrong, "%s tells version %d after version %d was accepted", who, e.Version, least)
	}
}

// mismatch holds a refusal because of the version to the versions there were.
func (t *task) mismatch(o *op) {
	if o.IfVersion == 0 || o.answer.Version == o.IfVersion {
		t.offend(verdict.Wrong, "%s was refused because of its version, which was the one asked for", o.Op)
		return
	}
	t.reachable(o.answer, string(o.Op))
}

// seen holds the version of a delivery to the edits that were accepted: the hold was
// granted between its own edit and the next, so an edit that it does not show came when
// the hold was over, and one that it shows was asked for before.
func (t *task) seen(d *delivery) {
	if d.Version == 0 {
		return
	}
	for _, o := range t.edits {
		switch {
		case !o.did() || o.answer.Version == 0:
		case o.answer.Version <= d.Version && d.Mono < o.Mono:
			t.offend(verdict.Wrong, "attempt %d had version %d before the %s that made it", d.Attempt, d.Version, o.Op)
			return
		case o.answer.Version > d.Version && t.granted(d) > o.to:
			t.offend(verdict.Outdated, "attempt %d has version %d, though the %s to version %d had been accepted", d.Attempt, d.Version, o.Op, o.answer.Version)
			return
		case o.answer.Version > d.Version && !d.settledBefore(o.to) && t.until(d, o.Mono) > o.to:
			t.offend(verdict.Wrong, "%s to version %d was accepted while attempt %d was held", o.Op, o.answer.Version, d.Attempt)
			return
		}
	}
	for _, before := range t.deliveries {
		if !before.loose && before.Attempt < d.Attempt && before.Version > d.Version {
			t.offend(verdict.Outdated, "attempt %d has version %d after attempt %d had %d", d.Attempt, d.Version, before.Attempt, before.Version)
			return
		}
	}
}

// contents asks whether what was delivered, or lies in the store, is the payload of its
// version. It is not asked of a run that may have been made anew, see garbled.
func contents(t *task) {
	if t.made() && t.loose() {
		return
	}
	for _, d := range t.deliveries {
		if !d.loose && d.Version != 0 && !t.payloadsOf(d.Version)[d.Sum] {
			t.offend(verdict.Garbled, "attempt %d has not the payload of version %d", d.Attempt, d.Version)
			return
		}
	}
	if f := t.found; f != nil && f.Version != 0 && f.Sum != "" && !t.payloadsOf(f.Version)[f.Sum] {
		t.offend(verdict.Garbled, "not the payload of version %d is in the store at the end", f.Version)
	}
}

// payloadsOf are the payloads that a version may have: that of the last edit to it or
// to one before, and those of edits whose version nobody knows.
func (t *task) payloadsOf(version int64) map[string]bool {
	sums := map[string]bool{}
	last := int64(0)
	for _, o := range t.edits {
		switch {
		case o.Sum == "" || !o.may():
		case !o.did() || o.answer.Version == 0:
			sums[o.Sum] = true
		case o.answer.Version <= version && o.answer.Version > last:
			last = o.answer.Version
		}
	}
	for _, o := range t.edits {
		if last != 0 && o.did() && o.answer.Version == last {
			sums[o.Sum] = true
		}
	}
	if last == 0 {
		for _, o := range t.enqueues {
			sums[o.Sum] = sums[o.Sum] || o.may()
		}
	}
	return sums
}

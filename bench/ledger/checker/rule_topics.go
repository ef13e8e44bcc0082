package checker

import (
	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/ledger/verdict"
)

// topics checks what was changed of topics, one change after the other.
func topics(ev *evidence) {
	for name, changes := range ev.changes {
		ev.task(changes).configured()
		for i, o := range changes.edits {
			if o.Op == ledger.Pause && o.did() {
				paused(ev, name, o, changes.edits[i+1:])
			}
		}
	}
}

// configured: every change that was accepted raises the topic's version, and the last one
// is what the topic has in the end.
func (t *task) configured() {
	version, settings := int64(0), ""
	for _, o := range t.edits {
		switch {
		case o.did() && o.answer.Version <= version:
			t.offend(verdict.Wrong, "%s made version %d of the topic, after version %d", o.Op, o.answer.Version, version)
			return
		case o.did() && !t.mayBeUndone(o):
			version = o.answer.Version
		}
		switch {
		case o.Op != ledger.Configure || o.result == ledger.Refused:
		case o.did() && !t.mayBeUndone(o):
			settings = o.Settings
		default:
			settings = "" // nobody knows
		}
	}
	if f := t.found; f != nil && (f.Version < version || settings != "" && f.Settings != settings) {
		t.offend(verdict.Wrong, "the topic has version %d and %q, after version %d and %q", f.Version, f.Settings, version, settings)
	}
}

// paused complains of an attempt that began while deliveries were paused on all nodes. A
// fault before that, while the word gets round, puts it off until it is over.
func paused(ev *evidence, topic string, pause *op, later []*op) {
	if ev.mayBeUndone(pause) {
		return
	}
	from := pause.to + effective.Nanoseconds()
	for _, f := range ev.faults {
		if f.From < from && f.To > pause.Mono {
			if f.To == never {
				return
			}
			from = max(from, f.To+effective.Nanoseconds())
		}
	}
	to := int64(never)
	for _, o := range later {
		if o.Op == ledger.Resume {
			to = min(to, o.Mono)
		}
	}
	for _, s := range ev.stories {
		if s.topic != topic {
			continue
		}
		t := ev.task(s)
		for _, d := range s.deliveries {
			if !d.loose && t.granted(d) > from && d.Mono < to {
				t.offend(verdict.Paused, "attempt %d began while deliveries were paused", d.Attempt)
				return
			}
		}
	}
}

package checker

import (
	"slices"

	"github.com/ddq-io/ddq/bench/ledger"
)

// began is the earliest that the store says an attempt began, ms; 0 when it does not say. One that was released comes again under its number.
func (s *story) began(attempt int) int64 {
	if s.found == nil || s.creations() > 1 {
		return 0
	}
	first := int64(0)
	for _, a := range s.found.History {
		if a.Number == attempt && (first == 0 || a.Started < first) {
			first = a.Started
		}
	}
	return first
}

// repeatPause is the least time after which a server repeats a call to its store whose answer was lost.
const repeatPause = 10 * millisecond

// claimEnqueue takes the first enqueue that was answered "already" for the one that stored the task, when there is no other that can have
// before it was answered: the server repeated the call itself, after the store's answer was lost. Of those with an idempotency key it may be any.
// One that took the place of a dead letter, as a requeue does, stored none that was there before.
func (s *story) claimEnqueue() {
	for _, o := range s.enqueues {
		if o.result != ledger.Already {
			continue
		}
		if slices.ContainsFunc(s.enqueues, func(by *op) bool {
			return (by.result == ledger.OK && by.answer.Replaced != "dead" || by.result == ledger.Unknown) && by.Mono <= o.to
		}) {
			return
		}
		if o.result = ledger.OK; s.conflict() != "" {
			o.result = ledger.Unknown
		}
		return
	}
}

// creations is how many lives the task may have had: enqueues that stored it, or may have. A
// server may have repeated one of them itself after the task had come to its end: nothing is
// kept of an acked task that would tell the repeat, and a dead one gives way to it. One that
// nobody heard the end of it may be repeating still.
func (s *story) creations() (n int) {
	switch conflict := s.conflict(); {
	case s.made() && len(s.enqueues) > 0:
		return s.runLives()
	case conflict == ledger.Replace:
		return s.keyLives()
	case conflict != "" && !slices.ContainsFunc(s.enqueues, func(o *op) bool { return o.excused }):
		return min(1, s.keyLives())
	}
	repeated := 0
	for _, o := range s.enqueues {
		until := o.to
		switch o.result {
		case ledger.OK:
			n++
		case ledger.Unknown:
			n++
			until = never
		case ledger.Refused:
			continue
		}
		if until-o.Mono >= repeatPause && (s.endedBefore(until) || s.diedBefore(o, until)) {
			repeated = 1
		}
	}
	return n + repeated
}

// endedBefore reports whether the task was acked or deleted before a moment, or may
// have been.
func (s *story) endedBefore(moment int64) bool {
	for _, o := range s.removals {
		if o.may() && o.Mono < moment {
			return true
		}
	}
	for _, o := range s.settles {
		if o.Op == ledger.Ack && o.mayHaveEnded() && o.Mono < moment {
			return true
		}
	}
	return false
}

// mayHaveEnded reports whether an ack may have ended the task. One that was refused may
// have, too: the store's answer was lost, and the server's repeat met the next life.
func (o *op) mayHaveEnded() bool { return o.may() || o.to-o.Mono >= repeatPause }

// diedBefore reports whether the task of an enqueue had come to the dead letters before a moment,
// or may have: the answer says that it took the place of one; or none came, or one that may be to
// a repeat, and a worker gave the task up or had its last attempt.
func (s *story) diedBefore(o *op, moment int64) bool {
	if o.result == ledger.OK {
		return o.answer.Replaced == "dead"
	}
	for _, n := range s.settles {
		if n.Op == ledger.Nack && n.Final && n.may() && n.Mono < moment {
			return true
		}
	}
	return slices.ContainsFunc(s.deliveries, func(d *delivery) bool {
		return o.Attempts > 0 && d.Attempt >= o.Attempts && d.Mono < moment
	})
}

// conflict is what the enqueues of a key do when it is taken; empty for a task without
// one.
func (s *story) conflict() string {
	if len(s.enqueues) == 0 {
		return ""
	}
	return s.enqueues[0].Conflict
}

// keyLives is how many tasks a key may have had, more than one of them as 2. What was replaced may be of
// an enqueue whose repeat was told that the task is there already.
func (s *story) keyLives() (n int) {
	for _, o := range s.enqueues {
		switch {
		case o.did() && o.answer.Reason == replaced:
			return 2
		case o.result == ledger.OK || o.result == ledger.Unknown:
			n = min(2, n+1)
		}
	}
	return n
}

// ids are those of all tasks that the key is known to have had.
func (s *story) ids() (ids []string) {
	note := func(e *ledger.Event) {
		if e != nil && e.ID != "" && !slices.Contains(ids, e.ID) {
			ids = append(ids, e.ID)
		}
	}
	for _, o := range s.enqueues {
		note(o.answer)
	}
	for _, d := range s.deliveries {
		note(d.Event)
	}
	for _, f := range s.allFound {
		note(f)
	}
	return ids
}

// stored is the first enqueue that was answered OK, nil when none was.
func (s *story) stored() *op {
	var first *op
	for _, o := range s.enqueues {
		if o.did() && (first == nil || o.to < first.to) {
			first = o
		}
	}
	return first
}

// finisher is the first call that ended the task, or may have, nil when there is
// none.
func (s *story) finisher() (first *op) {
	for _, o := range slices.Concat(s.removals, s.settles) {
		ends := o.Op == ledger.Ack || slices.Contains(s.removals, o)
		if ends && o.may() && (first == nil || o.Mono < first.Mono) {
			first = o
		}
	}
	return first
}

package checker

import (
	"slices"

	"github.com/ddq-io/ddq/bench/ledger"
)

// A topic may be deleted with all its tasks, and made again by the next enqueue. For each of
// its tasks that is a removal: of those that were stored before for certain, of those whose
// enqueue was under way perhaps, of later ones not.

// dropped adds the deletions of its topic to what removed the task, or may have.
func (s *story) dropped(drops []*op) {
	for _, o := range drops {
		if o.Topic != s.topic || o.result == ledger.Refused || !s.mayBeStored(o.to) {
			continue
		}
		removal := *o
		if !s.storedBefore(o.Mono) {
			removal.result = ledger.Unknown
		}
		s.removals = append(s.removals, &removal)
		s.events = append(s.events, o.Event)
	}
}

// mayBeStored reports whether the task may have been stored before a moment.
func (s *story) mayBeStored(moment int64) bool {
	for _, o := range s.enqueues {
		if o.may() && o.Mono < moment {
			return true
		}
	}
	return false
}

// storedBefore reports whether every enqueue that may have stored the task was answered
// before a moment.
func (s *story) storedBefore(moment int64) bool {
	for _, o := range s.enqueues {
		if o.may() && (o.result == ledger.Unknown || o.to >= moment) {
			return false
		}
	}
	return true
}

// cancelled are the cancels that deleted the task, or may have.
func (s *story) cancelled() (removals []*op) {
	for _, o := range s.cancels {
		if o.Final && (o.result == ledger.Unknown || o.did() && o.answer.Outcome == dropped) {
			removals = append(removals, o)
		}
	}
	return removals
}

// deletes are the removals that are neither cancels nor those of a whole topic.
func (s *story) deletes() []*op {
	return slices.DeleteFunc(slices.Clone(s.removals), func(o *op) bool { return o.Op == ledger.Cancel || o.Op == ledger.Drop })
}

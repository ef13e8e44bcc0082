package ledger

// A topic may be deleted with all its tasks, and made again by the next enqueue. For each of
// its tasks that is a removal: of those that were stored before for certain, of those whose
// enqueue was under way perhaps, of later ones not.

// drop records the deletion of a topic.
func (h *History) drop(e *Event, calls map[uint64]*op) {
	if e.Kind == Call {
		o := &op{Event: e, result: Unknown, to: never}
		calls[e.Call], h.drops = o, append(h.drops, o)
		return
	}
	if o := calls[e.Call]; o != nil {
		o.answer, o.result, o.to = e, e.Result, e.Mono
		delete(calls, e.Call)
	}
}

// dropped adds the deletions of its topic to what removed the task, or may have.
func (s *story) dropped(drops []*op) {
	for _, o := range drops {
		if o.Topic != s.topic || o.result == Refused || !s.mayBeStored(o.to) {
			continue
		}
		removal := *o
		if !s.storedBefore(o.Mono) {
			removal.result = Unknown
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
		if o.may() && (o.result == Unknown || o.to >= moment) {
			return false
		}
	}
	return true
}

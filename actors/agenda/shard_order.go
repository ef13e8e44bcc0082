package agenda

import "github.com/ddq-io/ddq/store"

// Unheld learns why a task that left was not held: it goes back into the wheel when it
// is due later, waits when another one of its key is first, and is forgotten when it is
// gone. The news of Left may be of after that: if the task is not pending as they say, another
// hold finds out. It may be left to the store then, so the store is asked who is first of its key.
func (s *Shard) Unheld(now store.Millis, e store.Entry, r *store.HoldResult, news *store.Entry) {
	switch r.Status {
	case store.Behind:
		if s.owned {
			s.orders.Behind(e, r.Head)
		}
	case store.NotDue:
		s.orders.Early(e.ID)
		s.notDue(now, store.Entry{ID: e.ID, Due: r.Due, Traits: e.Traits})
		if news != nil && news.Due < r.Due {
			s.Pending(now, *news)
		}
	case store.LeftOut:
		s.Found(now, e)
	default:
		if news == nil && r.Status != store.WrongState {
			s.orders.Ended(e.ID)
			return
		}
		s.orders.Doubt(e.ID)
		if news != nil {
			s.Pending(now, *news)
		}
	}
}

// HoldEnded learns that a task is not held any more. If it is pending again, Pending
// follows in the same step.
func (s *Shard) HoldEnded(id string) { s.orders.Ended(id) }

// LookAtKey looks at an ordering key of which nobody told anything for a while, or, as the wheel
// was asked, at what was left out.
func (s *Shard) LookAtKey(key string) {
	if key == leftOut {
		s.owed = store.MaxDue // until Settle
		return
	}
	s.orders.TimeToLook(key, s.WithTopic)
}

// OrderFound learns the first tasks of an ordering key as the store has them; full: as
// many as were asked for.
func (s *Shard) OrderFound(now store.Millis, key string, first []store.Ordered, full bool) {
	s.orders.Found(key, first, full, now, s.WithTopic)
}

// OrderNotFound learns that the store could not be asked about an ordering key.
func (s *Shard) OrderNotFound(key string) { s.orders.NotFound(key) }

// settleOrders carries out what became of ordering keys.
func (s *Shard) settleOrders(now store.Millis) {
	o := &s.orders
	for !o.Idle() {
		o.Settle()
		out, later, from, asks, watch := o.Out, o.Later, o.From, o.Asks, o.Watch
		o.Out, o.Later, o.From, o.Asks, o.Watch = nil, nil, 0, nil, nil
		for _, e := range out {
			s.letOut(e)
		}
		s.WerePending(now, later...)
		if from != 0 {
			s.Lower(from)
		}
		for _, l := range watch {
			s.wheel.LookAt(l.Key, l.LookAt(now))
		}
		if len(asks) > 0 {
			s.effects.Ask = append(s.effects.Ask, asks)
		}
	}
}

// notDue puts a task back that the store did not hold because it is due later: it becomes
// ready when it is due, as asking ahead of that would be in vain again.
func (s *Shard) notDue(now store.Millis, e store.Entry) {
	if reach := s.reach(e, s.ahead.most); reach == 0 || e.Due > now+reach || s.WithTopic(e.ID) {
		s.Pending(now, e)
		return
	}
	s.unwait(e.ID)
	if s.owned && s.covers(now, e) {
		s.admit(now, e, 0)
	}
}

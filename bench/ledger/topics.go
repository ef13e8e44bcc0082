package ledger

import "time"

// effective is how long a change of a topic may take to be so on all nodes.
const effective = 2 * time.Second

// special reports whether a topic is one that makes its tasks wait.
func (e *Event) special() bool { return e.limited() || e.KeepMS != 0 }

// change records an event about a topic.
func (h *History) change(e *Event, calls map[uint64]*op) {
	s := h.changes[e.Topic]
	if s == nil {
		s = &story{topic: e.Topic}
		h.changes[e.Topic] = s
	}
	s.events = append(s.events, e)
	switch e.Kind {
	case Call:
		o := &op{Event: e, result: Unknown, to: never}
		calls[e.Call] = o
		s.edits = append(s.edits, o)
	case Answer:
		if o := calls[e.Call]; o != nil {
			o.answer, o.result, o.to = e, e.Result, e.Mono
		}
	case Found:
		s.found = e
	case Opened, Topic, Delivered, Fault, Healed, Clock, Audited, Watching, Told, Expired, Failed, Logged, Ordered:
	}
}

// topics checks what was changed of topics, one change after the other.
func (c *checker) topics() {
	for name, changes := range c.h.changes {
		c.s = changes
		c.configured(changes)
		for i, o := range changes.edits {
			if o.Op == Pause && o.did() {
				c.paused(name, o, changes.edits[i+1:])
			}
		}
	}
}

// configured: every change that was accepted raises the topic's version, and the last one
// is what the topic has in the end.
func (c *checker) configured(changes *story) {
	version, settings := int64(0), ""
	for _, o := range changes.edits {
		switch {
		case o.did() && o.answer.Version <= version:
			c.offend(Wrong, "%s made version %d of the topic, after version %d", o.Op, o.answer.Version, version)
			return
		case o.did() && !c.mayBeUndone(o):
			version = o.answer.Version
		}
		switch {
		case o.Op != Configure || o.result == Refused:
		case o.did() && !c.mayBeUndone(o):
			settings = o.Settings
		default:
			settings = "" // nobody knows
		}
	}
	if f := changes.found; f != nil && (f.Version < version || settings != "" && f.Settings != settings) {
		c.offend(Wrong, "the topic has version %d and %q, after version %d and %q", f.Version, f.Settings, version, settings)
	}
}

func (c *checker) mayBeUndone(o *op) bool {
	for _, x := range c.excused {
		if !x.tokens && o.to >= x.from && o.Mono <= x.to {
			return true
		}
	}
	return false
}

// paused complains of an attempt that began while deliveries were paused on all nodes. A
// fault before that, while the word gets round, puts it off until it is over.
func (c *checker) paused(topic string, pause *op, later []*op) {
	if c.mayBeUndone(pause) {
		return
	}
	from := pause.to + effective.Nanoseconds()
	for _, f := range c.h.faults {
		if f.from < from && f.to > pause.Mono {
			if f.to == never {
				return
			}
			from = max(from, f.to+effective.Nanoseconds())
		}
	}
	to := int64(never)
	for _, o := range later {
		if o.Op == Resume {
			to = min(to, o.Mono)
		}
	}
	for _, s := range c.h.stories {
		if s.topic != topic {
			continue
		}
		c.s, c.earliest = s, s.earliestDue(&c.h.clock)
		for _, d := range s.deliveries {
			if !d.loose && c.granted(d) > from && d.Mono < to {
				c.offend(Paused, "attempt %d began while deliveries were paused", d.Attempt)
				return
			}
		}
	}
}

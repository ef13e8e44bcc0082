package checker

import (
	"slices"

	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/ledger/verdict"
)

// verdict is what was found, with the figures of the run.
func (ev *evidence) verdict() *verdict.Verdict {
	v := &verdict.Verdict{
		Events: ev.Events, Clients: len(ev.Clients), Tasks: len(ev.stories), Told: ev.told, Audited: ev.Audited,
		Counts: map[verdict.Violation]int{}, Offences: ev.offences, Began: ev.wall,
	}
	for _, s := range ev.stories {
		count(v, s)
	}
	v.Count()
	v.Measure(ev.times())
	return v
}

// count adds a story to the figures.
func count(v *verdict.Verdict, s *story) {
	v.Deliveries += len(s.deliveries)
	if s.creations() > 1 {
		v.Ambiguous++
	}
	if s.found != nil && s.found.State == "dead" {
		v.Dead++
	}
	if s.made() { // its enqueue and its cancel nobody made
		return
	}
	for _, o := range slices.Concat(s.enqueues, s.deletes(), s.edits, s.settles, s.waits, s.cancels) {
		v.Calls++
		if o.result == ledger.Unknown {
			v.Unknown++
		}
		if o.Op != ledger.Enqueue && o.result == ledger.Refused {
			v.Refused++
		}
	}
}

// times are those of the run that its phases are made of.
func (h *History) times() *verdict.Run {
	r := &verdict.Run{From: h.from, To: h.to, Faults: h.faults}
	for _, s := range h.stories {
		if o := s.stored(); o != nil && !s.made() {
			r.Stored = append(r.Stored, verdict.Moment{Wanted: o.Mono, Got: o.to})
		}
		due, known := s.latestDue()
		if t := h.topics[s.topic]; t != nil && t.Special() {
			continue // made to wait
		}
		if !known || len(s.deliveries) == 0 {
			continue
		}
		first := s.deliveries[0].Event
		by := max(h.clock.Late(first, due), 0)
		r.Served = append(r.Served, verdict.Moment{Wanted: first.Mono - by, Got: first.Mono})
	}
	return r
}

package checker

import (
	"cmp"
	"slices"

	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/ledger/verdict"
)

// The rule of work that is left lying. A task is ready from when it is due, and its enqueue, its last edit or the end
// of its last attempt was answered, until its delivery was received. It has all that it needs when no other thing of its
// topic holds it up: no rate, no ordering key, no change of the topic, and less in the hands of workers than a cap allows. A
// worker has room while it has fewer tasks than it handles at a time. All of this together, without a break, for more than
// a second, away from faults, is an offence: of a machine that has time to spare. How busy it was say the tasks that
// became ready meanwhile: three of four waited no longer than a quarter of what is left beyond that second. Where a whole
// machine stands still they all wait, and nobody is accused.

const (
	beside = 1000 * millisecond   // how long a task may wait beside a worker with room
	slower = 4                    // and so often what others waited meanwhile
	enough = 20                   // others say how busy the machine was
	calm   = 15_000 * millisecond // behind a fault until who was away, and what was held, is back
)

// wait is the time from when an attempt could begin until its delivery was received.
type wait struct {
	*task
	*delivery
	span
}

// span is a part of the monotonic time.
type span struct{ from, to int64 }

func idle(ev *evidence) {
	if ev.clock.WasSet() {
		return
	}
	waits, hands := ev.readyTimes(), ev.hands()
	for _, w := range waits {
		topic := ev.topics[w.story.topic]
		if w.to-w.from <= beside || ev.isTroubled(w.span, topic.Limited()) {
			continue
		}
		usual, known := usually(waits, w.span)
		most := beside + slower*usual
		if !known || w.to-w.from <= most {
			continue
		}
		if alone := hands.longest(w, topic); alone > most {
			w.offend(verdict.Idle, "attempt %d waited %d ms beside a worker with room, and others that came meanwhile %d ms", w.Attempt, alone/millisecond, usual/millisecond)
		}
	}
}

// readyTimes are the waits of all attempts of which both ends are known, in the order in which they begin.
func (ev *evidence) readyTimes() (all []wait) {
	for _, s := range ev.stories {
		topic, changed := ev.topics[s.topic], ev.changes[s.topic] != nil && len(ev.changes[s.topic].edits) > 0
		if topic == nil || changed || topic.Ageing > 0 || topic.Rate != nil || topic.KeyRate != nil || topic.Shared > 0 || s.made() || s.creations() != 1 || s.conflict() != "" || s.orderingKey() != "" {
			continue
		}
		t := ev.task(s)
		for i, d := range s.deliveries {
			if from, known := t.readyFor(i); known && from < d.Mono {
				all = append(all, wait{t, d, span{from, d.Mono}})
			}
		}
	}
	slices.SortFunc(all, func(a, b wait) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.story.id, b.story.id)) })
	return all
}

// readyFor is when the attempt of a delivery could begin at the latest. False: nobody knows, as somebody was at the task.
func (t *task) readyFor(i int) (from int64, known bool) {
	d := t.deliveries[i]
	stored := t.stored()
	if d.loose || d.Due == 0 || stored == nil || i == 0 && d.Attempt != 1 {
		return 0, false
	}
	from = max(stored.to, d.Mono-max(t.clock.Late(d.Event, d.Due), 0))
	if i > 0 {
		before := t.deliveries[i-1]
		ended := slices.IndexFunc(before.settles, func(o *op) bool { return o.Op != ledger.Extend && o.did() })
		if before.loose || ended < 0 || d.Attempt != before.Attempt+1 { // else somebody had it of whom nobody heard
			return 0, false
		}
		from = max(from, before.settles[ended].to)
	}
	for _, o := range slices.Concat(t.edits, t.removals, t.cancels) {
		switch {
		case o.Mono > d.Mono:
		case o.to > d.Mono:
			return 0, false
		default:
			from = max(from, o.to)
		}
	}
	return from, true
}

// isTroubled reports whether a fault touches a time. What a worker has that nobody heard of any more has a place under a cap.
func (ev *evidence) isTroubled(in span, capped bool) bool {
	return slices.ContainsFunc(ev.faults, func(f verdict.Fault) bool {
		return (capped || !slices.Contains(ev.prompt, f.Name)) && f.From <= in.to && (f.To == never || f.To+calm >= in.from)
	})
}

// usually is what three of four that became ready in a time waited at most.
func usually(waits []wait, in span) (most int64, known bool) {
	first, _ := slices.BinarySearchFunc(waits, in.from, func(w wait, from int64) int { return cmp.Compare(w.from, from) })
	var took []int64
	for _, w := range waits[first:] {
		if w.from >= in.to {
			break
		}
		if w.span != in {
			took = append(took, w.to-w.from)
		}
	}
	if len(took) < enough {
		return 0, false
	}
	slices.Sort(took)
	return took[len(took)*3/4], true
}

// hands are the tasks that workers have, by topic.
type hands map[string]*held

type held struct {
	all     []span
	byKey   map[string][]span
	workers map[string]*worker
}

// worker is one of a topic.
type worker struct {
	room int
	seen span // from its first delivery to the last that is known of it
	has  []span
}

// hands are those of all workers that said how many tasks they handle at a time. A task is in a hand until the answer to its
// settlement is there, or until it was delivered again.
func (ev *evidence) hands() hands {
	all := hands{}
	for topic, workers := range ev.workers {
		h := &held{byKey: map[string][]span{}, workers: map[string]*worker{}}
		for _, e := range workers {
			h.workers[e.Client] = &worker{room: e.Cap, seen: span{never, 0}}
		}
		all[topic] = h
	}
	for _, s := range ev.stories {
		h := all[s.topic]
		if h == nil {
			continue
		}
		for i, d := range s.deliveries {
			in := span{d.Mono, never}
			if i+1 < len(s.deliveries) {
				in.to = s.deliveries[i+1].Mono
			}
			last := d.Mono
			for _, o := range d.settles {
				if o.answer != nil {
					last = max(last, o.to)
				}
				if o.Op != ledger.Extend && o.did() {
					in.to = min(in.to, o.to)
				}
			}
			h.all, h.byKey[s.key()] = append(h.all, in), append(h.byKey[s.key()], in)
			if w := h.workers[d.Client]; w != nil {
				w.has, w.seen = append(w.has, in), span{min(w.seen.from, d.Mono), max(w.seen.to, last)}
			}
		}
	}
	return all
}

// longest is how long without a break, at most, a wait had a worker with room beside it, and the caps of its topic too.
func (all hands) longest(w wait, topic *ledger.Event) (most int64) {
	h := all[w.story.topic]
	if h == nil {
		return 0
	}
	for _, by := range h.workers {
		if by.seen.from > w.from || by.seen.to < w.to {
			continue
		}
		for _, free := range fewer(by.has, by.room, w.span) {
			for _, free := range fewer(h.all, cmp.Or(topic.Cap, len(h.all)+1), free) {
				keyed := h.byKey[w.key()]
				for _, free := range fewer(keyed, cmp.Or(topic.KeyCap, len(keyed)+1), free) {
					most = max(most, free.to-free.from)
				}
			}
		}
	}
	return most
}

// fewer returns the parts of a time in which fewer than some of all last.
func fewer(all []span, than int, in span) (parts []span) {
	type change struct {
		at int64
		by int
	}
	var changes []change
	for _, s := range all {
		if s.from < in.to && s.to > in.from && s.to > s.from {
			changes = append(changes, change{max(s.from, in.from), 1}, change{min(s.to, in.to), -1})
		}
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(b.by, a.by)) })
	n, since := 0, in.from
	for _, c := range changes {
		if n < than && n+c.by >= than && c.at > since {
			parts = append(parts, span{since, c.at})
		}
		if n >= than && n+c.by < than {
			since = c.at
		}
		n += c.by
	}
	if n < than && in.to > since {
		parts = append(parts, span{since, in.to})
	}
	return parts
}

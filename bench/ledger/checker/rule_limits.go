package checker

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/ledger/verdict"
)

// The rules of limits, which are about all tasks of a topic, or of a key of it, or of a namespace.
//
// A hold is seen twice. From the worker's side it lasts from when the delivery was
// received until the worker asked to settle it, or until the earliest moment at which it can have run
// out. In the store's own books, which the audit reads, it lasts from the millisecond after the
// attempt began until the one in which it ended, or until what was left of the hold when it
// was sent would have been over. Either is shorter than the hold was, so that what overlaps did so.

// limits checks every topic that has some.
func limits(ev *evidence) {
	byTopic := map[string]map[string]*books{} // and key
	for _, s := range ev.stories {
		if t := ev.topics[s.topic]; t == nil || !t.Limited() {
			continue
		}
		if byTopic[s.topic] == nil {
			byTopic[s.topic] = map[string]*books{}
		}
		key := s.key()
		if byTopic[s.topic][key] == nil {
			byTopic[s.topic][key] = &books{}
		}
		byTopic[s.topic][key].enter(ev.task(s))
	}
	shared := map[string]*books{} // by namespace
	for name, keys := range byTopic {
		t, all := ev.topics[name], &books{}
		for key, b := range keys {
			all.inHand, all.booked = append(all.inHand, b.inHand...), append(all.booked, b.booked...)
			if key == "" {
				continue
			}
			b.atMost(t.KeyCap, "of its key")
			inTime(ev, b, t.KeyRate, "its key's rate")
		}
		all.atMost(t.Cap, "of its topic")
		inTime(ev, all, t.Rate, "its topic's rate")
		if t.Shared > 0 {
			together := shared[namespaceOf(name)]
			if together == nil {
				together = &books{}
				shared[namespaceOf(name)] = together
			}
			together.inHand, together.booked = append(together.inHand, all.inHand...), append(together.booked, all.booked...)
			together.most = t.Shared
		}
	}
	for _, b := range shared {
		b.atMost(b.most, "of its namespace")
	}
}

// namespaceOf is the namespace of a topic by its full name; empty: that of all who name none.
func namespaceOf(topic string) string { return topic[:max(0, strings.IndexByte(topic, '/'))] }

// inTime complains when more holds began in some time than a rate lets through: of a
// bucket more than burst + rate x (time + half a second), in a window more than its count.
func inTime(ev *evidence, b *books, r *ledger.Rate, what string) {
	if r == nil {
		return
	}
	slices.SortFunc(b.booked, func(a, b interval) int { return cmp.Compare(a.from, b.from) })
	var run []interval // between faults that may have lost tokens
	lowest := 0        // of run: since when there is the least room
	for _, x := range b.booked {
		if len(run) > 0 && ev.tokensLost(run[len(run)-1].from, x.from) {
			run, lowest = nil, 0
		}
		run = append(run, x)
		if last := len(run) - 1; r.Ahead(last, x.from) < r.Ahead(lowest, run[lowest].from) {
			lowest = last
		}
		first := lowest
		if r.Window {
			first = max(0, len(run)-1-r.Count)
		}
		if n, took := len(run)-first, x.from-run[first].from; r.Exceeded(n, took) {
			x.offend(verdict.Rushed, "attempt %d is the last of %d within %d ms, which is above %s", x.attempt, n, took, what)
			return
		}
	}
}

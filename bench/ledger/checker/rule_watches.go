package checker

import (
	"cmp"
	"maps"
	"slices"

	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/ledger/verdict"
)

// The rules of watches. Several processes may have been one watch, one after the other,
// each behind the cursor that the one before wrote down last: together they were told what is
// in the log, in its order, without a gap and without a repetition.

// watch is what the processes of one watch were told.
type watch struct {
	*evidence
	name string
}

// watches checks every watch of a topic whose log was read.
func watches(ev *evidence) {
	for _, name := range slices.Sorted(maps.Keys(ev.watches)) {
		w, events := &watch{ev, name}, ev.watches[name]
		told, tag := w.followed(events)
		ev.told += len(told)
		switch log := ev.logs[events[0].Topic]; {
		case upToMarker(log) != nil:
			w.compare(told, tagged(log, tag))
		case ev.Audited:
			w.offend(events[:1], verdict.Missed, "the log was read, and its end was not there")
		}
	}
}

// followed are the changes that a watch was told since it began for the last time, and
// the attribute that it looked for. It complains of gaps that cannot be.
func (w *watch) followed(events []*ledger.Event) (told []*ledger.Event, tag string) {
	for _, e := range events {
		switch e.Kind {
		case ledger.Watching:
			tag = e.Tag
		case ledger.Told:
			told = append(told, e)
		case ledger.Expired:
			if !slices.ContainsFunc(w.excused, func(x excuse) bool { return !x.tokens && x.from <= e.Mono }) {
				w.offend([]*ledger.Event{e}, verdict.Missed, "the watch was told that its cursor had expired")
			}
			told = nil
		case ledger.Failed:
			w.offend([]*ledger.Event{e}, verdict.Wrong, "the watch ended: %s", e.Reason)
		}
	}
	return told, tag
}

// offend complains of what some events show.
func (w *watch) offend(shown []*ledger.Event, v verdict.Violation, why string, args ...any) {
	w.evidence.offend(v, shown[0].Topic, "watch: "+w.name, shown, why, args...)
}

// compare holds what a watch was told to the log, each shard by itself.
func (w *watch) compare(told, log []*ledger.Event) {
	got, logged := byShard(told), byShard(log)
	for _, shard := range slices.Sorted(maps.Keys(logged)) {
		g, want := got[shard], upToMarker(logged[shard])
		if w.mayUndo() {
			if g, want = w.afterwards(g, want); len(g) == 0 {
				continue
			}
		}
		if !w.same(g, want) {
			return
		}
	}
	for shard, g := range got {
		if logged[shard] == nil && !w.mayUndo() {
			w.offend(g[:1], verdict.Mistold, "told of shard %d, in whose log there is nothing", shard)
		}
	}
}

// afterwards is what was told once no fault could undo it any more, and what the log has
// from there on. What was lost with a fault, and what got its positions before the
// watcher came back, nobody can say.
func (w *watch) afterwards(told, log []*ledger.Event) (g, want []*ledger.Event) {
	over := int64(0)
	for _, x := range w.excused {
		if !x.tokens {
			over = max(over, x.to)
		}
	}
	i := slices.IndexFunc(told, func(e *ledger.Event) bool { return over != never && w.clock.Reached(e.Change.At/1000) > over })
	if i < 0 {
		return nil, nil
	}
	from, _ := slices.BinarySearchFunc(log, told[i].Change.Position, func(e *ledger.Event, p int64) int { return cmp.Compare(e.Change.Position, p) })
	return told[i:], log[from:]
}

// same reports whether what was told of a shard is what its log has.
func (w *watch) same(told, log []*ledger.Event) bool {
	for i, want := range log {
		if i == len(told) {
			w.offend([]*ledger.Event{want}, verdict.Missed, "the watch was not told of position %d of shard %d, the first of %d", want.Change.Position, want.Change.Shard, len(log)-i)
			return false
		}
		got := told[i]
		shown := []*ledger.Event{want, got}
		switch g, x := got.Change, want.Change; {
		case i > 0 && g.Position <= told[i-1].Change.Position:
			w.offend(shown, verdict.Mistold, "the watch was told position %d of shard %d after %d", g.Position, g.Shard, told[i-1].Change.Position)
		case g.Position > x.Position:
			w.offend(shown, verdict.Missed, "the watch was told position %d of shard %d, and not %d before it", g.Position, g.Shard, x.Position)
		case g.Position < x.Position:
			w.offend(shown, verdict.Mistold, "the watch was told position %d of shard %d, which is not for it", g.Position, g.Shard)
		case *g != *x || got.Task != want.Task:
			w.offend(shown, verdict.Mistold, "the watch was told another thing at position %d of shard %d than the log has", g.Position, g.Shard)
		default:
			continue
		}
		return false
	}
	return true
}

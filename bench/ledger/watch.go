package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// The rules of watches. Several processes may have been one watch, one after the other,
// each behind the cursor that the one before wrote down last: together they were told what is
// in the log, in its order, without a gap and without a repetition.

// Cursors returns the last cursor of each watch that a client was, by name; an empty one
// of a watch that has to begin anew. A client without a ledger was none.
func Cursors(dir, client string) (map[string]string, error) {
	events, err := readFile(filepath.Join(dir, client+Extension))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	cursors := map[string]string{}
	for _, e := range events {
		switch e.Kind {
		case Watching, Told:
			cursors[e.Watch] = cmp.Or(e.Cursor, cursors[e.Watch])
		case Expired:
			cursors[e.Watch] = ""
		}
	}
	return cursors, nil
}

// watches checks every watch of a topic whose log was read.
func (c *checker) watches() {
	for _, name := range slices.Sorted(maps.Keys(c.h.watches)) {
		events := c.h.watches[name]
		c.s = &story{topic: events[0].Topic, id: "watch: " + name, events: events[:1]}
		told, tag := c.followed(events)
		c.verdict.Told += len(told)
		switch log := c.h.logs[events[0].Topic]; {
		case upToMarker(log) != nil:
			c.compare(told, tagged(log, tag))
		case c.h.Audited:
			c.witness(events[0], Missed, "the log was read, and its end was not there")
		}
	}
}

// followed are the changes that a watch was told since it began for the last time, and
// the attribute that it looked for. It complains of gaps that cannot be.
func (c *checker) followed(events []*Event) (told []*Event, tag string) {
	for _, e := range events {
		switch e.Kind {
		case Watching:
			tag = e.Tag
		case Told:
			told = append(told, e)
		case Expired:
			if !slices.ContainsFunc(c.excused, func(x excuse) bool { return !x.tokens && x.from <= e.Mono }) {
				c.witness(e, Missed, "the watch was told that its cursor had expired")
			}
			told = nil
		case Failed:
			c.witness(e, Wrong, "the watch ended: %s", e.Reason)
		}
	}
	return told, tag
}

// witness complains of an event.
func (c *checker) witness(e *Event, v Violation, why string, args ...any) {
	c.s.events = []*Event{e}
	c.offend(v, why, args...)
}

func tagged(log []*Event, tag string) []*Event {
	if tag == "" {
		return log
	}
	return slices.DeleteFunc(slices.Clone(log), func(e *Event) bool { return e.Change.Tag != tag })
}

// compare holds what a watch was told to the log, each shard by itself.
func (c *checker) compare(told, log []*Event) {
	got, want := byShard(told), byShard(log)
	for _, shard := range slices.Sorted(maps.Keys(want)) {
		g, w := got[shard], upToMarker(want[shard])
		if c.mayUndo() {
			if g, w = c.afterwards(g, w); len(g) == 0 {
				continue
			}
		}
		if !c.same(g, w) {
			return
		}
	}
	for shard, g := range got {
		if want[shard] == nil && !c.mayUndo() {
			c.witness(g[0], Mistold, "told of shard %d, in whose log there is nothing", shard)
		}
	}
}

// mayUndo reports whether a fault may have undone what was answered.
func (c *checker) mayUndo() bool {
	return slices.ContainsFunc(c.excused, func(x excuse) bool { return !x.tokens })
}

// upToMarker cuts off what came after the watchers were told to end.
func upToMarker(log []*Event) []*Event {
	for i := len(log) - 1; i >= 0; i-- {
		if strings.HasPrefix(log[i].Task, Marker) {
			return log[:i+1]
		}
	}
	return nil
}

// afterwards is what was told once no fault could undo it any more, and what the log has
// from there on. What was lost with a fault, and what got its positions before the
// watcher came back, nobody can say.
func (c *checker) afterwards(told, log []*Event) (g, w []*Event) {
	over := int64(0)
	for _, x := range c.excused {
		if !x.tokens {
			over = max(over, x.to)
		}
	}
	i := slices.IndexFunc(told, func(e *Event) bool { return over != never && c.h.clock.reached(e.Change.At/1000) > over })
	if i < 0 {
		return nil, nil
	}
	from, _ := slices.BinarySearchFunc(log, told[i].Change.Position, func(e *Event, p int64) int { return cmp.Compare(e.Change.Position, p) })
	return told[i:], log[from:]
}

// same reports whether what was told of a shard is what its log has.
func (c *checker) same(told, log []*Event) bool {
	for i, want := range log {
		if i == len(told) {
			c.witness(want, Missed, "the watch was not told of position %d of shard %d, the first of %d", want.Change.Position, want.Change.Shard, len(log)-i)
			return false
		}
		got := told[i]
		c.s.events = []*Event{want, got}
		switch g, w := got.Change, want.Change; {
		case i > 0 && g.Position <= told[i-1].Change.Position:
			c.offend(Mistold, "the watch was told position %d of shard %d after %d", g.Position, g.Shard, told[i-1].Change.Position)
		case g.Position > w.Position:
			c.offend(Missed, "the watch was told position %d of shard %d, and not %d before it", g.Position, g.Shard, w.Position)
		case g.Position < w.Position:
			c.offend(Mistold, "the watch was told position %d of shard %d, which is not for it", g.Position, g.Shard)
		case *g != *w || got.Task != want.Task:
			c.offend(Mistold, "the watch was told another thing at position %d of shard %d than the log has", g.Position, g.Shard)
		default:
			continue
		}
		return false
	}
	return true
}

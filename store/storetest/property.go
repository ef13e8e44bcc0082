package storetest

import (
	"cmp"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
)

// RunProperty takes a store and memstore through the same random histories and
// fails where they answer differently. Only moments that they derive from their
// clocks are compared loosely. All histories run on one store, each on a shard
// of its own; rapid's flags say how many and how long (-rapid.checks,
// -rapid.steps, -rapid.seed).
func RunProperty(t *testing.T, open func(t *testing.T) store.Store) {
	model := memstore.New()
	t.Cleanup(func() { model.Close() })
	subject := open(t)
	histories := 0
	rapid.Check(t, func(rt *rapid.T) {
		histories++
		p := newPair(rt, histories, model, subject)
		steps := p.actions()
		for name, step := range steps {
			steps[name] = func(rt *rapid.T) {
				if !p.apart {
					step(rt)
				}
			}
		}
		rt.Repeat(steps)
		if !p.apart {
			p.check(rt)
		}
	})
}

// pair is the model and the subject in the midst of one history.
type pair struct {
	sides    [2]*side // model, subject
	shard    store.Shard
	sessions [2]store.Session         // of two nodes that want the shard
	base     store.Millis             // about now
	given    map[store.Millis]bool    // moments that the history chose
	tokens   map[string][]store.Token // id -> tokens tried so far
	indexed  store.IndexSet           // that new tasks speak of
	apart    bool                     // a step was not the same for both: the rest compares nothing
	steps    int
}

// side is one of the two stores, with the fences it gave.
type side struct {
	store.Store
	fence, old store.Fence
}

func newPair(rt *rapid.T, n int, stores ...store.Store) *pair {
	p := &pair{
		shard:  store.Shard{Topic: "property", N: n},
		given:  make(map[store.Millis]bool),
		tokens: make(map[string][]store.Token),
	}
	p.drawIndexed(rt)
	for i, s := range stores {
		p.sides[i] = &side{Store: s}
	}
	now, err := p.sides[0].Clock(rt.Context())
	if err != nil {
		rt.Fatalf("clock: %v", err)
	}
	p.base = store.Millis(now.UnixMilli())
	for i := range p.sessions {
		p.begin(rt, i)
	}
	p.claimFor(rt, p.sessions[0])
	return p
}

// both calls both stores and compares the answers. Moments in them are made
// comparable by p.round; the caller leaves out whatever else may differ.
func (p *pair) both(rt *rapid.T, what string, call func(*side) (any, error)) {
	rt.Helper()
	var answers [2]any
	var errs [2]error
	for i, s := range p.sides {
		answers[i], errs[i] = call(s)
	}
	p.compare(rt, what, answers, errs)
}

func (p *pair) compare(rt *rapid.T, what string, answers [2]any, errs [2]error) {
	rt.Helper()
	if !errors.Is(errs[1], sentinel(errs[0])) || (errs[0] == nil) != (errs[1] == nil) {
		rt.Fatalf("%s: got error %v, want %v", what, errs[1], errs[0])
	}
	if !reflect.DeepEqual(answers[0], answers[1]) {
		rt.Fatalf("%s:\n got %+v\nwant %+v", what, answers[1], answers[0])
	}
}

// sentinel returns the error of the contract that err is.
func sentinel(err error) error {
	for _, known := range []error{store.ErrFenced, store.ErrOwned, store.ErrSessionLost, store.ErrBadCursor, store.ErrVersion, store.ErrTopicExists, store.ErrTopicNotFound, store.ErrNotIndexed} {
		if errors.Is(err, known) {
			return known
		}
	}
	return err
}

// round makes a moment comparable: those that the history chose are exact,
// those that a store took from its clock count in whole hours from now.
func (p *pair) round(m store.Millis) store.Millis {
	if m == 0 || p.given[m] {
		return m
	}
	return 1 + store.Millis((m.Sub(p.base)+long/2)/long)
}

// moment draws a due time or an expiry: half past some hour from now, so that
// no store's clock comes near it.
func (p *pair) moment(rt *rapid.T, what string, from, to int) store.Millis {
	hours := rapid.IntRange(from, to).Draw(rt, what)
	m := p.base.Add(time.Duration(hours)*long + long/2)
	p.given[m] = true
	return m
}

// pass waits until everything that is due about now is due on both clocks.
func (p *pair) pass(rt *rapid.T) {
	var passed [2]store.Millis
	for i, s := range p.sides {
		now, err := s.Clock(rt.Context())
		if err != nil {
			rt.Fatalf("clock: %v", err)
		}
		passed[i] = store.Millis(now.UnixMilli()) + 2 // a millisecond from now, rounded up
	}
	for i, s := range p.sides {
		waitUntil(rt, s, passed[i])
	}
}

// passed waits until a moment is over on both clocks.
func (p *pair) passed(rt *rapid.T, moment store.Millis) {
	for _, s := range p.sides {
		waitUntil(rt, s, moment+1)
	}
}

// look is check after every third step: reading everything takes twenty times as long as a step,
// and what is wrong mostly stays so.
func (p *pair) look(rt *rapid.T) {
	if p.steps++; p.steps%3 == 0 {
		p.check(rt)
	}
}

// check compares everything that can be read.
func (p *pair) check(rt *rapid.T) {
	p.checkTasks(rt)
	p.checkStats(rt)
	p.checkHistogram(rt)
	p.checkWindow(rt, nil)
	p.checkLanes(rt)
	for kind := store.KindPending; kind <= store.KindDead; kind++ {
		p.checkList(rt, kind)
	}
	p.checkRunning(rt)
	p.checkHistory(rt)
	p.checkJournals(rt)
	p.checkLookup(rt)
	p.checkLog(rt)
}

func (p *pair) checkTasks(rt *rapid.T) {
	p.both(rt, "get", func(s *side) (any, error) {
		stamp, snapshots, err := s.Get(rt.Context(), p.shard, propertyIDs())
		return []any{stamp.Seq, p.snapshots(snapshots)}, err
	})
}

// snapshots makes tasks comparable.
func (p *pair) snapshots(snapshots []store.Snapshot) []store.Snapshot {
	for i := range snapshots {
		s := &snapshots[i]
		s.Task = *p.task(&s.Task)
		s.Deadline, s.Finished, s.Started = p.round(s.Deadline), p.round(s.Finished), p.round(s.Started)
		switch s.State {
		case store.StateUnknown:
			*s = store.Snapshot{}
		case store.StateDone, store.StateDead, store.StateExpired:
			s.Due = 0 // of no meaning any more
		}
	}
	return snapshots
}

// task makes a task comparable.
func (p *pair) task(t *store.Task) *store.Task {
	if t == nil {
		return nil
	}
	c := *t
	c.Due = p.round(c.Due)
	c.Payload = append([]byte{}, c.Payload...)
	c.Attributes = append([]store.Attribute{}, c.Attributes...)
	c.Journal = p.journal(c.Journal)
	return &c
}

// journal makes a journal comparable.
func (p *pair) journal(entries []store.JournalEntry) []store.JournalEntry {
	all := slices.SortedFunc(slices.Values(entries), func(a, b store.JournalEntry) int { return strings.Compare(a.Name, b.Name) })
	for i := range all {
		all[i].Value, all[i].Kept = append([]byte{}, all[i].Value...), p.round(all[i].Kept)
	}
	return all
}

func (p *pair) checkStats(rt *rapid.T) {
	p.both(rt, "stats", func(s *side) (any, error) {
		stats, err := s.Stats(rt.Context(), []store.Shard{p.shard})
		for i := range stats {
			stats[i].Now, stats[i].Server = time.Time{}, 0
			stats[i].Keys = false // when a free one is forgotten is up to each store
			stats[i].OldestMs = p.round(stats[i].OldestMs)
		}
		return stats, err
	})
}

// checkWindow pages through all pending tasks and checks their order; which of
// two that are due about now comes first is up to each clock.
func (p *pair) checkWindow(rt *rapid.T, lane *store.Lane) {
	limit := rapid.IntRange(1, 10).Draw(rt, "window limit")
	p.both(rt, "window", func(s *side) (any, error) {
		var all []store.Entry
		for w := (store.WindowQuery{To: p.base.Add(1000 * long), Limit: limit, Lane: lane}); ; {
			_, page, err := s.Window(rt.Context(), p.shard, w)
			if err != nil {
				return nil, err
			}
			all = append(all, page...)
			if len(page) < limit {
				break
			}
			w.After = page[limit-1]
		}
		byDueAndID := func(a, b store.Entry) int { return cmp.Or(cmp.Compare(a.Due, b.Due), cmp.Compare(a.ID, b.ID)) }
		if !slices.IsSortedFunc(all, byDueAndID) {
			rt.Fatalf("window is out of order: %v", all)
		}
		for i := range all {
			all[i].Due = p.round(all[i].Due)
		}
		slices.SortFunc(all, byDueAndID)
		return all, nil
	})
}

// checkLanes compares which lanes there are, and what is in each.
func (p *pair) checkLanes(rt *rapid.T) {
	var lanes []store.Lane
	p.both(rt, "lanes", func(s *side) (any, error) {
		heads, err := allLanes(rt.Context(), s, p.shard, rapid.IntRange(1, 3).Draw(rt, "lanes limit"))
		lanes = lanes[:0]
		for i := range heads {
			heads[i].Due = p.round(heads[i].Due)
			lanes = append(lanes, heads[i].Lane)
		}
		slices.SortFunc(heads, func(a, b store.LaneHead) int { return compareLanes(a.Lane, b.Lane) })
		return heads, err
	})
	slices.SortFunc(lanes, compareLanes)
	for i := range lanes {
		p.checkWindow(rt, &lanes[i])
	}
}

func compareLanes(a, b store.Lane) int {
	return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Key, b.Key))
}

func (p *pair) checkList(rt *rapid.T, kind store.Kind) {
	limit := rapid.IntRange(1, 10).Draw(rt, "list limit")
	p.both(rt, "list", func(s *side) (any, error) {
		seen := make(map[string]store.Snapshot)
		for cursor := ""; ; {
			page, next, err := s.List(rt.Context(), p.shard, kind, cursor, limit)
			if err != nil {
				return nil, err
			}
			for _, snapshot := range p.snapshots(page) {
				seen[snapshot.ID] = snapshot
			}
			if cursor = next; cursor == "" {
				return seen, nil
			}
		}
	})
}

func (p *pair) checkRunning(rt *rapid.T) {
	limit := rapid.IntRange(1, 10).Draw(rt, "running limit")
	p.both(rt, "running", func(s *side) (any, error) {
		seen := make(map[string]store.Running)
		for cursor := ""; ; {
			page, next, err := s.Running(rt.Context(), p.shard, cursor, limit)
			if err != nil {
				return nil, err
			}
			for _, r := range page {
				r.Deadline, r.Started = p.round(r.Deadline), p.round(r.Started)
				seen[r.ID] = r
			}
			if cursor = next; cursor == "" {
				return seen, nil
			}
		}
	})
}

package agenda

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/ddq-io/ddq/store"
)

// windowModel drives a window the way a shard does, over a pretend store, and
// checks that every pending task below the watermark is known.
type windowModel struct {
	w       window
	stored  map[string]store.Millis
	known   map[string]store.Millis
	now     store.Millis
	page    []store.Entry // being read
	more    bool
	counter int
	peeked  *store.Entry // the answer of a peek under way
}

func (m *windowModel) sorted() []store.Entry {
	var all []store.Entry
	for id, due := range m.stored {
		all = append(all, store.Entry{ID: id, Due: due})
	}
	slices.SortFunc(all, func(a, b store.Entry) int {
		return cmp.Or(cmp.Compare(a.Due, b.Due), cmp.Compare(a.ID, b.ID))
	})
	return all
}

func (m *windowModel) count() (wheel, ready int) {
	for _, due := range m.known {
		if due > m.now {
			wheel++
		} else {
			ready++
		}
	}
	return wheel, ready
}

func (m *windowModel) keep(e store.Entry) {
	if old, ok := m.known[e.ID]; ok && old <= m.now {
		return
	}
	delete(m.known, e.ID)
	if wheel, ready := m.count(); m.w.Fits(e.Due, m.now, wheel, ready) {
		m.known[e.ID] = e.Due
	}
}

func (m *windowModel) add(t *rapid.T) {
	m.counter++
	e := store.Entry{ID: fmt.Sprintf("t%04d", m.counter), Due: m.now + store.Millis(rapid.IntRange(-5, 60).Draw(t, "due"))}
	m.stored[e.ID] = e.Due
	m.w.Advance(m.now + 30)
	if m.w.Covers(e.Due) {
		m.keep(e)
	} else {
		m.w.Later(e.Due)
	}
}

func (m *windowModel) beginPeek(*rapid.T) {
	query, ok := m.w.Peek()
	if !ok {
		return
	}
	m.peeked = nil
	for _, e := range m.sorted() {
		if cmp.Or(cmp.Compare(e.Due, query.After.Due), cmp.Compare(e.ID, query.After.ID)) > 0 {
			m.peeked = &e
			return
		}
	}
}

func (m *windowModel) endPeek(*rapid.T) {
	if m.w.peeking {
		m.w.Peeked(m.peeked)
	}
}

func (m *windowModel) beginLoad(t *rapid.T) {
	limit := rapid.IntRange(1, 6).Draw(t, "limit")
	query, ok := m.w.Begin(m.now+30, limit)
	if !ok {
		return
	}
	m.page = nil
	for _, e := range m.sorted() {
		after := cmp.Or(cmp.Compare(e.Due, query.After.Due), cmp.Compare(e.ID, query.After.ID)) > 0
		if after && e.Due <= query.To && len(m.page) < limit {
			m.page = append(m.page, e)
		}
	}
	m.more = len(m.page) == limit
}

func (m *windowModel) endLoad(*rapid.T) {
	if !m.w.loading || m.w.peeking {
		return
	}
	var last store.Entry
	if m.more {
		last = m.page[len(m.page)-1]
	}
	m.w.End(last, m.more)
	for _, e := range m.page {
		if _, pending := m.stored[e.ID]; pending {
			m.keep(e)
		}
	}
}

func (m *windowModel) take(t *rapid.T) {
	for id, due := range m.known {
		if due <= m.now && rapid.Bool().Draw(t, "take") {
			delete(m.known, id)
			delete(m.stored, id)
		}
	}
}

// advance moves time on, and offers again what came due, as a fired slot does.
func (m *windowModel) advance(t *rapid.T) {
	before := m.now
	m.now += store.Millis(rapid.IntRange(1, 20).Draw(t, "ms"))
	for id, due := range m.known {
		if due > before && due <= m.now {
			m.keep(store.Entry{ID: id, Due: due})
		}
	}
}

func (m *windowModel) check(t *rapid.T) {
	for id, due := range m.stored {
		below := due < m.w.Mark.Due || due == m.w.Mark.Due && id <= m.w.Mark.ID
		if _, known := m.known[id]; below && !known {
			t.Fatalf("task %s due %d is below the watermark %+v and not known", id, due, m.w.Mark)
		}
		if _, known := m.known[id]; !below && due < m.w.Clear && !known {
			t.Fatalf("task %s due %d is behind the watermark %+v, where none is until %d", id, due, m.w.Mark, m.w.Clear)
		}
	}
}

func TestWindowKnowsWhatIsBelowTheWatermark(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &windowModel{
			w:      window{Wheel: 8, Ready: 4, Spare: 2},
			stored: make(map[string]store.Millis),
			known:  make(map[string]store.Millis),
			now:    1000,
		}
		m.w.Reset()
		t.Repeat(map[string]func(*rapid.T){
			"add": m.add, "begin": m.beginLoad, "end": m.endLoad, "take": m.take, "advance": m.advance,
			"peek": m.beginPeek, "peeked": m.endPeek, "follow": func(*rapid.T) { m.w.Advance(m.now + 30) },
			"lower": func(t *rapid.T) { m.w.Lower(m.now - store.Millis(rapid.IntRange(0, 9).Draw(t, "back"))) },
			"abort": func(*rapid.T) {
				if m.w.loading {
					m.w.Abort()
				}
			},
			"": m.check,
		})
	})
}

package limit

import (
	"maps"
	"slices"
	"time"

	"github.com/ddq-io/ddq/store"
)

// Table is the rates and permits of all keys. What rests is forgotten little by
// little, as it is used. It is not safe for concurrent use.
type Table struct {
	rates   map[store.LimitKey]*rate
	permits map[store.LimitKey]*Permits
	lines   map[store.LimitKey]*line // of those who lack a token
	calls   map[caller]remembered
}

type rate struct {
	State
	rests int64 // microseconds
}

// Change is a rate of a Table that is different now.
type Change struct {
	Key   store.LimitKey
	State *State // nil: forgotten
	Rests int64  // see State.Rests
}

// NewTable returns a table in which nothing was used yet.
func NewTable() *Table {
	return &Table{
		rates: make(map[store.LimitKey]*rate), permits: make(map[store.LimitKey]*Permits),
		lines: make(map[store.LimitKey]*line), calls: make(map[caller]remembered),
	}
}

// Reserve is that of store.Limits at a moment.
func (t *Table) Reserve(asked []store.Reservation, now time.Time) (got []store.Tokens, changed []Change) {
	changed = t.sweepRates(len(asked), now)
	got = make([]store.Tokens, len(asked))
	for i, q := range asked {
		r := t.rates[q.Key]
		if r == nil {
			r = &rate{State: State{Kind: q.Rate.Kind}}
		}
		if got[i] = t.reserve(r, q, now); got[i].N > 0 {
			r.rests = r.Rests(q.Rate)
			t.rates[q.Key] = r
			changed = append(changed, Change{Key: q.Key, State: &r.State, Rests: r.rests})
		}
	}
	return got, changed
}

// reserve takes tokens. Those of a caller, who asks for all or none, come behind one for each node in line, so that they
// cannot starve tasks; callers reserve ahead, so that tasks cannot starve them.
func (t *Table) reserve(r *rate, q store.Reservation, now time.Time) store.Tokens {
	l := t.lines[q.Key]
	if !q.Whole || q.N == 0 || l == nil || r.Kind != q.Rate.Kind {
		return r.Reserve(q, now)
	}
	l.forget(now)
	state, was := r.State, l.aside
	state.Used, l.aside = slices.Clone(r.Used), slices.Clone(was)
	l.lapse(q.Rate, &state, now.UnixMicro())
	l.setAside(&state, q, now)
	got := state.Reserve(q, now)
	if got.N > 0 {
		r.State = state
	} else {
		l.aside = was
	}
	return got
}

// Acquire is that of store.Limits at a moment.
func (t *Table) Acquire(asked []store.Acquire, now time.Time) []store.Acquired {
	t.sweepPermits(len(asked), now)
	got := make([]store.Acquired, len(asked))
	for i, q := range asked {
		p := t.permitsOf(q.Key)
		got[i] = p.Acquire(q, now)
		t.drop(q.Key, p)
	}
	return got
}

// Move is that of store.Limits.
func (t *Table) Move(permits []store.Permit) {
	for _, m := range permits {
		t.permitsOf(m.Key).Move(m.Holder, m.Until)
	}
}

// Free is that of store.Limits at a moment.
func (t *Table) Free(permits []store.Permit, now time.Time) [][]string {
	waiting := make([][]string, len(permits))
	for i, f := range permits {
		p := t.permitsOf(f.Key)
		waiting[i] = p.Free(f.Holder, now)
		t.drop(f.Key, p)
	}
	return waiting
}

// Load restores what was written down of a rate.
func (t *Table) Load(c Change) { t.rates[c.Key] = &rate{State: *c.State, rests: c.Rests} }

// Len is how many keys something is known of.
func (t *Table) Len() int { return len(t.rates) + len(t.permits) + len(t.lines) }

// Clone returns a copy that shares nothing with t.
func (t *Table) Clone() *Table {
	c := NewTable()
	for key, r := range t.rates {
		copied := *r
		copied.Used = slices.Clone(r.Used)
		c.rates[key] = &copied
	}
	for key, p := range t.permits {
		c.permits[key] = &Permits{until: maps.Clone(p.until), soonest: p.soonest, line: p.line.clone()}
	}
	for key, l := range t.lines {
		copied := l.clone()
		c.lines[key] = &copied
	}
	maps.Copy(c.calls, t.calls) // nobody changes what is remembered
	return c
}

func (t *Table) permitsOf(key store.LimitKey) *Permits {
	p := t.permits[key]
	if p == nil {
		p = new(Permits)
		t.permits[key] = p
	}
	return p
}

func (t *Table) drop(key store.LimitKey, p *Permits) {
	if p.Idle() {
		delete(t.permits, key)
	}
}

// sweepRates looks at more keys than a call can add.
func (t *Table) sweepRates(added int, now time.Time) (changed []Change) {
	left := 2*added + 8
	for key, r := range t.rates {
		if r.rests <= now.UnixMicro() {
			delete(t.rates, key)
			changed = append(changed, Change{Key: key})
		}
		if left--; left == 0 {
			break
		}
	}
	return changed
}

func (t *Table) sweepPermits(added int, now time.Time) {
	left := 2*added + 8
	for key, p := range t.permits {
		p.expire(store.Millis(now.UnixMilli()))
		p.line.forget(now)
		t.drop(key, p)
		if left--; left == 0 {
			break
		}
	}
}

package limit

import (
	"slices"
	"time"

	"github.com/ddq-io/ddq/store"
)

// caller has one call remembered.
type caller struct{ topic, node string }

type remembered struct {
	call  uint64
	at    time.Time
	reply *store.TakeReply
}

// Take is that of store.Taker at a moment.
func (t *Table) Take(q *store.Take, now time.Time) (*store.TakeReply, []Change) {
	now = time.UnixMicro(now.UnixMicro()).UTC()
	who := caller{q.Topic, q.Node}
	if r, found := t.calls[who]; found && q.Call != 0 && now.Sub(r.at) < store.CallLife {
		switch behind := r.call - q.Call; {
		case behind == 0:
			return cloneReply(r.reply), nil
		case behind <= store.LateCalls:
			return &store.TakeReply{Now: now, Wants: make([]store.Taking, len(q.Wants))}, nil
		}
	}
	t.sweepTakes(now)
	t.sweepPermits(1, now)
	s := step{Table: t, q: q, now: now, us: now.UnixMicro(), ahead: q.Ahead().Microseconds(), seen: make(map[store.Limit]any)}
	s.changed = t.sweepRates(1, now)
	s.end()
	reply := &store.TakeReply{Now: now, Wants: make([]store.Taking, len(q.Wants)), Lost: s.lost}
	left := len(q.Holders)
	for i := range q.Wants {
		if left == 0 {
			break
		}
		reply.Wants[i] = s.take(&q.Wants[i], q.Holders[len(q.Holders)-left])
		if reply.Wants[i].Status == store.Granted {
			left--
		}
	}
	reply.Notices = s.close()
	if q.Call != 0 {
		t.calls[who] = remembered{q.Call, now, cloneReply(reply)}
	}
	return reply, s.changed
}

func cloneReply(r *store.TakeReply) *store.TakeReply {
	return &store.TakeReply{Now: r.Now, Wants: slices.Clone(r.Wants), Notices: slices.Clone(r.Notices), Lost: r.Lost}
}

// step is one Take at work.
type step struct {
	*Table
	q       *store.Take
	now     time.Time
	us      int64
	ahead   int64 // of tokens, microseconds
	seen    map[store.Limit]any
	order   []any // of seen, the first first: *rateView and *capView
	changed []Change
	lost    int // tokens of Back
}

// capView is a cap in a step.
type capView struct {
	view
	*Permits
}

// rateView is a rate in a step.
type rateView struct {
	view
	rate  store.Rate
	state State
	next  int64 // when the first token comes that this step may take; of a window all of them
	over  int   // slots of a window that are over by then
	slot  int64 // the end of the slot of this step
	aside int   // tokens that were set aside for the line and are there: they come first
	given int   // tokens of the state
	back  bool  // the state is different, too, if nothing is taken
}

// end ends Free, Back and Leave.
func (s *step) end() {
	for _, f := range s.q.Free {
		if p := s.permits[f.Key]; p != nil {
			delete(p.until, f.Holder)
		}
	}
	back := make(map[store.LimitKey]bool)
	for _, m := range s.q.Marks() {
		r, of := s.rates[m.Key], s.q.Limits.RateOf(m.Key.Key)
		switch {
		case r == nil: // it has rested since
		case r.back(m.TokenMark, of, s.us):
			back[m.Key] = true
		case r.lost(m.TokenMark, of, s.us):
			s.lost++
		}
	}
	left := make(map[store.Limit]bool)
	for _, l := range s.q.Leave {
		name := store.LineName(s.q.Node, s.q.Topic, l.Key)
		if line := s.lineOf(l); line != nil && line.leave(name) {
			line.turn = time.Time{}
			left[l] = true
		}
	}
	for _, f := range s.q.Free {
		s.cap(f.Key)
	}
	for _, m := range s.q.Marks() {
		if back[m.Key] {
			if v := s.rate(m.Key); v != nil {
				v.back, v.tell = true, true
			}
		}
	}
	for _, l := range s.q.Leave {
		switch {
		case !left[l]:
		case l.Rate:
			if v := s.rate(l.Key); v != nil {
				v.tell = true
			}
		default:
			s.cap(l.Key)
		}
	}
}

// lineOf is the line for a limit, if there is one.
func (s *step) lineOf(l store.Limit) *line {
	if l.Rate {
		return s.lines[l.Key]
	}
	if p := s.permits[l.Key]; p != nil {
		return &p.line
	}
	return nil
}

// cap opens a cap; nil: there is none.
func (s *step) cap(key store.LimitKey) *capView {
	limit := store.Limit{Key: key}
	if v, found := s.seen[limit]; found {
		return v.(*capView)
	}
	most := s.q.Limits.Cap(key.Key)
	if most == 0 {
		return nil
	}
	p := s.permitsOf(key)
	p.expire(store.Millis(s.now.UnixMilli()))
	v := &capView{view: view{line: &p.line, limit: limit, name: store.LineName(s.q.Node, s.q.Topic, key), there: most - len(p.until)}, Permits: p}
	v.open(s.now)
	s.seen[limit], s.order = v, append(s.order, v)
	return v
}

// rate opens a rate; nil: there is none.
func (s *step) rate(key store.LimitKey) *rateView {
	limit := store.Limit{Key: key, Rate: true}
	if v, found := s.seen[limit]; found {
		return v.(*rateView)
	}
	rate := s.q.Limits.RateOf(key.Key)
	if !rate.Limited() {
		return nil
	}
	l := s.lines[key]
	if l == nil {
		l = new(line)
		s.lines[key] = l
	}
	v := &rateView{view: view{line: l, limit: limit, name: s.q.Node}, rate: rate, state: State{Kind: rate.Kind}}
	if r := s.rates[key]; r != nil {
		v.state = r.State
	}
	v.look(s.q, s.us, s.us+s.ahead)
	v.open(s.now)
	s.seen[limit], s.order = v, append(s.order, v)
	return v
}

// look finds out how many tokens there are.
func (v *rateView) look(q *store.Take, now, limit int64) {
	if v.state.Kind != v.rate.Kind {
		v.state, v.line.aside = State{Kind: v.rate.Kind}, nil
	}
	v.state.Used = slices.Clone(v.state.Used)
	v.back = v.lapse(v.rate, &v.state, now)
	if v.rate.Kind == store.TokenBucket {
		last := v.state.Last
		if v.next = v.state.next(v.rate, now, limit); v.next <= limit {
			v.there = tokensUpTo(v.rate, v.next, limit)
		}
		v.back = v.back || v.state.Last != last // rescaled: who asks again is told of the same moment
	} else {
		if v.there, v.next, v.over = v.state.free(v.rate, 1, now, limit); v.next > limit {
			v.there = 0
		}
		v.slot = v.rate.SlotEnd(time.UnixMicro(v.next), q.Life).UnixMicro()
		if kept := v.state.Used[v.over:]; len(kept) > 0 {
			v.slot = max(v.slot, kept[len(kept)-1].End)
		}
	}
	for v.aside < len(v.line.aside) && v.line.aside[v.aside].at <= limit {
		v.aside++
	}
	v.there += v.aside
}

// first is when the next token comes.
func (v *rateView) first() (at int64) {
	switch {
	case v.rate.Kind == store.TokenBucket:
		at = v.next + v.rate.Span(v.given).Microseconds()
	case v.given == 0:
		at = v.next
	case v.over < len(v.state.Used):
		at = v.state.Used[v.over].End + v.rate.Period.Microseconds()
	default:
		at = v.slot + v.rate.Period.Microseconds()
	}
	if len(v.line.aside) > 0 {
		at = min(at, v.line.aside[0].at)
	}
	return at
}

// token takes one.
func (v *rateView) token() store.TokenMark {
	v.take()
	mark := store.TokenMark{Kind: v.rate.Kind}
	switch {
	case v.aside > 0:
		v.aside--
		mark.From, mark.To = v.line.aside[0].at, v.line.aside[0].slot
		v.line.aside = v.line.aside[1:]
		return mark
	case v.rate.Kind == store.SlidingWindow:
		mark.To = v.slot
	default:
		mark.From, mark.To = v.next+v.rate.Span(v.given).Microseconds(), v.next+v.rate.Span(v.given+1).Microseconds()
	}
	v.given++
	return mark
}

// again is when a node that lacks a token asks again.
func (v *rateView) again(now time.Time, ahead int64) time.Time {
	at := time.UnixMicro(v.first() - ahead).UTC()
	if v.there > 0 { // kept for others, who may not come
		at = now.Add(2 * store.LineTurn)
	}
	if gathered := now.Add(store.TokenHorizon / 2); v.rate.Spacing() < store.TokenHorizon/2 && at.Before(gathered) {
		at = gathered
	}
	return at
}

// take gives a want all that it needs, or nothing.
func (s *step) take(w *store.Want, holder store.Token) store.Taking {
	var caps [3]*capView
	for i, key := range [...]string{w.CapKey, "", store.NamespaceCap} {
		if i == 0 && key == "" {
			continue
		}
		c := s.cap(store.CapKey(s.q.Topic, key))
		if c == nil {
			continue
		}
		c.asked = true
		if !c.has() {
			c.refused = true
			again := s.now.Add(store.NoticeWait)
			if c.there > 0 { // kept for others, who may not come
				again = s.now.Add(2*store.LineTurn + time.Millisecond)
			}
			return store.Taking{Status: store.NoPermit, Lacks: c.limit, Again: again}
		}
		caps[i] = c
	}
	var rates [2]*rateView
	for i, key := range [...]string{w.RateKey, ""} {
		if i == 0 && key == "" {
			continue
		}
		r := s.rate(store.LimitKey{Topic: s.q.Topic, Key: key})
		if r == nil {
			continue
		}
		switch r.asked = true; {
		case s.q.Limits.DeadLetter && r.there <= 0:
			return store.Taking{Status: store.OverRate, Lacks: r.limit}
		case !s.q.Limits.DeadLetter && !r.has():
			r.refused = true
			return store.Taking{Status: store.NoToken, Lacks: r.limit, Again: r.again(s.now, s.ahead)}
		}
		rates[i] = r
	}
	receipt := store.TokenReceipt{RateKey: w.RateKey}
	for i, mark := range [...]*store.TokenMark{&receipt.Key, &receipt.Topic} {
		if rates[i] != nil {
			*mark = rates[i].token()
		}
	}
	for _, c := range caps {
		if c != nil {
			c.Move(holder, s.q.Until)
			c.take()
		}
	}
	return s.q.Granted(s.now, receipt)
}

// close writes down what was taken, gives the node its places, and returns whom to tell.
func (s *step) close() (notices []store.Notice) {
	for _, v := range s.order {
		switch v := v.(type) {
		case *capView:
			notices = v.close(s.now, s.q.Topic, notices)
			s.drop(v.limit.Key, v.Permits)
		case *rateView:
			notices = v.close(s.now, s.q.Topic, notices)
			if v.line.idle() {
				delete(s.lines, v.limit.Key)
			}
			if v.given > 0 || v.back {
				s.write(v)
			}
		}
	}
	return notices
}

func (s *step) write(v *rateView) {
	switch {
	case v.given == 0:
	case v.rate.Kind == store.TokenBucket:
		v.state.empty(v.rate, v.next, v.given)
	default:
		v.state.fill(v.next, v.over, v.given, v.slot)
	}
	r := &rate{State: v.state, rests: v.state.Rests(v.rate)}
	s.rates[v.limit.Key] = r
	s.changed = append(s.changed, Change{Key: v.limit.Key, State: &r.State, Rests: r.rests})
}

// sweepTakes looks at more lines and calls than a Take can add.
func (t *Table) sweepTakes(now time.Time) {
	left := 16
	for key, l := range t.lines {
		if l.forget(now); len(l.places) == 0 && (len(l.aside) == 0 || l.aside[len(l.aside)-1].at < now.Add(-store.MaxAhead).UnixMicro()) {
			delete(t.lines, key)
		}
		if left--; left == 0 {
			break
		}
	}
	left = 4
	for who, r := range t.calls {
		if now.Sub(r.at) >= store.CallLife {
			delete(t.calls, who)
		}
		if left--; left == 0 {
			break
		}
	}
}

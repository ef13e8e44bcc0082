package limit

import (
	"slices"
	"time"

	"github.com/ddq-io/ddq/store"
)

// State is what is known of one rate: when its next token comes, or how many came
// lately. The zero State is one that has rested for ever.
type State struct {
	Kind   store.RateKind
	Last   int64  // microseconds; bucket: when the next token comes; window: when the last one came
	Period int64  // bucket: of the rate that Last was computed with, microseconds
	Count  int64  // bucket: of that rate
	Used   []Used // window: the oldest first
}

// Used are tokens of a window that count until a period after End.
type Used struct {
	End   int64 // microseconds
	Count int
}

// Reserve takes tokens at a moment.
func (s *State) Reserve(q store.Reservation, now time.Time) store.Tokens {
	us := now.UnixMicro()
	if s.Kind != q.Rate.Kind {
		*s = State{Kind: q.Rate.Kind}
	}
	reserve := s.fromBucket
	if s.Kind == store.SlidingWindow {
		reserve = s.fromWindow
	}
	n, first := reserve(q, us, us+q.Ahead.Microseconds())
	return store.Tokens{N: n, Now: now, First: time.UnixMicro(first).UTC()}
}

// fromBucket is the generic cell rate algorithm: a bucket is the moment of its next
// token, which lies back by its burst when it has rested.
func (s *State) fromBucket(q store.Reservation, now, limit int64) (n int, first int64) {
	next := s.next(q.Rate, now, limit)
	last := next + q.Rate.Span(max(0, q.N-1)).Microseconds()
	switch {
	case q.Whole && last > limit:
		return 0, last
	case q.Whole:
		n = q.N
	case next <= limit:
		n = min(q.N, tokensUpTo(q.Rate, next, limit))
	}
	if n > 0 {
		s.empty(q.Rate, next, n)
	}
	return n, next
}

// next is when the next token of a bucket comes.
func (s *State) next(r store.Rate, now, limit int64) int64 {
	next := s.rescaled(r, now)
	if next > farthest(now, limit)+r.Span(r.Most()).Microseconds() {
		next = now
	}
	return max(next, now-r.Slack().Microseconds())
}

// tokensUpTo is how many tokens a bucket has until a moment, whose next comes not after it.
func tokensUpTo(r store.Rate, next, limit int64) int {
	return int(float64(limit-next)*float64(r.Count)/float64(r.Period.Microseconds())) + 1
}

// empty takes n tokens out of a bucket whose next came at a moment.
func (s *State) empty(r store.Rate, next int64, n int) {
	s.Last = next + r.Span(n).Microseconds()
	s.Period, s.Count = r.Period.Microseconds(), int64(r.Count)
}

// farthest is up to when tokens can have been taken.
func farthest(now, limit int64) int64 { return max(limit, now+store.MaxAhead.Microseconds()) }

// rescaled is when the next token comes when the rate may have changed: as many
// tokens are owed as before. That is so from now on, also if nothing is taken: who asks again
// and again would be told of a moment that stays as far ahead.
func (s *State) rescaled(r store.Rate, now int64) int64 {
	period, count := r.Period.Microseconds(), int64(r.Count)
	if s.Last <= now || s.Count == 0 || s.Period == period && s.Count == count {
		return s.Last
	}
	owed := float64(s.Last-now) * float64(s.Count) / float64(s.Period)
	s.Last, s.Period, s.Count = now+int64(owed*float64(period)/float64(count)), period, count
	return s.Last
}

// fromWindow counts tokens by slots. One counts until a period after the end of the
// slot behind its own, and may be used until then: so no period has too many, also
// when they are used late.
func (s *State) fromWindow(q store.Reservation, now, limit int64) (n int, first int64) {
	need := 1
	if q.Whole {
		need = max(1, q.N)
	}
	free, at, over := s.free(q.Rate, need, now, limit)
	if free < need || at > limit || q.N == 0 {
		return 0, at
	} else if n = q.N; !q.Whole {
		n = min(n, free)
	}
	s.fill(at, over, n, q.Rate.SlotEnd(time.UnixMicro(at), q.Life).UnixMicro())
	return n, at
}

// free is how many tokens a window has, and from when, if so many are needed; the first slots are over by then.
func (s *State) free(r store.Rate, need int, now, limit int64) (free int, at int64, over int) {
	period := r.Period.Microseconds()
	if s.Last > farthest(now, limit)+period {
		s.Last, s.Used = now, nil
	}
	used := 0
	at = max(now, s.Last)
	for len(s.Used) > 0 && s.Used[0].End+period <= at {
		s.Used = s.Used[1:]
	}
	for _, u := range s.Used {
		used += u.Count
	}
	for over < len(s.Used) && r.Count-used < need {
		used -= s.Used[over].Count
		at = max(at, s.Used[over].End+period)
		over++
	}
	return r.Count - used, at, over
}

// fill counts n tokens that a window gives at a moment, and that may be used until the end of a slot.
func (s *State) fill(at int64, over, n int, end int64) {
	s.Used, s.Last = s.Used[over:], at
	s.count(n, end)
}

func (s *State) count(n int, end int64) {
	if last := len(s.Used) - 1; last >= 0 && s.Used[last].End >= end {
		s.Used[last].Count += n
		return
	}
	s.Used = append(s.Used, Used{End: end, Count: n})
}

// back takes back one token, if that gives nobody more than there are, and the rate has not rested since.
func (s *State) back(m store.TokenMark, r store.Rate, now int64) bool {
	counts := m.To + r.Slack().Microseconds()
	if m.Kind == store.SlidingWindow {
		counts = m.To + r.Period.Microseconds()
	}
	if s.Kind != m.Kind || m.To == 0 || counts <= now {
		return false
	}
	if m.Kind == store.TokenBucket {
		last := s.Last == m.To
		if last {
			s.Last = m.From
		}
		return last
	}
	i := slices.IndexFunc(s.Used, func(u Used) bool { return u.End == m.To })
	if i < 0 {
		return false
	}
	if s.Used[i].Count--; s.Used[i].Count == 0 {
		s.Used = slices.Delete(s.Used, i, i+1)
	}
	return true
}

// lost reports whether a token that cannot go back is lost: others were taken of its bucket since, which is not full.
func (s *State) lost(m store.TokenMark, r store.Rate, now int64) bool {
	return s.Kind == store.TokenBucket && m.Kind == s.Kind && m.To != 0 && s.Last > m.To && m.To+r.Slack().Microseconds() > now
}

// Rests is when nothing of the past counts any more, in microseconds.
func (s *State) Rests(r store.Rate) int64 {
	if s.Kind == store.TokenBucket {
		return s.Last + r.Slack().Microseconds()
	}
	if len(s.Used) == 0 {
		return 0
	}
	return s.Used[len(s.Used)-1].End + r.Period.Microseconds()
}

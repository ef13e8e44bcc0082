package limit

import (
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
	next := s.rescaled(q.Rate, now)
	if next > farthest(now, limit)+q.Rate.Span(q.Rate.Most()).Microseconds() {
		next = now
	}
	next = max(next, now-q.Rate.Slack().Microseconds())
	last := next + q.Rate.Span(max(0, q.N-1)).Microseconds()
	switch {
	case q.Whole && last > limit:
		return 0, last
	case q.Whole:
		n = q.N
	case next <= limit:
		n = min(q.N, int(float64(limit-next)*float64(q.Rate.Count)/float64(q.Rate.Period.Microseconds()))+1)
	}
	if n > 0 {
		s.Last = next + q.Rate.Span(n).Microseconds()
		s.Period, s.Count = q.Rate.Period.Microseconds(), int64(q.Rate.Count)
	}
	return n, next
}

// farthest is up to when tokens can have been taken.
func farthest(now, limit int64) int64 { return max(limit, now+store.MaxAhead.Microseconds()) }

// rescaled is when the next token comes when the rate may have changed: as many
// tokens are owed as before.
func (s *State) rescaled(r store.Rate, now int64) int64 {
	period, count := r.Period.Microseconds(), int64(r.Count)
	if s.Last <= now || s.Count == 0 || s.Period == period && s.Count == count {
		return s.Last
	}
	owed := float64(s.Last-now) * float64(s.Count) / float64(s.Period)
	return now + int64(owed*float64(period)/float64(count))
}

// fromWindow counts tokens by slots. One counts until a period after the end of the
// slot behind its own, and may be used until then: so no period has too many, also
// when they are used late.
func (s *State) fromWindow(q store.Reservation, now, limit int64) (n int, first int64) {
	period := q.Rate.Period.Microseconds()
	if s.Last > farthest(now, limit)+period {
		s.Last, s.Used = now, nil
	}
	at, used := max(now, s.Last), 0
	for len(s.Used) > 0 && s.Used[0].End+period <= at {
		s.Used = s.Used[1:]
	}
	for _, u := range s.Used {
		used += u.Count
	}
	need := 1
	if q.Whole {
		need = max(1, q.N)
	}
	over := 0
	for over < len(s.Used) && q.Rate.Count-used < need {
		used -= s.Used[over].Count
		at = max(at, s.Used[over].End+period)
		over++
	}
	if free := q.Rate.Count - used; free < need || at > limit || q.N == 0 {
		return 0, at
	} else if n = q.N; !q.Whole {
		n = min(n, free)
	}
	s.Used, s.Last = s.Used[over:], at
	s.count(n, store.Rate.Before(q.Rate, time.UnixMicro(at)).UnixMicro())
	return n, at
}

func (s *State) count(n int, end int64) {
	if last := len(s.Used) - 1; last >= 0 && s.Used[last].End >= end {
		s.Used[last].Count += n
		return
	}
	s.Used = append(s.Used, Used{End: end, Count: n})
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

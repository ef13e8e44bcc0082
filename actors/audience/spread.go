package audience

import (
	"math/bits"
	"time"
)

// Limits of a spread.
const (
	MaxWindow = 24 * time.Hour
	MinGrain  = time.Millisecond
)

// Spread says how the tasks of a run are spread over time. It has whole milliseconds.
type Spread struct {
	Window time.Duration // 0: all are due at once
	Grain  time.Duration // places are multiples of it; 0 means MinGrain
	Turn   Position      // by which the circle of positions is turned: who comes first changes from run to run
}

// Place is how long after the occurrence the task of a recipient is due.
func (s Spread) Place(at Position) time.Duration {
	return s.placeOf(s.turned(at))
}

// turned is how far behind the first recipient of the run one stands. The walk goes in
// this order, which is that of places.
func (s Spread) turned(at Position) Position { return at + s.Turn }

func (s Spread) placeOf(turned Position) time.Duration {
	whole, _ := bits.Mul64(uint64(turned), uint64(s.Window/time.Millisecond))
	grain := s.grain()
	return time.Duration(whole) * time.Millisecond / grain * grain
}

func (s Spread) grain() time.Duration { return max(s.Grain, MinGrain) }

// until is the first turned position whose place is behind a span of time; false when
// none is.
func (s Spread) until(span time.Duration) (Position, bool) {
	if span < 0 {
		return 0, true
	}
	window, behind := uint64(s.Window/time.Millisecond), uint64((span/s.grain()+1)*s.grain()/time.Millisecond)
	if behind >= window {
		return 0, false
	}
	p, rest := bits.Div64(behind, 0, window)
	if rest > 0 {
		p++
	}
	return Position(p), true
}

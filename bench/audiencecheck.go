package bench

import (
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/ddq-io/ddq/bench/lateness"
	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/result"
)

// What a run of an audience may break.
const (
	twice     = "twice"     // two tasks, or one twice with no higher attempt
	none      = "none"      // no task, and nobody had opted out or left in time
	unwanted  = "unwanted"  // a task that was made after an opt-out or a removal was answered
	joinedIn  = "joined_in" // a task of a run that had begun before
	misplaced = "misplaced" // due elsewhere than at its place
	early     = "early"     // a handler started before the place
	uneven    = "uneven"    // a grain has a count that is too far off
)

// mostSigma is how far the count of a grain may be off, in standard deviations.
const mostSigma = 4.0

// check compares what handlers got with who was there.
func (s *audienceShow) check(line *audienceLine) {
	s.mu.Lock()
	defer s.mu.Unlock()
	line.Broken = map[string]int{twice: 0, none: 0, unwanted: 0, joinedIn: 0, misplaced: 0, early: 0, uneven: 0}
	late, grains := hdrhistogram.New(1, int64(time.Hour/time.Microsecond), 3), make(map[time.Duration]int)
	spread := s.spread()
	begin := s.run.Begin.UnixMicro()
	for i, got := range s.got {
		place := spread.Place(recipientID(i))
		s.checkOne(line, i, got)
		line.Tasks++
		// One that was held over a kill is due when its hold had ended.
		if off := got.due - begin - place.Microseconds(); off != 0 && got.first == 1 || off < 0 {
			line.Broken[misplaced]++
		}
		if got.at < got.due {
			line.Broken[early]++
		}
		_ = late.RecordValue(max(1, got.at-got.due))
		grains[place]++
	}
	slack := s.slack(line)
	for i := range s.Recipients {
		if _, got := s.got[i]; !got && !s.excused(i, slack) {
			line.Broken[none]++
		}
	}
	line.LateMS = lateness.Of(late)
	s.weighGrains(line, grains)
	s.countChanges(line)
}

// spread is how the run goes through the audience.
func (o *audienceOptions) spread() *ledger.Spread {
	return &ledger.Spread{Shards: o.Shards, WindowMS: o.Window.Milliseconds(), GrainMS: o.Grain.Milliseconds()}
}

// checkOne checks the handler starts of one recipient.
func (s *audienceShow) checkOne(line *audienceLine, i int, got started) {
	line.Broken[twice] += int(got.twice)
	c, changed := s.changed[i]
	switch {
	case i >= s.Recipients || i < 0:
		line.Broken[joinedIn]++
	case changed && (c.kind == optsOut || c.kind == leaves) && c.answered.UnixMicro() < got.created:
		line.Broken[unwanted]++
	}
}

// slack is how late a task may have been made, behind its place.
func (s *audienceShow) slack(line *audienceLine) time.Duration {
	if s.Kill {
		return killedFor
	}
	return time.Duration(line.BehindMS)*time.Millisecond + 2*time.Second
}

// excused reports whether a recipient may have got nothing: it had opted out or left when its
// task was made, which is before its place or so much behind it.
func (s *audienceShow) excused(i int, slack time.Duration) bool {
	c, changed := s.changed[i]
	if !changed || c.kind != optsOut && c.kind != leaves {
		return false
	}
	return c.asked.Before(s.run.Begin.Add(s.spread().Place(recipientID(i)) + slack))
}

// weighGrains finds the grain whose count is farthest from what is to be expected. The last
// one may be shorter.
func (s *audienceShow) weighGrains(line *audienceLine, grains map[time.Duration]int) {
	for at := time.Duration(0); at < s.Window; at += s.Grain {
		p := float64(min(s.Grain, s.Window-at)) / float64(s.Window)
		mean, sigma := float64(line.Tasks)*p, math.Sqrt(float64(line.Tasks)*p*(1-p))
		if sigma == 0 {
			continue
		}
		off := math.Abs(float64(grains[at])-mean) / sigma
		line.GrainSigma = result.Round(max(line.GrainSigma, off), 2)
		if off > mostSigma && mean >= 1000 {
			line.Broken[uneven]++
		}
	}
}

func (s *audienceShow) countChanges(line *audienceLine) {
	for _, c := range s.changed {
		switch c.kind {
		case optsOut:
			line.Changed.OptOuts++
		case moves:
			line.Changed.Moves++
		case leaves:
			line.Changed.Leaves++
		case joins:
			line.Changed.Joins++
		}
	}
}

package plan

import (
	"math/rand/v2"
	"time"
)

// End is how the end of a task is waited for, or brought about.
type End struct {
	At       time.Duration
	Wait     time.Duration
	Cancel   bool
	OrDelete bool
}

// Stubborn is how long a handler works for a task that is to be cancelled, unless it is.
const Stubborn = time.Second

// Cancelled reports whether a task is one of those.
func Cancelled(seed uint64, id string) bool {
	return topicOf(seed, id) == Kept && Draw(seed, id, "cancel")%3 == 0
}

// planEnds plans the waits for a task, and its cancels. They are after deliveries of its
// topic go on.
func (t *Task) planEnds(r *rand.Rand, c *Config) {
	due := max(t.Due, PausedFor(c.For))
	if Cancelled(c.Seed, t.ID) {
		t.Fate = Ordinary
		for range 1 + r.IntN(2) {
			e := End{Cancel: true, OrDelete: r.IntN(8) == 0}
			e.At = due + time.Duration(r.Int64N(int64(700*time.Millisecond)))
			if r.IntN(2) == 0 {
				e.Wait = 1500 * time.Millisecond
			}
			t.Ends = append(t.Ends, e)
		}
	}
	if r.IntN(2) == 0 {
		t.Ends = append(t.Ends, End{At: t.Send + 100*time.Millisecond + time.Duration(r.Int64N(int64(due-t.Send)+1)), Wait: 1500 * time.Millisecond})
	}
}

// PausedFor is how long deliveries of one topic are paused, in a round of a length.
func PausedFor(span time.Duration) time.Duration { return span / 2 }

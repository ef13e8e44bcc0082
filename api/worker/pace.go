package worker

import "time"

// settleGap is how long outcomes wait for the answer to the frame before them,
// unless there is a reason to hurry. Where answers come sooner, frames grow with
// the load instead of their number.
const settleGap = 3 * time.Millisecond

// patience is how many outcomes wait at most.
const patience = frameSettles / 4

// pace says when a session sends what it has to say.
type pace struct {
	asked int       // frames with settlements that are not answered
	spoke time.Time // when the last of them was made
	quiet bool      // the writer waits for an answer
}

// patient reports whether so many outcomes can wait for the answer to what was said last.
func (p *pace) patient(outcomes int) bool { return p.asked > 0 && outcomes < patience }

// pause is how long they wait from now on.
func (p *pace) pause(now time.Time) time.Duration { return max(0, settleGap-now.Sub(p.spoke)) }

package worker

import "time"

// settleGap is how long outcomes wait for the answer to the frame before them,
// unless there is a reason to hurry. Where answers come sooner, frames grow with
// the load instead of their number.
const settleGap = 3 * time.Millisecond

// patience is how many outcomes wait at most.
const patience = frameSettles / 4

// patient reports whether what there is to say to the current session can wait
// for the answer to what was said last; mu is held. It cannot when the server is
// about to run out of credit: then tasks would wait with it.
func (s *subscription) patient() bool {
	return len(s.unanswered) > 0 && len(s.settle) < patience && len(s.extend) == 0 &&
		2*s.credit >= s.limit && !s.stopping && !s.current.draining
}

// pause is how long the current session keeps quiet, 0 when it does not; mu is held.
func (s *subscription) pause() time.Duration {
	if !s.patient() {
		return 0
	}
	return max(0, settleGap-time.Since(s.spoke))
}

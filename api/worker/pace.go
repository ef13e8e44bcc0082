package worker

import "time"

// settleGap is how long outcomes wait for the answer to the frame before them,
// unless there is a reason to hurry. Where answers come sooner, frames grow with
// the load instead of their number.
const settleGap = 3 * time.Millisecond

// patience is how many outcomes wait at most.
const patience = frameSettles / 4

// patient reports whether what there is to say on x can wait for the answer to
// what was said last; mu is held. It cannot when the server is about to run out of
// credit: then tasks would wait with it.
func (s *subscription) patient(x *session) bool {
	if x.asked == 0 || len(x.settle) >= patience || len(x.extend) > 0 || s.stopping || x.draining {
		return false
	}
	if x.onDemand {
		return x.granting == 0
	}
	return 2*x.credit >= s.most()
}

// pause is how long x keeps quiet, 0 when it does not; mu is held.
func (s *subscription) pause(x *session) time.Duration {
	if !s.patient(x) {
		return 0
	}
	return max(0, settleGap-time.Since(x.spoke))
}

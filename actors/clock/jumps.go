package clock

import (
	"sync"
	"time"
)

// JumpPause is the least time between two reactions to clocks that jump.
const JumpPause = time.Second

// JumpLimit bounds what a node does about clocks that jump: every reaction reads the
// windows of shards anew, which brings stamps, which may tell of jumps again.
type JumpLimit struct {
	mu   sync.Mutex // guards what follows
	last time.Time  // of the last reaction
	due  int        // reactions that are still to come
}

// Ask reports whether to react now. Each jump is reacted to at once, or when JumpPause
// has passed, and once more after that: nodes tell an owner only what is due soon by
// their clock, and others notice a jump later.
func (l *JumpLimit) Ask() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.due = 2
	return l.take()
}

// Again reports whether it is time for a reaction that is still to come.
func (l *JumpLimit) Again() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.take()
}

func (l *JumpLimit) take() bool {
	if l.due == 0 || time.Since(l.last) < JumpPause {
		return false
	}
	l.due--
	l.last = time.Now()
	return true
}

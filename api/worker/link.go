package worker

// link is a session as its subscription sees it: the credit of its server, and what is to be
// said there.
type link struct {
	limit int           // tasks in flight that the server agreed to
	wake  chan struct{} // there may be something to send
	heard chan struct{} // something was answered after it left

	// Guarded by subscription.mu.
	credit
	pace
	attached bool          // it speaks for the subscription
	settle   []*held       // outcomes to send
	extend   []*held       // holds to ask more of
	journal  []*checkpoint // to send
	single   bool          // an outcome that goes alone waits for the answer to what is in flight
}

// poke leaves a sign on c, which has room for one.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

package worker

// credit is how many deliveries the server of one session may still make. A server that is
// asked on demand (see ddqv1.Hello) says how many tasks are ready, and has credit for such
// tasks only. Any other has all the room that there is.
type credit struct {
	onDemand bool // never changes
	draining bool // nothing more is taken from it
	granted  int  // and not used
	wants    int  // tasks that are ready at the server and have no credit; on demand only
	unsent   int  // of granted: not sent yet; on demand only
}

// use counts n deliveries.
func (c *credit) use(n int) { c.granted = max(c.granted-n, 0) }

// demand records how many tasks are ready at the server, and how much credit found none.
func (c *credit) demand(ready, returned int) {
	c.granted = max(c.granted-returned, c.unsent)
	c.wants = ready
}

// withdraw ends what the server does not know of.
func (c *credit) withdraw() {
	c.granted -= c.unsent
	c.wants, c.unsent = 0, 0
}

// void ends all of it, with the session.
func (c *credit) void() { c.granted, c.wants, c.unsent = 0, 0, 0 }

// window bounds what a subscription has in flight and granted together, and shares it
// between the servers. It has no clock, no goroutine and no lock; the subscription owns it.
//
// Invariants:
//   - the credit of all servers + inFlight <= limit, unless a server sends unasked, and no
//     more is granted than adaptive allows
type window struct {
	limit    int            // as the servers agreed
	inFlight int            // tasks that were received, and have not gone through the pool
	adaptive *adaptiveLimit // nil when Config.MaxInFlight is obeyed as it is
	stopping bool           // takes nothing more

	credits []*credit // of the servers that deliver
	turn    int       // of credits: the next to be given room
}

// most is how many tasks may be in flight and granted.
func (w *window) most() int {
	if w.adaptive == nil {
		return w.limit
	}
	return min(w.limit, w.adaptive.most())
}

// room is how much more may be granted.
func (w *window) room() int {
	n := w.most() - w.inFlight
	for _, c := range w.credits {
		n -= c.granted
	}
	return n
}

// grant is what to grant in the frame that is about to be sent. unsettled are outcomes that
// the frame has no room for: the server counts their tasks still.
func (w *window) grant(c *credit, unsettled int) int {
	if w.stopping || c.draining {
		c.withdraw()
		return 0
	}
	if c.onDemand {
		n := c.unsent
		c.unsent = 0
		return n
	}
	n := max(w.room()-unsettled, 0)
	c.granted += n
	return n
}

// short reports whether the server is about to run out of credit, or has some to be told of.
func (w *window) short(c *credit) bool {
	if c.onDemand {
		return c.unsent > 0
	}
	return 2*c.granted < w.most()
}

// share gives the room there is to the tasks that are ready, of each server its share when
// there is not enough for all. What it gives is unsent.
func (w *window) share() {
	room, wanted := 0, 0
	for _, c := range w.credits {
		wanted += c.wants
	}
	if wanted > 0 && !w.stopping {
		room = w.room()
	}
	for i := range w.credits {
		if room <= 0 {
			break
		}
		c := w.credits[(w.turn+i)%len(w.credits)]
		if c.wants <= 0 || c.draining {
			wanted -= c.wants
			continue
		}
		n := c.wants
		if room < wanted {
			n = (n*room + wanted - 1) / wanted
		}
		wanted -= c.wants
		c.wants -= n
		c.granted += n
		c.unsent += n
		room -= n
	}
	w.turn++
}

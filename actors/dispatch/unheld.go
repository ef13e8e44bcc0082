package dispatch

// unheld counts assigned tasks that are not known to be held yet, by shard.
type unheld struct {
	n       int // of all shards
	byShard map[int]int
}

func (u *unheld) add(assigned []assignment) {
	for _, a := range assigned {
		if u.byShard == nil {
			u.byShard = make(map[int]int)
		}
		u.n += len(a.Tasks)
		u.byShard[a.Shard] += len(a.Tasks)
	}
}

// addOne is add of one task of a shard.
func (u *unheld) addOne(shard int) {
	if u.byShard == nil {
		u.byShard = make(map[int]int)
	}
	u.n++
	u.byShard[shard]++
}

// end counts n tasks of a shard out. A shard that started anew may report tasks that
// drop has counted out already.
func (u *unheld) end(shard, n int) {
	had := u.byShard[shard]
	n = min(n, had)
	u.n -= n
	if n < had {
		u.byShard[shard] = had - n
	} else {
		delete(u.byShard, shard)
	}
}

// drop counts out all tasks of a shard.
func (u *unheld) drop(shard int) { u.end(shard, u.byShard[shard]) }

// count begins to count assignments. Each one made from now on ends in one of three ways:
// held, unassign, or the end of its shard.
func (c *dispatcher) count() { c.counting = true }

// held records that n assigned tasks of a shard are held.
func (c *dispatcher) held(shard, n int) []assignment {
	c.unheld.end(shard, n)
	return c.match()
}

// unassign ends n counted assignments of a shard's tasks that came to nothing. The
// subscription may be gone. What is lent goes back first: its lender says whose turn it is. Else a node would use it for
// all of its tasks that become dead letters, one after the other.
func (c *dispatcher) unassign(to Address, n int) []assignment {
	c.unheld.end(to.Shard, n)
	s := c.sub(to.Sub)
	if s == nil || !s.OnDemand || c.limiter == nil {
		return c.refund(to.Sub, n) // credit on demand that finds no other task is void
	}
	s.InFlight = max(0, s.InFlight-n)
	if s.bytes != nil {
		s.bytes.Landed(n)
	}
	c.voided = append(c.voided, Void{s.ID, n})
	return c.match()
}

// shardEnded forgets the assignments of a shard that ended: nobody reports them.
func (c *dispatcher) shardEnded(shard int) []assignment {
	c.unheld.drop(shard)
	return c.match()
}

// bound sets how many tasks may be assigned and not held, 0 for any number.
func (c *dispatcher) bound(most int) []assignment {
	c.most = most
	return c.match()
}

// vacancy is how many tasks that became ready now could go.
func (c *dispatcher) vacancy() int {
	if c.paused {
		return 0
	}
	n := c.free()
	if c.paced {
		n = min(n, c.pace-c.reserved)
	}
	if c.most > 0 {
		n = min(n, c.most-c.unheld.n-c.reserved)
	}
	return max(0, n)
}

// widen raises the bound while at least half of it is used.
func (c *dispatcher) widen(held int) {
	if c.unheld.n > c.most/2 {
		c.most = min(c.most+held/4+1, mostUnheld)
	}
}

// narrow lowers the bound by a quarter.
func (c *dispatcher) narrow() { c.most = max(leastUnheld, c.most*3/4) }

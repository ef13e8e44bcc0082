package dispatch

// remoteNode is another node as the dispatcher sees it. Over each link to it the node may say how many tasks wait for
// credit there, and over which it does so is its choice. What it says over one link comes in order. Of two links the
// later word may come first, and a link may end with credit that the node never hears of. To believe too much costs a
// way to and fro: credit that finds no task comes back. To believe too little stops everything, as the node does not
// say again what this one should know. So the most of what was said counts.
//
// Invariant: once all is said and heard, no fewer tasks are taken to be ready than the node takes this one to know of.
type remoteNode struct {
	name  string
	said  map[int64]int // by subscription, over its link: tasks that were ready, and all that was asked for by then
	most  int           // of said
	asked int           // tasks that were asked for, but for what a link lost
}

// ready is how many tasks wait for credit there, as far as is known.
func (r *remoteNode) ready() int { return max(0, r.most-r.asked) }

// say records what the node says over the link of a subscription.
func (r *remoteNode) say(sub int64, ready int) {
	r.said[sub] = ready + r.asked
	r.compare()
}

// hush forgets what it said over a link that ended.
func (r *remoteNode) hush(sub int64) {
	delete(r.said, sub)
	r.compare()
}

func (r *remoteNode) compare() {
	r.most = 0
	for _, n := range r.said {
		r.most = max(r.most, n)
	}
}

// remoteNodes are the other nodes with shards of a topic.
type remoteNodes []*remoteNode

// of returns a node, which is added when it is not known.
func (all *remoteNodes) of(node string) *remoteNode {
	for _, r := range *all {
		if r.name == node {
			return r
		}
	}
	r := &remoteNode{name: node, said: make(map[int64]int)}
	*all = append(*all, r)
	return r
}

// link says that a node can be asked on behalf of a subscription.
func (c *dispatcher) link(id int64, node string) []assignment {
	if s := c.sub(id); s != nil {
		if s.links == nil {
			s.links = make(map[string]bool)
		}
		s.links[node] = true
	}
	return c.match()
}

// unlink says that a node can be asked on behalf of a subscription no more. So many tasks that were asked for did not
// come: the node may not have heard that they were.
func (c *dispatcher) unlink(id int64, node string, missing int) []assignment {
	r := c.remotes.of(node)
	r.hush(id)
	r.asked -= missing
	if s := c.sub(id); s != nil {
		delete(s.links, node)
	}
	return c.refund(id, missing)
}

// demand records how many tasks wait for credit at another node, as it says over the link of a subscription.
func (c *dispatcher) demand(id int64, node string, ready int) []assignment {
	c.remotes.of(node).say(id, ready)
	return c.match()
}

// askRemotes gives room to tasks of other nodes. When there is not enough for all
// tasks, each node has its share of it, this one too: tasks do not wait longer for
// being elsewhere.
func (c *dispatcher) askRemotes() {
	if len(c.remotes) == 0 {
		return
	}
	for i, n := range c.shares(min(c.room(), c.free())) {
		r := c.remotes[i]
		if c.paced {
			n = min(n, c.asks)
		}
		c.deal(min(n, c.free()), r.name, func(s *subState, share int) {
			c.asked = append(c.asked, Ask{s.ID, r.name, share})
			r.asked += share
			c.asks -= share
		})
	}
}

// shares is how much of the room each other node has. What cannot be divided goes round, over this node too.
func (c *dispatcher) shares(room int) []int {
	shares, ready := make([]int, len(c.remotes)), make([]int, len(c.remotes)+1)
	own := len(c.remotes) // the last of ready
	ready[own] = c.deliverable()
	all := ready[own]
	for i, r := range c.remotes {
		if n := r.ready(); n > 0 && c.open(r.name) > 0 {
			ready[i] = n
			all += n
		}
	}
	if room >= all {
		return ready[:own]
	}
	left := room
	for i, n := range ready {
		n = n * room / all
		ready[i] -= n
		left -= n
		if i < own {
			shares[i] = n
		}
	}
	for ; left > 0; c.dealt++ {
		i := c.dealt % len(ready)
		if ready[i] == 0 {
			continue
		}
		ready[i]--
		left--
		if i < own {
			shares[i]++
		}
	}
	return shares
}

package dispatch

import "fmt"

// Check returns what does not add up, empty when all does. It holds after every method;
// of subscriptions whose bytes have become free, once Roomy has been called.
func (t *Topic) Check() string {
	c := &t.core
	if room := c.room(); t.limiter == nil && !c.paused && c.deliverable() > 0 && room > 0 {
		return fmt.Sprintf("%d tasks may be handed out, and there is room for %d", c.deliverable(), room)
	}
	for _, s := range c.subs {
		if s.Credit < 0 || s.Credit > s.Max {
			return fmt.Sprintf("subscription %d has credit %d of %d", s.ID, s.Credit, s.Max)
		}
	}
	if t.limiter == nil {
		return ""
	}
	reserved := len(t.limiter.coming)
	if t.limiter.call != nil {
		reserved += t.limiter.call.Room
	}
	if c.reserved != reserved {
		return fmt.Sprintf("room for %d is reserved, and %d are counted", reserved, c.reserved)
	}
	if room := t.limiter.through(c.vacancy()); room > 0 && t.limiter.call == nil && t.limiter.offer() > 0 {
		return fmt.Sprintf("%d tasks could go, there is room for %d, and nobody asks", t.limiter.offer(), room)
	}
	if at := t.limiter.wakeAt(); !at.IsZero() && (t.armed.IsZero() || t.armed.After(at)) {
		return fmt.Sprintf("something waits until %v, and nobody looks before %v", at, t.armed)
	}
	if since := t.Pressing(); since.IsZero() == t.pressing() {
		return fmt.Sprintf("a task could go: %v, and that is so since %v", t.pressing(), since)
	}
	return t.limiter.check()
}

// check returns what does not add up in the limiter.
func (g *limiter) check() string {
	open, tasks := make(map[*limitKey]int), taskCounts{}
	for key, gr := range g.groups {
		switch {
		case gr.len() == 0 && gr.asked <= 0:
			return fmt.Sprintf("%v is empty, and known", key)
		case gr.len() == 0 && (gr.open || gr.parked != nil):
			return fmt.Sprintf("%v is empty, and in a place", key)
		case gr.len() > 0 && gr.open == (gr.parked != nil):
			return fmt.Sprintf("%v is not in one place", key)
		}
		for _, k := range gr.keys {
			if k != nil && gr.open {
				open[k]++
			}
			if k != nil && g.by[k.keyName] != k {
				return fmt.Sprintf("%v has a key %v that is not known", key, k.keyName)
			}
		}
		switch {
		case gr.open:
			tasks.open += gr.len()
		case gr.parked != nil && gr.parked.rate:
			tasks.noToken += gr.len()
		case gr.parked != nil:
			tasks.noPermit += gr.len()
		}
	}
	if tasks != g.counts {
		return fmt.Sprintf("there are %+v tasks, and %+v are counted", tasks, g.counts)
	}
	for name, k := range g.by {
		switch {
		case k.open != open[k]:
			return fmt.Sprintf("%v: %d groups are open, and it counts %d", name, open[k], k.open)
		case k.closed && k.again.IsZero():
			return fmt.Sprintf("%v is closed, and nobody looks at it again", name)
		case k.open < k.wanted() && len(k.parked) > 0:
			return fmt.Sprintf("%v: %d groups are open of %d, and %d are parked", name, k.open, k.wanted(), len(k.parked))
		}
	}
	return ""
}

// Taking reports whether a TakeCall is on its way.
func (t *Topic) Taking() bool { return t.limiter != nil && t.limiter.call != nil }

// Unheld is how many assigned tasks are not known to be held or refunded.
func (t *Topic) Unheld() int { return t.core.unheld.n }

// Account is what a topic counts for a subscription.
type Account struct {
	ID                    int64
	Max, Credit, InFlight int
}

// Accounts are those of all subscriptions, in turn order.
func (t *Topic) Accounts() (all []Account) {
	for _, s := range t.core.subs {
		all = append(all, Account{s.ID, s.Max, s.Credit, s.InFlight})
	}
	return all
}

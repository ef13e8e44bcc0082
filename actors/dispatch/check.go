package dispatch

import (
	"fmt"
	"slices"
)

// Check returns what does not add up, empty when all does. It holds after every method;
// of subscriptions whose bytes have become free, once Roomy has been called.
func (t *Topic) Check() string {
	c := &t.core
	if room := c.room(); !c.paused && c.deliverable() > 0 && room > 0 {
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
	v := c.vacancy()
	if len(t.limiter.windows) > 0 && v.room > t.limiter.coming {
		return fmt.Sprintf("%d windows want tokens, and there is room for %d tasks", len(t.limiter.windows), v.room)
	}
	if i := slices.IndexFunc(t.limiter.windows, func(r *rateLimit) bool { return r.len() > 0 && v.elsewhere(r) > 0 }); i >= 0 {
		return fmt.Sprintf("window %q wants tokens, and workers of other nodes would come", t.limiter.windows[i].key)
	}
	return t.limiter.check()
}

// check returns what does not add up in the limiter.
func (g *limiter) check() string {
	out, asking := map[*capLimit]int{}, map[*capLimit]int{}
	for _, t := range g.tickets {
		for _, c := range t.claims {
			out[c]++
		}
		if t.stage == acquiring {
			for _, c := range g.capsOf(t) {
				asking[c]++
			}
		}
		if t.stage == waiting && t.queue == nil {
			return fmt.Sprintf("%s waits in no queue", t.ID)
		}
	}
	for key, c := range g.caps {
		switch {
		case c.out != out[c]:
			return fmt.Sprintf("cap %q: %d were let out, and it counts %d", key, out[c], c.out)
		case c.asking < asking[c]:
			return fmt.Sprintf("cap %q: %d ask for a permit, and it counts %d", key, asking[c], c.asking)
		}
	}
	return ""
}

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

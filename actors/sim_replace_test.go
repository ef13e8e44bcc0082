package actors_test

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/ddq-io/ddq/actors/audience"
	"github.com/ddq-io/ddq/store"
)

// All recipients of the audience may be replaced, by users who begin with that, bring some of them, and
// end it or do not. Another replacement may take the place of one that is under way. Who was brought
// stays, who was not goes when it ends, and nobody goes before.

// simGeneration is the last replacement in one shard.
type simGeneration struct {
	number  int64
	open    bool
	brought map[string]bool // who was put since it began
}

// replaceNowAndThen has users replace all recipients, in some runs.
func (s *sim) replaceNowAndThen(rng *rand.Rand) {
	if rng.IntN(2) == 0 {
		return
	}
	var next func()
	next = func() {
		if time.Since(s.start) > s.plan.active || s.audience.ended {
			return
		}
		if n := s.anyNode(); n != nil {
			s.replaceOn(n)
		}
		s.after(s.between(0, 15*time.Second), next)
	}
	s.after(s.between(0, time.Minute), next)
}

// replaceOn has a user ask a node for the next part of a replacement.
func (s *sim) replaceOn(n *simNode) {
	a := s.audience
	switch {
	case a.known == 0 || s.chance(0.1):
		s.askForReplacement(n)
	case s.chance(0.7):
		s.bring(n)
	case s.chance(0.5):
		s.askForEnd(n)
	default:
		s.endAtOnce()
	}
}

func (s *sim) askForReplacement(n *simNode) {
	a := s.audience
	s.log("a user asks %s for a replacement", n.key)
	var number int64
	before := a.known // another user may ask meanwhile, and have the answer first
	s.askAudience(n, &simAsk{replaces: true}, func(ctx context.Context) (err error) {
		number, err = n.use.Audiences.Replace(ctx, simUsers)
		return err
	}, func(err error) {
		if err != nil {
			return
		}
		if number <= before {
			s.broken("a replacement has the number %d, after %d", number, before)
		}
		a.known = max(a.known, number)
	})
}

// bring has a user put some recipients as a part of a replacement: as they are mostly.
func (s *sim) bring(n *simNode) {
	a := s.audience
	asked := &simAsk{generation: a.known}
	for _, id := range a.ids {
		if !s.chance(0.4) {
			continue
		}
		c := &simChange{Change: audience.Change{ID: id, Put: drawRecipient(s.rng, id)}}
		if now := a.at(id, a.moment); now.joined > 0 && s.chance(0.8) {
			c.Put = &now.as
		}
		asked.changes = append(asked.changes, c)
	}
	if len(asked.changes) > 0 {
		s.log("a user brings %s %d recipients of replacement %d", n.key, len(asked.changes), a.known)
		s.askForChanges(n, asked)
	}
}

func (s *sim) askForEnd(n *simNode) {
	a := s.audience
	number, asked := a.known, &simAsk{ends: true, generation: a.known}
	s.log("a user asks %s for the end of replacement %d", n.key, number)
	var removed int64
	s.askAudience(n, asked, func(ctx context.Context) (err error) {
		removed, err = n.use.Audiences.EndReplacement(ctx, simUsers, number)
		return err
	}, func(err error) {
		if err != nil {
			return
		}
		if removed != asked.removed {
			s.broken("miscounted: the end of replacement %d removed %d recipients, and says %d", number, asked.removed, removed)
		}
		if a.known == number {
			a.known = 0
		}
	})
}

// endAtOnce has a replacement ended by a user who is answered always, and looks at few leaves at a time.
func (s *sim) endAtOnce() {
	a := s.audience
	for n := range a.Shards {
		s.sweepFrom(n, a.known, audience.Cursor{})
	}
	a.known = 0
}

func (s *sim) sweepFrom(n int, number int64, from audience.Cursor) {
	a, asked := s.audience, &simAsk{ends: true, generation: number}
	if a.ended || !a.shards[n].open || a.shards[n].number != number {
		return
	}
	var next audience.Cursor
	more := false
	s.changeShard(n, asked, func(d *audience.Directory) (store.Commit, error) {
		var leaves []store.CellID
		leaves, next, more = d.Page(from, 1+s.rng.IntN(4))
		v, err := s.access().ViewToSweep(simContext, a.Audience, n, d, leaves)
		if err != nil {
			return store.Commit{}, err
		}
		c, _ := v.Sweep(leaves)
		return c, nil
	})
	if more {
		s.after(s.between(0, 5*time.Second), func() { s.sweepFrom(n, number, next) })
		return
	}
	s.changeShard(n, asked, func(d *audience.Directory) (store.Commit, error) {
		c, _ := d.EndReplacement(number)
		return c, nil
	})
}

// replacementBegins writes down that one does in a shard.
func (s *sim) replacementBegins(sh store.Shard) {
	_, dir := s.recipientsIn(sh)
	g := &s.audience.shards[sh.N]
	if !dir.Replacing || dir.Generation <= g.number {
		s.broken("replacement %d begins in %v after %d", dir.Generation, sh, g.number)
	}
	*g = simGeneration{number: dir.Generation, open: true, brought: make(map[string]bool)}
}

// brought writes down who is put in a shard.
func (s *sim) brought(sh store.Shard, asked *simAsk) {
	g := &s.audience.shards[sh.N]
	if asked.generation != 0 && (!g.open || g.number != asked.generation) {
		s.broken("somebody is brought to %v by replacement %d, and the last is %d, open: %v", sh, asked.generation, g.number, g.open)
	}
	for _, c := range asked.changes {
		if g.open {
			g.brought[c.ID] = true
		}
	}
}

// swept writes down who goes at the end of a replacement, and looks whether nobody else does.
func (s *sim) swept(sh store.Shard, asked *simAsk) {
	a, g := s.audience, &s.audience.shards[sh.N]
	if g.number != asked.generation || !g.open {
		s.broken("replacement %d ends in %v, and the last is %d, open: %v", asked.generation, sh, g.number, g.open)
	}
	found, dir := s.recipientsIn(sh)
	g.open = dir.Replacing
	for _, id := range a.in(sh.N) {
		_, there := found[id]
		switch {
		case !a.isOne(id):
		case there && !g.open && !g.brought[id]:
			s.broken("outlasts: %s was not brought by replacement %d, which is over", id, g.number)
		case there:
		case g.brought[id]:
			s.broken("swept away: %s was brought by replacement %d", id, g.number)
			fallthrough
		default:
			asked.removed++
			a.leave(id)
		}
	}
}

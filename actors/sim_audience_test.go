package actors_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ddq-io/ddq/actors/audience"
	"github.com/ddq-io/ddq/actors/audience/access"
	"github.com/ddq-io/ddq/api/service/audiences"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// A run may have an audience, whose recipients join, leave, opt out and move between time zones
// while the runs of a schedule go through it. Users ask nodes, or are answered at once and always,
// as for schedules. What each recipient was, from which change of the audience on, is written down
// here when the change is committed, and without a look at what the product makes of it; see
// simRun for what is judged by that.

const (
	simUsers  = "users"
	simMails  = "mails" // the schedule that has the audience
	simShards = 2       // of the audience
	simLeaf   = 4       // recipients of a leaf that a change splits, where no node makes it
)

// simZones are the time zones of recipients, and how far ahead of UTC they are as a run begins.
var simZones = map[string]time.Duration{
	"UTC": 0, "Asia/Tokyo": 9 * time.Hour, "Europe/Berlin": time.Hour, "America/New_York": -5 * time.Hour,
}

var simZoneNames = []string{"America/New_York", "Asia/Tokyo", "Europe/Berlin", "UTC"}

// simKinds are what the tasks of the audience can be about.
var simKinds = []audience.NamedKind{{Name: "digest"}, {Name: "news", Off: true}}

// simAudience is the audience as the model knows it.
type simAudience struct {
	*audience.Audience
	moment int                   // how many changes of its shards there were
	ids    []string              // of all who may be recipients
	people map[string][]simState // in order of their moments
	runs   map[string]*simRun
	begun  []*simRun // in the order in which they were made
	reads  map[simRead]int
	busy   map[*simNode]bool // a user waits for its answer
}

// simState is what somebody is from a moment on.
type simState struct {
	since  int
	joined int // the moment at which they became a recipient; 0: they are none
	as     audience.Recipient
}

// simRead is a read of recipients: of one shard of the audience, by what a node does in one turn.
type simRead struct {
	turn  simTurn
	shard int
}

// simChange is a change of one recipient that a user asks for.
type simChange struct {
	audience.Change
	made bool
}

// simAsked is under which a call of a user has its change in the context.
type simAsked struct{}

// drawAudience draws how many people there are for an audience, from a source of its own like
// drawIdle.
func (s *sim) drawAudience(p *simPlan) int {
	rng := rand.New(rand.NewPCG(s.seed, 30))
	if rng.Float64() < 0.7 || p.rewind > 0 || p.drops > 0 {
		return 0
	}
	return 12 + rng.IntN(50)
}

// gather makes the audience of the plan, and the schedule that has it.
func (s *sim) gather() {
	if s.plan.audience == 0 {
		return
	}
	rng := rand.New(rand.NewPCG(s.seed, 31))
	a := &simAudience{
		Audience: &audience.Audience{Name: simUsers, Life: rng.Uint64() | 1, Shards: simShards, FallbackZone: "UTC", Kinds: simKinds, Created: 1},
		people:   make(map[string][]simState), runs: make(map[string]*simRun), reads: make(map[simRead]int), busy: make(map[*simNode]bool),
	}
	s.audience = a
	if made, err := s.access().Commit(simContext, audience.Catalog(), a.Commit()); err != nil || !made {
		panic(fmt.Sprint("the audience is not made: ", err))
	}
	for i := range s.plan.audience {
		id := fmt.Sprint("user", i)
		a.ids = append(a.ids, id)
		if i%5 > 0 { // the others may join
			s.changeRecipient(&simChange{Change: audience.Change{ID: id, Put: drawRecipient(rng, id)}})
		}
	}
	s.mail(rng)
	s.unrest()
}

func (s *sim) access() access.Access {
	s.on(store.Shard{})
	return access.Access{Store: s.mem, Random: s.rng.Float64}
}

// drawRecipient draws what somebody is to be. Quiet hours are some minutes of the run.
func drawRecipient(rng *rand.Rand, id string) *audience.Recipient {
	r := &audience.Recipient{ID: id, Zone: simZoneNames[rng.IntN(len(simZoneNames))], Data: fmt.Append(nil, rng.IntN(1000))}
	r.Disabled = rng.IntN(8) == 0
	if rng.IntN(4) == 0 {
		r.Off = 1
	}
	if rng.IntN(2) == 0 {
		r.On = 2
	}
	if rng.IntN(4) == 0 {
		day := int((simZones[r.Zone]/time.Minute + 24*60) % (24 * 60))
		from := rng.IntN(4)
		r.Quiet = audience.Quiet{From: uint16(day + from), To: uint16(day + from + 1 + rng.IntN(2))}
	}
	return r
}

// unrest has recipients change until the producers stop, and runs be cancelled.
func (s *sim) unrest() {
	var next func()
	next = func() {
		if time.Since(s.start) > s.plan.active {
			return
		}
		if s.chance(0.04) {
			s.cancelRun()
		} else {
			s.askForChange(s.drawChange())
		}
		s.after(s.between(0, 10*time.Second), next)
	}
	s.after(s.between(0, 10*time.Second), next)
}

// audienceRead writes down when a turn reads recipients, and changes one now and then while somebody
// makes up their mind by what was read.
func (s *sim) audienceRead(turn simTurn, sh store.Shard, ids []store.CellID) {
	if !s.isAudience(sh) {
		return
	}
	if ids[0].Kind() == audience.LeafKind {
		s.audience.reads[simRead{turn, sh.N}] = s.audience.moment
	}
	if time.Since(s.start) < s.plan.active && s.chance(0.1) {
		c := s.drawChange()
		s.after(s.between(0, 5*time.Millisecond), func() { s.changeRecipient(c) })
	}
}

// drawChange draws a change of somebody, in one thing mostly.
func (s *sim) drawChange() *simChange {
	a := s.audience
	c := &simChange{Change: audience.Change{ID: a.ids[s.rng.IntN(len(a.ids))]}}
	now := a.at(c.ID, a.moment)
	if now.joined > 0 && s.chance(0.25) {
		return c
	}
	drawn := drawRecipient(s.rng, c.ID)
	if c.Put = drawn; now.joined == 0 {
		return c
	}
	other := now.as
	switch s.rng.IntN(5) {
	case 0:
		other.Zone = drawn.Zone
	case 1:
		other.On, other.Off = 2-other.On, 1-other.Off
	case 2:
		other.Disabled = !other.Disabled
	case 3:
		other.Quiet, other.Data = drawn.Quiet, drawn.Data
	default:
		other = *drawn
	}
	c.Put = &other
	return c
}

// askForChange has a user ask some node for a change, or be answered at once. A node is asked for
// one at a time.
func (s *sim) askForChange(c *simChange) {
	n := s.anyNode()
	if n == nil || s.chance(0.3) {
		s.changeRecipient(c)
		return
	}
	if s.audience.busy[n] {
		return
	}
	s.audience.busy[n] = true
	s.log("a user asks %s for a change of %s: %+v", n.key, c.ID, c.Put)
	var got []audiences.Put
	s.spawn(n, func() (err error) {
		ctx, cancel := n.timeout()
		defer cancel()
		ctx = context.WithValue(ctx, simAsked{}, c)
		if c.Put == nil {
			got, err = n.use.Audiences.Remove(ctx, simUsers, []string{c.ID})
		} else {
			got, err = n.use.Audiences.Put(ctx, simUsers, 0, []audiences.Recipient{told(c.Put)})
		}
		return err
	}, func(err error) {
		delete(s.audience.busy, n)
		if err == nil && (got[0].Err != nil || got[0].Outcome != audience.Same && !c.made) {
			s.broken("mistold: a change of %s was answered with %+v, and it was made: %v", c.ID, got[0], c.made)
		}
	})
}

// told is a recipient as users say it.
func told(r *audience.Recipient) audiences.Recipient {
	out := audiences.Recipient{ID: r.ID, Zone: r.Zone, Disabled: r.Disabled, Data: r.Data}
	if r.Off != 0 {
		out.Off = []string{"digest"}
	}
	if r.On != 0 {
		out.On = []string{"news"}
	}
	if r.Quiet != (audience.Quiet{}) {
		clock := func(minute uint16) string { return fmt.Sprintf("%02d:%02d", minute/60, minute%60) }
		out.Quiet = audiences.QuietHours{From: clock(r.Quiet.From), To: clock(r.Quiet.To)}
	}
	return out
}

// changeRecipient makes a change of a user, which is answered at once, in leaves that are small.
func (s *sim) changeRecipient(c *simChange) {
	a := s.audience
	n, _ := audience.Locate(c.ID, a.Shards)
	sh := a.Shard(n)
	var made store.Commit
	err := s.access().Change(simContext, a.Audience, n, func(d *audience.Directory) (store.Commit, error) {
		v, err := s.access().View(simContext, a.Audience, n, d, d.Covering([]string{c.ID}))
		if err != nil {
			return store.Commit{}, err
		}
		made, _ = v.Apply([]audience.Change{c.Change}, audience.Limits{Leaf: simLeaf, Recipients: 1 << 20})
		return made, nil
	})
	if err != nil {
		panic(err) // nobody changes it meanwhile
	}
	if len(made.Puts) > 0 {
		s.audienceChanged(sh, &made, c)
	}
}

func (s *sim) isAudience(sh store.Shard) bool {
	return s.audience != nil && sh.Topic == s.audience.Shard(0).Topic
}

// audienceChanged writes down what a commit changed in a shard of the audience: somebody, as asked,
// or the runs that go through it.
func (s *sim) audienceChanged(sh store.Shard, c *store.Commit, asked *simChange) {
	a := s.audience
	a.moment++
	if asked != nil {
		a.change(asked)
	}
	for _, put := range c.Puts {
		switch put.ID {
		case audience.DirectoryID:
			dir, err := audience.DecodeDirectory(put.Cell)
			if err != nil {
				s.broken("the directory of %v cannot be read: %v", sh, err)
				continue
			}
			for _, r := range dir.Runs {
				a.noteRun(r.ID, sh.N)
			}
		case audience.PastRunsID:
			s.remembered(put.Cell)
		}
	}
	s.compareAudience(sh)
}

func (a *simAudience) change(c *simChange) {
	c.made = true
	next := simState{since: a.moment}
	if c.Put != nil {
		next.as, next.joined = *c.Put, a.at(c.ID, a.moment).joined
		if next.joined == 0 {
			next.joined = a.moment
		}
	}
	a.people[c.ID] = append(a.people[c.ID], next)
}

// at is what somebody was at a moment.
func (a *simAudience) at(id string, moment int) (was simState) {
	for _, st := range a.people[id] {
		if st.since <= moment {
			was = st
		}
	}
	return was
}

// compareAudience looks whether a shard has who is a recipient, as they are, and nobody else.
func (s *sim) compareAudience(sh store.Shard) {
	a := s.audience
	dir, err := s.access().Directory(simContext, a.Audience, sh.N)
	if err != nil {
		panic(err) // memstore fails only when it is closed
	}
	leaves, _, _ := dir.Page(audience.Cursor{}, 1<<20)
	view, err := s.access().View(simContext, a.Audience, sh.N, dir, leaves)
	if err != nil {
		s.broken("the leaves of %v cannot be read: %v", sh, err)
		return
	}
	found := make(map[string]audience.Recipient)
	for _, id := range leaves {
		for e := range view.Leaves[id].From(audience.Cursor{}) {
			if _, twice := found[e.ID]; twice {
				s.broken("twinned: %s is in two leaves of %v", e.ID, sh)
			}
			found[e.ID] = e.Recipient
		}
	}
	for _, id := range a.ids {
		is, there := found[id]
		now := a.at(id, a.moment)
		if n, _ := simLocate(id); n == sh.N && (there != (now.joined > 0) || there && !sameRecipient(&is, &now.as)) {
			s.broken("garbled: %s is %+v (%v), and is to be %+v (%v)", id, is, there, now.as, now.joined > 0)
		}
	}
	if int64(len(found)) != dir.Recipients() {
		s.broken("miscounted: %v has %d recipients, and counts %d", sh, len(found), dir.Recipients())
	}
}

func sameRecipient(a, b *audience.Recipient) bool {
	return a.Zone == b.Zone && a.Preferences == b.Preferences && slices.Equal(a.Data, b.Data)
}

// simLocate is in which shard of the audience somebody is, and where there.
func simLocate(id string) (shard int, at uint64) {
	hash := place.HashID(id)
	return int(hash / (1 << 63)), hash % (1 << 63) * simShards
}

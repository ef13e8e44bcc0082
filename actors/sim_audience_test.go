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
// while the runs of schedules go through it, and which is replaced as a whole, or deleted. Users ask
// nodes, or are answered at once and always, as for schedules. What each recipient was, from which change of the audience on, is written down
// here when the change is committed, and without a look at what the product makes of it; see
// simRun for what is judged by that.

const (
	simUsers  = "users"
	simMails  = "mails"  // the schedule that has the audience
	simLocals = "locals" // and one whose runs go by the clocks of recipients
	simShards = 2        // of the audience
	simLeaf   = 4        // recipients of a leaf that a change splits, where no node makes it
)

// simZones are the time zones of recipients, and how far ahead of UTC they are as a run begins. Two
// of them have the same clock.
var simZones = map[string]time.Duration{
	"UTC": 0, "Asia/Tokyo": 9 * time.Hour, "Europe/London": 0, "America/New_York": -5 * time.Hour,
}

var simZoneNames = []string{"America/New_York", "Asia/Tokyo", "Europe/London", "UTC"}

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

	shards [simShards]simGeneration
	known  int64 // the replacement that a user was told of last; 0: it is over for all they know

	local              bool // a schedule has it whose runs go by the clocks of recipients
	dissolved, dropped bool // it is to be deleted, and no schedule has it any more
	ended, gone        bool // it is being deleted, and is
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

// simAsk is what a call of a user asks for; simAsked is under which the context has it.
type simAsk struct {
	changes        []*simChange
	generation     int64 // the replacement that changes are a part of; 0: none
	replaces, ends bool
	removed        int64 // by the end of a replacement
}

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
	a.dissolved = rng.IntN(3) == 0
	a.local = !a.dissolved && rng.IntN(2) == 0
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
	if a.local {
		s.mailLocally(rng)
	}
	s.unrest()
	s.replaceNowAndThen(rng)
	s.dissolve(rng)
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
		if time.Since(s.start) > s.plan.active || s.audience.ended {
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

// askForChange has a user ask some node for a change, or be answered at once.
func (s *sim) askForChange(c *simChange) {
	n := s.anyNode()
	if n == nil || s.chance(0.3) {
		s.changeRecipient(c)
		return
	}
	s.log("a user asks %s for a change of %s: %+v", n.key, c.ID, c.Put)
	s.askForChanges(n, &simAsk{changes: []*simChange{c}})
}

// askForChanges has a user ask a node for changes: of one who is removed, or of some who are put.
func (s *sim) askForChanges(n *simNode, asked *simAsk) {
	var got []audiences.Put
	s.askAudience(n, asked, func(ctx context.Context) (err error) {
		if first := asked.changes[0]; first.Put == nil {
			got, err = n.use.Audiences.Remove(ctx, simUsers, []string{first.ID})
			return err
		}
		var put []audiences.Recipient
		for _, c := range asked.changes {
			put = append(put, told(c.Put))
		}
		got, err = n.use.Audiences.Put(ctx, simUsers, asked.generation, put)
		return err
	}, func(err error) {
		for i := range got {
			if c := asked.changes[i]; err == nil && (got[i].Err != nil || got[i].Outcome != audience.Same && !c.made) {
				s.broken("mistold: a change of %s was answered with %+v, and it was made: %v", c.ID, got[i], c.made)
			}
		}
	})
}

// askAudience has a user ask a node for something that changes the audience. A node is asked for
// one thing at a time.
func (s *sim) askAudience(n *simNode, asked *simAsk, do func(context.Context) error, then func(error)) {
	busy := s.audience.busy
	if busy[n] {
		return
	}
	busy[n] = true
	s.spawn(n, func() error {
		ctx, cancel := n.timeout()
		defer cancel()
		return do(context.WithValue(ctx, simAsked{}, asked))
	}, func(err error) {
		delete(busy, n)
		then(err)
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
	if a.ended {
		return
	}
	n, _ := audience.Locate(c.ID, a.Shards)
	s.changeShard(n, &simAsk{changes: []*simChange{c}}, func(d *audience.Directory) (store.Commit, error) {
		v, err := s.access().View(simContext, a.Audience, n, d, d.Covering([]string{c.ID}))
		if err != nil {
			return store.Commit{}, err
		}
		made, _ := v.Apply([]audience.Change{c.Change}, audience.Limits{Leaf: simLeaf, Recipients: 1 << 20})
		return made, nil
	})
}

// changeShard makes a change of a shard of the audience for a user who is answered at once.
func (s *sim) changeShard(n int, asked *simAsk, do func(*audience.Directory) (store.Commit, error)) {
	var made store.Commit
	err := s.access().Change(simContext, s.audience.Audience, n, func(d *audience.Directory) (c store.Commit, err error) {
		made, err = do(d)
		return made, err
	})
	if err != nil {
		panic(err) // nobody changes it meanwhile
	}
	if len(made.Puts) > 0 {
		s.audienceChanged(s.audience.Shard(n), &made, asked)
	}
}

func (s *sim) isAudience(sh store.Shard) bool {
	return s.audience != nil && sh.Topic == s.audience.Shard(0).Topic
}

// audienceChanged writes down what a commit changed in a shard of the audience: what was asked for,
// or the runs that go through it.
func (s *sim) audienceChanged(sh store.Shard, c *store.Commit, asked *simAsk) {
	a := s.audience
	if a.ended {
		return
	}
	a.moment++
	if asked != nil {
		s.answered(sh, asked)
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

// answered writes down that a shard was changed as asked.
func (s *sim) answered(sh store.Shard, asked *simAsk) {
	a := s.audience
	switch {
	case asked.replaces:
		s.replacementBegins(sh)
	case asked.ends:
		s.swept(sh, asked)
	default:
		s.brought(sh, asked)
		for _, c := range asked.changes {
			if n, _ := simLocate(c.ID); n == sh.N {
				a.change(c)
			}
		}
	}
}

func (a *simAudience) change(c *simChange) {
	c.made = true
	if c.Put == nil {
		a.leave(c.ID)
		return
	}
	next := simState{since: a.moment, as: *c.Put, joined: a.at(c.ID, a.moment).joined}
	if next.joined == 0 {
		next.joined = a.moment
	}
	a.people[c.ID] = append(a.people[c.ID], next)
}

func (a *simAudience) leave(id string) {
	a.people[id] = append(a.people[id], simState{since: a.moment})
}

// isOne reports whether somebody is a recipient.
func (a *simAudience) isOne(id string) bool { return a.at(id, a.moment).joined > 0 }

// in are those who may be recipients in a shard.
func (a *simAudience) in(shard int) (ids []string) {
	for _, id := range a.ids {
		if n, _ := simLocate(id); n == shard {
			ids = append(ids, id)
		}
	}
	return ids
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
	found, dir := s.recipientsIn(sh)
	for _, id := range a.in(sh.N) {
		is, there := found[id]
		now := a.at(id, a.moment)
		if there != (now.joined > 0) || there && !sameRecipient(&is, &now.as) {
			s.broken("garbled: %s is %+v (%v), and is to be %+v (%v)", id, is, there, now.as, now.joined > 0)
		}
	}
	if int64(len(found)) != dir.Recipients() {
		s.broken("miscounted: %v has %d recipients, and counts %d", sh, len(found), dir.Recipients())
	}
}

// recipientsIn reads who is in a shard of the audience.
func (s *sim) recipientsIn(sh store.Shard) (found map[string]audience.Recipient, dir *audience.Directory) {
	a := s.audience
	dir, err := s.access().Directory(simContext, a.Audience, sh.N)
	if err != nil {
		panic(err) // memstore fails only when it is closed
	}
	found = make(map[string]audience.Recipient)
	leaves, _, _ := dir.Page(audience.Cursor{}, 1<<20)
	view, err := s.access().View(simContext, a.Audience, sh.N, dir, leaves)
	if err != nil {
		s.broken("the leaves of %v cannot be read: %v", sh, err)
		return found, dir
	}
	for _, id := range leaves {
		for e := range view.Leaves[id].From(audience.Cursor{}) {
			if _, twice := found[e.ID]; twice {
				s.broken("twinned: %s is in two leaves of %v", e.ID, sh)
			}
			found[e.ID] = e.Recipient
		}
	}
	return found, dir
}

func sameRecipient(a, b *audience.Recipient) bool {
	return a.Zone == b.Zone && a.Preferences == b.Preferences && slices.Equal(a.Data, b.Data)
}

// simLocate is in which shard of the audience somebody is, and where there.
func simLocate(id string) (shard int, at uint64) {
	hash := place.HashID(id)
	return int(hash / (1 << 63)), hash % (1 << 63) * simShards
}

package actors_test

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/ddq-io/ddq/actors/audience"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/api/service/schedules"
	"github.com/ddq-io/ddq/store"
)

// The audience may be deleted. Users try that while its schedule has it and while runs go through it, which is
// refused, and have the schedule make plain tasks at some time: once the last run is over it goes.

// dissolve has users delete the audience, if it is to be.
func (s *sim) dissolve(rng *rand.Rand) {
	a := s.audience
	if !a.dissolved {
		return
	}
	drop := s.start.Add(time.Duration(rng.Int64N(int64(s.plan.active / 2))))
	var next func()
	next = func() {
		if a.gone || !a.dropped && time.Since(s.start) > s.plan.active { // too late: the schedule is finished
			return
		}
		n := s.anyNode()
		switch {
		case n == nil:
		case !a.dropped && time.Now().After(drop):
			s.dropAudience(n)
		default:
			s.deleteAudience(n)
		}
		s.after(s.between(time.Second, 20*time.Second), next)
	}
	s.after(s.between(0, time.Minute), next)
}

// dropAudience has a user ask a node that the schedule makes plain tasks from now on.
func (s *sim) dropAudience(n *simNode) {
	book := s.schedules[schedule.CellID(simMails)]
	if book.busy {
		return
	}
	book.busy = true
	s.log("a user asks %s for a schedule without its audience", n.key)
	s.spawn(n, func() error {
		ctx, cancel := n.timeout()
		defer cancel()
		was, err := n.use.Schedules.Get(ctx, simTopic, simMails)
		if err != nil {
			return err
		}
		spec := was.Spec
		spec.Audience = nil
		_, err = n.use.Schedules.Put(ctx, schedules.Definition{Topic: simTopic, Name: simMails, Spec: spec}, nil)
		return err
	}, func(err error) {
		book.busy = false
		s.audience.dropped = s.audience.dropped || err == nil
	})
}

func (s *sim) deleteAudience(n *simNode) {
	a := s.audience
	s.log("a user asks %s to delete the audience", n.key)
	s.askAudience(n, nil, func(ctx context.Context) error {
		return n.use.Audiences.Delete(ctx, simUsers, n.sys.Clock().Millis())
	}, func(err error) {
		s.log("the audience is deleted: %v", err == nil)
		if err == nil && !a.gone {
			s.broken("the audience is said to be deleted, and is not")
		}
	})
}

// recorded writes down what becomes of the audience, and looks whether it may: nothing has it when it goes.
func (s *sim) recorded(c *store.Commit) {
	a := s.audience
	now, err := audience.DecodeAudience(c.Puts[0].Cell)
	if err != nil {
		s.broken("the audience cannot be read: %v", err)
		return
	}
	if now.Ended && !a.ended {
		s.mayGo()
	}
	a.ended, a.gone = a.ended || now.Ended, a.gone || now.Gone
	if a.ended && !now.Ended {
		s.broken("the audience is back")
	}
}

func (s *sim) mayGo() {
	for _, run := range s.audience.begun {
		if len(run.began) > 0 && !run.over {
			s.broken("orphaned: %s is open, and its audience is deleted", run.Run)
		}
	}
	if one, _ := s.readSchedule(schedule.CellID(simMails)); one != nil && one.Audience != nil {
		s.broken("orphaned: %s has an audience that is deleted", one.Name)
	}
}

// audienceOver reports whether the audience is gone, if it is to go.
func (s *sim) audienceOver() bool { return s.audience == nil || !s.audience.dropped || s.audience.gone }

// auditDissolved looks whether nothing is left of an audience that is deleted, or was to be.
func (s *sim) auditDissolved() {
	a := s.audience
	if !a.gone {
		s.broken("the audience is not deleted")
		return
	}
	if one, _ := s.readSchedule(schedule.CellID(simMails)); one != nil && one.Audience != nil {
		s.broken("orphaned: %s has an audience that is deleted", one.Name)
	}
	for n := range a.Shards {
		for _, kind := range []byte{audience.DirectoryID.Kind(), audience.LeafKind, audience.PastRunsID.Kind()} {
			cells, _, err := s.on(a.Shard(n)).CellPage(simContext, a.Shard(n), kind, "", 100)
			if err != nil {
				panic(err) // memstore fails only when it is closed
			}
			for _, c := range cells {
				s.broken("left behind: %v has the cell %s%s", a.Shard(n), string(kind), c.ID.Key())
			}
		}
	}
}

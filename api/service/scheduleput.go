package service

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// MaxPuts is how many schedules one call puts at most.
const MaxPuts = 1000

// Put creates a schedule, or changes it in place. The same again changes nothing. With
// ifVersion the schedule must have this version, and with 0 not exist.
func (s *Schedules) Put(ctx context.Context, n NewSchedule, ifVersion *int64) (SchedulePut, error) {
	if err := s.ready(); err != nil {
		return SchedulePut{}, err
	}
	if err := n.check(s.limits); err != nil {
		return SchedulePut{}, err
	}
	if _, err := tableOf(&n.Spec, n.Name, 0); err != nil { // before a topic is created for it
		return SchedulePut{}, err
	}
	if err := s.knowsAudience(ctx, &n); err != nil {
		return SchedulePut{}, err
	}
	for range changeTries {
		put, err := s.putOnce(ctx, &n, ifVersion)
		if err != nil {
			return SchedulePut{}, err
		}
		if put.Outcome != 0 {
			return put, nil
		}
	}
	return SchedulePut{}, errBusy(n.Name)
}

// spreadOver is how many items of a call are worked on at a time.
const spreadOver = 64

// Spread works on n items at a time, those of one key in order.
func Spread(n int, key func(int) string, work func(int)) {
	lanes := make([][]int, min(n, spreadOver))
	for i := range n {
		lane := place.HashID(key(i)) % uint64(len(lanes))
		lanes[lane] = append(lanes[lane], i)
	}
	var wg sync.WaitGroup
	for _, lane := range lanes {
		wg.Go(func() {
			for _, i := range lane {
				work(i)
			}
		})
	}
	wg.Wait()
}

// putOnce answers no outcome when the schedule has to be read again.
func (s *Schedules) putOnce(ctx context.Context, n *NewSchedule, ifVersion *int64) (SchedulePut, *problem.Error) {
	ref, err := s.node.Topics().Open(ctx, n.Topic, true)
	if err != nil {
		return SchedulePut{}, err
	}
	topic := *ref.Config()
	if err := n.checkTopic(&topic); err != nil {
		return SchedulePut{}, err
	}
	if err := s.checkCalendars(ctx, n); err != nil {
		return SchedulePut{}, err
	}
	at, err := s.read(ctx, &topic, n.Name)
	if err != nil {
		return SchedulePut{}, err
	}
	if err := n.checkVersion(at, ifVersion); err != nil {
		return SchedulePut{}, err
	}
	if at == nil {
		return s.create(ctx, n, &topic)
	}
	if at.Spec.Same(&n.Spec) {
		return SchedulePut{Version: versionOf(at.Schedule), Outcome: PutUnchanged, Next: s.status(ctx, at).Next}, nil
	}
	return s.edit(ctx, n, at)
}

func (n *NewSchedule) checkVersion(at *scheduleAt, ifVersion *int64) *problem.Error {
	switch {
	case ifVersion == nil:
	case *ifVersion < 0:
		return problem.BadField("if_version", "OUT_OF_RANGE_FIELD", "if_version must not be negative")
	case at == nil && *ifVersion != 0:
		return &problem.Error{Kind: problem.Aborted, Reason: "VERSION_MISMATCH", Field: "if_version", Message: fmt.Sprintf("there is no schedule %q", n.Name)}
	case at != nil && *ifVersion == 0:
		return &problem.Error{Kind: problem.Exists, Reason: "SCHEDULE_EXISTS", Field: "name", Message: fmt.Sprintf("schedule %q exists", n.Name)}
	case at != nil && *ifVersion != versionOf(at.Schedule):
		return versionMismatch(at)
	}
	return nil
}

func (s *Schedules) create(ctx context.Context, n *NewSchedule, topic *store.Topic) (SchedulePut, *problem.Error) {
	shard := schedule.Shards(topic, n.Name)[0]
	now := s.node.Clocks().NowAt(shard)
	fresh := &schedule.Schedule{
		Spec: n.Spec, Name: n.Name, Life: rand.Uint64(), Created: now, Phase: schedule.Active, Anchor: now, Decided: now,
	}
	if n.Paused {
		fresh.Phase, fresh.Note = schedule.Paused, n.Note
	}
	table, err := tableOf(&n.Spec, n.Name, now)
	if err != nil {
		return SchedulePut{}, err
	}
	if err := checkOccurs(table, &n.Spec, now); err != nil {
		return SchedulePut{}, err
	}
	if err := s.quota.take(ctx, s.node, topic, s.limits.Schedules); err != nil {
		return SchedulePut{}, err
	}
	at := &scheduleAt{Schedule: fresh, topic: topic, shard: shard, table: table}
	after, _, err := s.step(ctx, at, nil)
	if after == nil || err != nil {
		return SchedulePut{}, err
	}
	return SchedulePut{Version: 1, Outcome: PutCreated, Next: s.status(ctx, after).Next}, nil
}

func (s *Schedules) edit(ctx context.Context, n *NewSchedule, at *scheduleAt) (SchedulePut, *problem.Error) {
	now := s.node.Clocks().NowAt(at.shard)
	anew, anchor := at.Anew(&n.Spec), at.Anchor
	if anew {
		anchor = now
	}
	table, err := tableOf(&n.Spec, n.Name, anchor)
	if err != nil {
		return SchedulePut{}, err
	}
	if err := checkOccurs(table, &n.Spec, now); err != nil {
		return SchedulePut{}, err
	}
	after, _, err := s.step(ctx, at, schedule.Edit{Spec: n.Spec, Table: table, Anew: anew})
	if after == nil || err != nil {
		return SchedulePut{}, err
	}
	return SchedulePut{Version: versionOf(after.Schedule), Outcome: PutChanged, Next: s.status(ctx, after).Next}, nil
}

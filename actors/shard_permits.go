package actors

import (
	"context"

	"github.com/ddq-io/ddq/actors/dispatch"
	"github.com/ddq-io/ddq/store"
)

// heldPermits are the permits of the holds that a shard took under caps, by task. They
// are freed when it hears that a hold is over.
type heldPermits map[string]*dispatch.Permit

// permitted records that a task is held under a permit. That of an earlier hold is over.
func (s *shard) permitted(id string, p *dispatch.Permit) {
	if old := s.permits[id]; old != nil && old.Holder != p.Holder {
		s.endedPermits = append(s.endedPermits, old)
	}
	if s.permits == nil {
		s.permits = make(heldPermits)
	}
	s.permits[id] = p
}

// admitted records what became of a task under limits, and reports whether that is
// all there is to do: one that came too late is ready again, without its leave.
func (s *shard) admitted(r holdRequest, token store.Token, status store.Status) (done bool) {
	switch {
	case status == store.OK && r.admission.Doomed:
		s.endAssignments(r.sub, 1, r.counted)
		s.deadLetter(r.task.ID, token)
		return true
	case status == store.OK && r.admission.Permit != nil:
		s.permitted(r.task.ID, r.admission.Permit)
		return false
	}
	s.endAdmission(r.admission)
	if status == store.Late {
		s.endAssignments(r.sub, 1, r.counted)
		s.tasks.Found(s.now(), r.task)
	}
	return status == store.Late
}

// endPermit frees what a hold that is over was held under.
func (s *shard) endPermit(id string, token store.Token) {
	if s.permits == nil {
		return
	}
	if p := s.permits[id]; p != nil && p.Holder == token {
		delete(s.permits, id)
		s.endedPermits = append(s.endedPermits, p)
	}
}

// endAdmission frees what a task that is not held was to be held under.
func (s *shard) endAdmission(l *dispatch.Admission) {
	if l != nil && l.Permit != nil {
		s.endedPermits = append(s.endedPermits, l.Permit)
	}
}

// deadLetter dead-letters a task that was held for that.
func (s *shard) deadLetter(id string, token store.Token) {
	call := newSettleCall([]Settlement{{
		Kind: SettleNack, ID: id, Token: encodeToken(s.id.N, token), reason: store.ReasonRateLimited,
	}}, func([]Settled) {})
	call.tokens[0] = token
	s.settle(&settleHolds{call: call, items: []int{0}})
}

// lengthen gives holds under caps the visibility timeout that their tasks have of
// their own, which was not known before: the permits first.
func (s *shard) lengthen(ctx context.Context, batch []holdRequest, holds []store.Hold, results []store.HoldResult) {
	var permits []store.Permit
	var extends []store.Extend
	var at []int
	latest := s.latest()
	for i, r := range results {
		l := batch[i].admission
		if r.Status != store.OK || l == nil || l.Permit == nil || r.Task.Visibility <= holds[i].Visibility {
			continue
		}
		until := latest.Add(r.Task.Visibility + permitSlack)
		for _, p := range l.Permit.Each() {
			p.Until = until
			permits = append(permits, p)
		}
		extends = append(extends, store.Extend{
			ID: holds[i].ID, Token: holds[i].Token, Visibility: r.Task.Visibility,
			Until: until.Add(-store.PermitSkew),
		})
		at = append(at, i)
	}
	if len(at) == 0 || s.store.Move(ctx, permits) != nil {
		return // the holds are shorter: what the worker is told
	}
	_, longer, err := s.store.Extend(ctx, s.id, extends)
	if err != nil {
		return
	}
	for k, i := range at {
		if longer[k].Status == store.OK {
			results[i].Deadline = longer[k].Deadline
		}
	}
}

// capsFor are the caps that tasks are held under now, for those of some ids.
func (s *shard) capsFor(ctx context.Context, limits *store.TopicLimits, ids []string) ([][]store.LimitKey, error) {
	keys := make([][]store.LimitKey, len(ids))
	var found []store.Snapshot
	if limits.KeyConcurrency > 0 {
		var err error
		if _, found, err = store.GetAll(ctx, s.store, s.id, ids); err != nil {
			return nil, err
		}
	}
	for i := range ids {
		if len(found) > 0 && found[i].Traits != nil && found[i].Traits.ConcurrencyKey != "" {
			keys[i] = append(keys[i], store.LimitKey{Topic: s.id.Topic, Key: found[i].Traits.ConcurrencyKey})
		}
		if limits.Concurrency > 0 {
			keys[i] = append(keys[i], store.LimitKey{Topic: s.id.Topic})
		}
	}
	return keys, nil
}

// movePermits moves the permits of holds that are to be extended, and bounds the
// extensions by them.
func (s *shard) movePermits(ctx context.Context, limits *store.TopicLimits, extends []store.Extend) error {
	ids := make([]string, len(extends))
	for i := range extends {
		ids[i] = extends[i].ID
	}
	caps, err := s.capsFor(ctx, limits, ids)
	if err != nil {
		return err
	}
	var permits []store.Permit
	latest := s.latest()
	for i := range extends {
		x := &extends[i]
		until := latest.Add(x.Visibility + permitSlack)
		for _, key := range caps[i] {
			permits = append(permits, store.Permit{Key: key, Holder: x.Token, Until: until})
			x.Until = until.Add(-store.PermitSkew)
		}
	}
	return s.store.Move(ctx, permits)
}

// freeOver frees the permits of holds that turned out to be over.
func (s *shard) freeOver(ctx context.Context, extends []store.Extend, results []store.ExtendResult, limits *store.TopicLimits) {
	var ids []string
	var over []store.Token
	for i, r := range results {
		if r.Status != store.OK && extends[i].Until != 0 {
			ids, over = append(ids, extends[i].ID), append(over, extends[i].Token)
		}
	}
	if len(ids) == 0 {
		return
	}
	caps, err := s.capsFor(ctx, limits, ids)
	if err != nil {
		return // they end by themselves
	}
	var permits []store.Permit
	for i, keys := range caps {
		for _, key := range keys {
			permits = append(permits, store.Permit{Key: key, Holder: over[i]})
		}
	}
	if _, err := s.store.Free(ctx, permits); err != nil {
		s.log.Debug("permits not freed", "topic", s.id.Topic, "shard", s.id.N, "err", err)
	}
}

// inherit returns the permits of holds that another owner of the shard took.
func (s *shard) inherit(ctx context.Context, limits *store.TopicLimits, holds []store.Running) (heldPermits, error) {
	ids := make([]string, len(holds))
	for i := range holds {
		ids[i] = holds[i].ID
	}
	caps, err := s.capsFor(ctx, limits, ids)
	if err != nil {
		return nil, err
	}
	permits := make(heldPermits)
	for i, keys := range caps {
		if len(keys) > 0 {
			permits[ids[i]] = &dispatch.Permit{Holder: holds[i].Token, Keys: keys}
		}
	}
	return permits, nil
}

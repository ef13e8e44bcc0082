package service

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"reflect"
	"slices"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/clock"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/store"
)

// Edited is a task after an edit.
type Edited struct {
	Topic   string // where it was found
	Due     store.Millis
	Version int64
}

// TaskField is a part of a task that can be changed while it waits.
type TaskField uint16

// The parts, to be combined.
const (
	FieldPayload TaskField = 1 << iota
	FieldAttributes
	FieldMaxRetries
	FieldVisibility
	FieldBackoff
	FieldExpiry
	FieldWhen
	FieldPriority
	FieldFairnessKey
	FieldFairnessWeight
	FieldHandlerTimeout
)

const fieldTraits = FieldPriority | FieldFairnessKey | FieldFairnessWeight

// TaskChange says what of a task to change, and to what.
type TaskChange struct {
	Fields      TaskField
	Task        store.Task    // has the values of Fields
	ExpireAfter time.Duration // from the due time; 0 leaves it to Task.Expires
	When        When
}

func (c *TaskChange) has(f TaskField) bool { return c.Fields&f != 0 }

// Update changes a pending task in place. ifVersion is the version that it must
// have, 0 takes any.
func (s *Tasks) Update(ctx context.Context, topic, id string, c TaskChange, ifVersion int64) (Edited, error) {
	if err := s.limits.checkChange(&c, ifVersion); err != nil {
		return Edited{}, err
	}
	return s.edit(ctx, topic, id, &editing{tasks: s, id: id, change: &c, ifVersion: ifVersion})
}

// Reschedule moves the due time of a pending task. ifVersion is the version that it
// must have, 0 takes any.
func (s *Tasks) Reschedule(ctx context.Context, topic, id string, w When, ifVersion int64) (Edited, error) {
	if err := checkIfVersion(ifVersion); err != nil {
		return Edited{}, err
	}
	return s.edit(ctx, topic, id, &editing{tasks: s, id: id, change: &TaskChange{Fields: FieldWhen, When: w}, ifVersion: ifVersion})
}

// Promote makes a pending task due now, unless it is already. ifVersion is the
// version that it must have, 0 takes any.
func (s *Tasks) Promote(ctx context.Context, topic, id string, ifVersion int64) (Edited, error) {
	if err := checkIfVersion(ifVersion); err != nil {
		return Edited{}, err
	}
	return s.edit(ctx, topic, id, &editing{tasks: s, id: id, ifVersion: ifVersion})
}

func (l *limits) checkChange(c *TaskChange, ifVersion int64) *problem.Error {
	if err := checkIfVersion(ifVersion); err != nil {
		return err
	}
	if c.Fields == 0 {
		return problem.BadField("update_mask", "BAD_MASK", "update_mask names nothing to change")
	}
	contents := c.Task
	contents.Traits = nil // checked with what the task has
	return l.checkContents(&contents, c.ExpireAfter)
}

func checkIfVersion(v int64) *problem.Error {
	if v < 0 {
		return problem.BadField("if_version", "OUT_OF_RANGE_FIELD", "if_version must not be negative")
	}
	return nil
}

// editing is one edit that is to be made.
type editing struct {
	tasks     *Tasks
	id        string
	change    *TaskChange // nil: due now
	ifVersion int64
	due       store.Millis // asked for; 0: no move, or now
	indexed   store.IndexSet
}

// edit finds a pending task and edits it in the store, then tells its shard.
func (s *Tasks) edit(ctx context.Context, topic, id string, e *editing) (Edited, error) {
	topic, err := s.look.locate(ctx, topic, id)
	if err != nil {
		return Edited{}, err
	}
	ref, err := s.node.Topics().Open(ctx, topic, false)
	if err != nil {
		return Edited{}, err
	}
	if err := e.resolve(ref); err != nil {
		return Edited{}, err
	}
	for place, err := range places(ctx, s.node, ref, id) {
		if err != nil {
			return Edited{}, err
		}
		result, seq, err := e.in(ctx, place)
		if err != nil {
			return Edited{}, err
		}
		if result.Status != store.OK {
			continue
		}
		if result.Moved {
			ref.Pending(place.N, seq, store.Entry{ID: id, Due: result.Due, Traits: result.Traits})
		}
		return Edited{Topic: topic, Due: result.Due, Version: result.Version}, nil
	}
	return Edited{}, problem.NoTask(id)
}

// resolve checks the edit against the topic, and settles when the task is due.
func (e *editing) resolve(ref *actors.Topic) *problem.Error {
	t := ref.Config()
	e.indexed = t.Indexed
	c := e.change
	if c == nil {
		return nil
	}
	if n := len(c.Task.Payload); c.has(FieldPayload) && n > t.MaxPayload {
		return errPayload(n, t.MaxPayload)
	}
	if !c.has(FieldWhen) {
		return nil
	}
	if err := c.When.check(t, e.tasks.node.Clock().Millis()); err != nil {
		return err
	}
	if e.due = c.When.At; e.due == 0 {
		e.due = clock.CeilMillis(ref.Latest().Add(c.When.Delay))
	}
	return nil
}

// rewrites reports whether the edit replaces what must be read first.
func (e *editing) rewrites() bool { return e.change != nil && e.change.Fields != FieldWhen }

// editTries is how often an edit begins again because others edited the task between
// the look at it and the change. One of them got through each time.
const editTries = 100

// in makes the edit in one shard: OK or NotFound.
func (e *editing) in(ctx context.Context, place store.Shard) (store.EditResult, int64, *problem.Error) {
	for range editTries {
		ask := store.Edit{ID: e.id, IfVersion: e.ifVersion, Due: e.due, Now: e.change == nil}
		if e.rewrites() {
			next, err := e.read(ctx, place)
			if err != nil {
				return store.EditResult{}, 0, err
			}
			if ask.Task = next; next == nil {
				ask = store.Edit{ID: e.id, IfVersion: math.MaxInt64} // nothing has it: a change knows what a read may not
			}
		}
		result, seq, err := e.ask(ctx, place, &ask)
		switch {
		case err != nil:
			return store.EditResult{}, 0, err
		case result.Status == store.WrongState:
			return store.EditResult{}, 0, problem.WrongState(e.id, result.State)
		case result.Status == store.Expired:
			return store.EditResult{}, 0, errExpiry()
		case result.Status != store.Stale:
			return result, seq, nil
		case e.ifVersion != 0 && result.Version != e.ifVersion || !e.rewrites():
			return store.EditResult{}, 0, problem.VersionMismatch(e.id, result.Version)
		}
	}
	return store.EditResult{}, 0, &problem.Error{Kind: problem.Unavailable, Reason: "CONTENTION", RetryAfter: problem.RetrySoon,
		Message: "the task is edited by many at the same time"}
}

// read returns the task as the edit would leave it, nil when it is not there to be
// edited as far as can be read.
func (e *editing) read(ctx context.Context, place store.Shard) (*store.Task, *problem.Error) {
	_, found, err := e.tasks.store.Get(ctx, place, []string{e.id})
	if err != nil {
		return nil, problem.FromStore(err)
	}
	t := &found[0].Task
	if !found[0].State.Pending() || e.ifVersion != 0 && t.Version() != e.ifVersion {
		return nil, nil
	}
	t.Indexed = e.indexed
	return t, e.change.apply(t, e.due)
}

// apply makes the change to a task that will be due at a moment, 0: when it is now.
func (c *TaskChange) apply(t *store.Task, due store.Millis) *problem.Error {
	take(c, FieldPayload, &t.Payload, c.Task.Payload)
	take(c, FieldAttributes, &t.Attributes, c.Task.Attributes)
	take(c, FieldMaxRetries, &t.MaxRetries, c.Task.MaxRetries)
	take(c, FieldVisibility, &t.Visibility, c.Task.Visibility)
	take(c, FieldHandlerTimeout, &t.HandlerTimeout, c.Task.HandlerTimeout)
	take(c, FieldBackoff, &t.Backoff, c.Task.Backoff)
	if c.has(fieldTraits) {
		t.Traits = c.traits(t.Traits)
		if err := checkTraits(t.Traits); err != nil {
			return err
		}
	}
	if due = cmp.Or(due, t.Due); c.has(FieldExpiry) {
		t.Expires = c.Task.Expires
		if c.ExpireAfter > 0 {
			t.Expires = due.Add(c.ExpireAfter)
		}
		return checkExpiry(t.Expires, due)
	}
	return nil
}

// traits returns what becomes of the traits of a task; nil is none.
func (c *TaskChange) traits(was *store.Traits) *store.Traits {
	var to, from store.Traits
	if was != nil {
		to = *was
	}
	if c.Task.Traits != nil {
		from = *c.Task.Traits
	}
	take(c, FieldPriority, &to.Priority, from.Priority)
	take(c, FieldFairnessKey, &to.FairnessKey, from.FairnessKey)
	take(c, FieldFairnessWeight, &to.FairnessWeight, from.FairnessWeight)
	if to == (store.Traits{}) {
		return nil
	}
	return &to
}

func take[T any](c *TaskChange, f TaskField, to *T, from T) {
	if c.has(f) {
		*to = from
	}
}

// ask sends one edit. When an answer was lost on the way, a refusal says nothing: the
// try without an answer may have made the edit, which is looked up.
func (e *editing) ask(ctx context.Context, place store.Shard, ask *store.Edit) (result store.EditResult, seq int64, _ *problem.Error) {
	repeated, err := e.tasks.node.Resolve(ctx, func() error {
		stamp, results, err := e.tasks.store.Edit(ctx, place, []store.Edit{*ask})
		if err == nil {
			result, seq = results[0], stamp.Seq
		}
		return err
	})
	if err != nil || !repeated || result.Status == store.OK {
		return result, seq, problem.FromStore(err)
	}
	stamp, found, err := e.tasks.store.Get(ctx, place, []string{e.id})
	if err != nil || !made(ask, &found[0]) {
		return result, seq, problem.FromStore(store.ErrUnknown)
	}
	t := &found[0].Task
	return store.EditResult{Status: store.OK, Due: t.Due, Version: t.Version(), Traits: t.Traits, Moved: found[0].State.Pending()}, stamp.Seq, nil
}

// made reports whether a task is what an edit of a version would have made of it. What a
// promotion makes of it nobody can tell afterwards from what another edit did.
func made(e *store.Edit, found *store.Snapshot) bool {
	t := &found.Task
	if found.State == store.StateUnknown || e.Now || e.Wants() == 0 || t.Version() != e.Wants()+1 || e.Due != 0 && t.Due != e.Due {
		return false
	}
	w := e.Task
	return w == nil || w.Fingerprint == t.Fingerprint && bytes.Equal(w.Payload, t.Payload) && slices.Equal(w.Attributes, t.Attributes) &&
		w.Expires == t.Expires && w.Visibility == t.Visibility && w.HandlerTimeout == t.HandlerTimeout && w.MaxRetries == t.MaxRetries && reflect.DeepEqual(w.Backoff, t.Backoff) && w.Traits.Same(t.Traits)
}

package access

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/ddq-io/ddq/actors/workflow"
	"github.com/ddq-io/ddq/actors/workflow/graph"
	"github.com/ddq-io/ddq/actors/workflow/refusal"
	"github.com/ddq-io/ddq/store"
)

// tries is how often a workflow may change while a call is at it.
const tries = 50

// Submit stores a workflow, and makes the tasks that it begins with. The definition was checked.
func (a *Access) Submit(ctx context.Context, topic *store.Topic, id string, d *graph.Definition) (Submitted, error) {
	d = d.In(topic.Name)
	if e := d.CheckSize(topic.Name, id); e != nil {
		return Submitted{}, e
	}
	avoid := make(map[string]bool)
	if len(workflow.Shards(topic, id)) == 1 { // else it may be in one of before a reshard
		done, s, err := a.submit(ctx, topic, id, d, avoid)
		if done || err != nil && !errors.Is(err, store.ErrFull) { // which would be said of one that is there, too
			return s, err
		}
	}
	return a.submitOver(ctx, topic, id, d, avoid)
}

// submitOver stores a workflow where there may be one.
func (a *Access) submitOver(ctx context.Context, topic *store.Topic, id string, d *graph.Definition, avoid map[string]bool) (Submitted, error) {
	var replaced workflow.State
	for range tries {
		there, err := a.find(ctx, topic, id)
		switch {
		case isNotFound(err):
			done, s, err := a.submit(ctx, topic, id, d, avoid)
			if done || err != nil {
				s.Replaced = replaced
				return s, err
			}
			continue
		case err != nil:
			return Submitted{}, err
		case there.Workflow.Def.Same(d):
			return Submitted{Status: there.status(topic), Deduplicated: true}, nil
		case there.Workflow.Phase.Open():
			return Submitted{}, conflict(there.Workflow)
		}
		replaced = there.Workflow.State()
		if err := a.Delete(ctx, topic, id); err != nil && !isNotFound(err) {
			return Submitted{}, err
		}
	}
	return Submitted{}, busy(id)
}

func conflict(w *workflow.Workflow) error {
	return &refusal.Error{Reason: refusal.IDConflict, Field: "id", State: w.State().String(),
		Message: fmt.Sprintf("workflow %q exists with another definition and is %s", w.ID, w.State())}
}

// submit stores a workflow where there is none. It reports false when there is one by now, or a child
// has the id of one of its children, which is to be avoided then.
func (a *Access) submit(ctx context.Context, topic *store.Topic, id string, d *graph.Definition, avoid map[string]bool) (bool, Submitted, error) {
	shard := workflow.Shards(topic, id)[0]
	now := a.Node.NowAt(shard)
	w, out := workflow.Submit(id, rand.Uint64(), d, envAt(topic, now, avoid))
	done, err := a.commit(ctx, topic, &header{shard: shard}, nil, w, &out)
	avoid[done.inTheWay] = true
	if !done.made || err != nil {
		return false, Submitted{}, err
	}
	s, err := workflow.Read(done.cell)
	if err != nil {
		return false, Submitted{}, err
	}
	return true, Submitted{Status: s.Status(topic.Name, topic.Workflows.Retention)}, nil
}

func envAt(topic *store.Topic, now store.Millis, avoid map[string]bool) workflow.Env {
	return workflow.Env{Now: now, Topic: topic.Name, Retention: topic.Workflows.Retention, Avoid: avoid}
}

func (l *located) status(topic *store.Topic) workflow.Status {
	return l.Stored.Status(topic.Name, topic.Workflows.Retention)
}

// Change has an event happen to a workflow: a Cancel, Pause, Resume, Retry or Skip. It returns
// once all of it is done: what a cancel asks to end is asked.
func (a *Access) Change(ctx context.Context, topic *store.Topic, id string, e workflow.Event) (workflow.Status, error) {
	if err := checkRoot(id); err != nil {
		return workflow.Status{}, err
	}
	return a.change(ctx, topic, id, e)
}

func (a *Access) change(ctx context.Context, topic *store.Topic, id string, e workflow.Event) (workflow.Status, error) {
	events, begun, avoid := []workflow.Event{e}, false, make(map[string]bool)
	for range tries {
		at, err := a.find(ctx, topic, id)
		if err != nil {
			return workflow.Status{}, since(begun, err)
		}
		w, out, refused := workflow.Apply(at.Workflow, events, envAt(topic, a.Node.NowAt(at.shard), avoid))
		if refused != nil {
			return workflow.Status{}, since(begun, refused)
		}
		done, err := a.commit(ctx, topic, &at.header, at.Stored, w, &out)
		begun, avoid[done.inTheWay] = begun || done.made || done.unsure, true
		switch {
		case err != nil:
			return workflow.Status{}, since(begun, err)
		case !done.made:
			continue
		case out.Gone:
			return at.status(topic), nil
		}
		if err := a.orderNow(ctx, topic, out.Orders); err != nil {
			return workflow.Status{}, since(begun, err)
		}
		switch {
		case out.More && asks(e):
			events = nil // the rest of it
			continue
		}
		s, err := workflow.Read(done.cell)
		if err != nil {
			return workflow.Status{}, err
		}
		return s.Status(topic.Name, topic.Workflows.Retention), nil
	}
	return workflow.Status{}, busy(id)
}

// since is an error of a change that may have begun, which no error without that says.
func since(begun bool, err error) error {
	if begun {
		return errors.Join(store.ErrUnknown, err)
	}
	return err
}

// orderNow has children of the same topic end before the answer, which is about their steps as well.
// They are told by parcels, too, and those in other topics only so.
func (a *Access) orderNow(ctx context.Context, topic *store.Topic, orders []workflow.Order) error {
	for _, o := range orders {
		if o.What != workflow.AskedToEnd || o.Topic != "" {
			continue
		}
		_, err := a.change(ctx, topic, o.ID, workflow.Cancel{})
		var e *refusal.Error
		if err != nil && !errors.As(err, &e) { // else it has ended
			return err
		}
	}
	return nil
}

// asks reports whether an event is answered when no more is to be done.
func asks(e workflow.Event) bool {
	switch e.(type) {
	case workflow.Cancel, workflow.Delete:
		return true
	}
	return false
}

// checkRoot refuses changes of a child: what is to become of it is its root's to say.
func checkRoot(id string) error {
	root, isRoot := workflow.Root(id)
	if isRoot {
		return nil
	}
	return &refusal.Error{Reason: refusal.ChildWorkflow, Field: "id", Message: fmt.Sprintf("workflow %q is a child: call %q", id, root)}
}

// Delete removes a workflow that has ended.
func (a *Access) Delete(ctx context.Context, topic *store.Topic, id string) error {
	_, err := a.Change(ctx, topic, id, workflow.Delete{})
	return err
}

var errUnexpected = errors.New("a commit has an outcome that none of a workflow has")

// committed is what became of the commit of a step.
type committed struct {
	made bool
	cell store.Cell // as it was put

	unsure   bool   // it is not known: an answer was lost, and the workflow is another one by now
	inTheWay string // id of a task or a workflow that is not of this one; empty: none
}

// commit makes the commit of a step, and tells those whom it concerns. It reports false when the
// workflow is another one by now.
func (a *Access) commit(ctx context.Context, topic *store.Topic, at *header, before *workflow.Stored, w *workflow.Workflow, out *workflow.Effects) (committed, error) {
	now := a.Node.NowAt(at.shard)
	values, err := Values(ctx, a.Store, at.shard, w, workflow.Wants(w, out))
	if err != nil {
		return committed{}, err
	}
	c, err := workflow.Commit(before, w, out, workflow.Context{Topic: topic, Now: now, Values: values})
	if err != nil {
		return committed{}, err
	}
	workflow.Nudge(&c, now)
	c.From = at.from
	var stamp store.Stamp
	var results []store.CommitResult
	repeated, err := a.Node.Resolve(ctx, func() (err error) {
		stamp, results, err = a.Store.Commit(ctx, at.shard.For(topic.Life), nil, []store.Commit{c})
		return err
	})
	switch {
	case errors.Is(err, store.ErrAnotherServer):
		return committed{unsure: repeated}, nil
	case err != nil:
		return committed{}, err
	}
	put := c.Puts[0].Cell
	put.Version = c.Puts[0].Next(c.Puts[0].If)
	switch r := results[0]; {
	case r.Status == store.OK, r.Status == store.Stale && workflow.Landed(&c, &r):
		a.Node.Committed(ctx, at.shard, &c, stamp)
		return committed{made: true, cell: put}, nil
	case r.Status == store.Stale && r.Cell.ID == put.ID:
		return committed{unsure: repeated}, nil // on what is there, and under other numbers
	case r.Status == store.Stale:
		return committed{unsure: repeated, inTheWay: r.Cell.ID.Key()}, nil
	case r.Status == store.Conflict:
		return committed{unsure: repeated, inTheWay: r.ID}, nil
	case r.Status == store.Closed:
		return committed{}, store.ErrSealed
	default:
		return committed{}, fmt.Errorf("%w: %v of %s", errUnexpected, r.Status, w.ID)
	}
}

// Signal leaves a signal for a workflow.
func (a *Access) Signal(ctx context.Context, topic *store.Topic, id string, s workflow.Signal) error {
	if e := s.Check(); e != nil {
		return e
	}
	h, err := a.header(ctx, topic, id)
	if err != nil {
		return err
	}
	there, err := workflow.Read(h.cell)
	if err != nil {
		return err
	}
	if e := there.TakesSignal(&s); e != nil {
		return e
	}
	s.At = a.Node.NowAt(h.shard)
	p, err := s.Parcel(id)
	if err != nil {
		return err
	}
	c := store.Commit{Send: []store.Parcel{p}}
	stamp, results, err := a.Store.Commit(ctx, h.shard.For(topic.Life), nil, []store.Commit{c})
	switch {
	case err != nil:
		return err
	case results[0].Status != store.OK:
		return fmt.Errorf("%w: %v of a signal for %s", errUnexpected, results[0].Status, id)
	}
	a.Node.Committed(ctx, h.shard, &c, stamp)
	return nil
}

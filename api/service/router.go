package service

import (
	"context"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/google/uuid"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/clock"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/shard"
	"github.com/ddq-io/ddq/api/service/tenants"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// router sorts the tasks of one request by topic and shard.
type router struct {
	node        *actors.Node
	limits      *limits
	now, latest time.Time
	digest      *xxhash.Digest
	topics      []*actors.Topic
	batches     []*actors.AddBatch
	former      former
	admission   admission
	entry       *tenants.Entry // nil: the namespace has no quotas, or the tasks have passed them
}

func (r *router) add(ctx context.Context, t *NewTask, out *Enqueued, call *shard.Countdown) *problem.Error {
	if err := r.limits.checkTask(t); err != nil {
		return err
	}
	named := t.Task.ID != ""
	batch, err := r.batch(ctx, t)
	if err != nil {
		return err
	}
	topic := batch.Topic
	if err := r.resolve(t, topic); err != nil {
		return err
	}
	if err := r.entry.Admit(ctx, &t.Task); err != nil {
		return err
	}
	if err := r.admission.Enter(ctx, topic); err != nil {
		return err
	}
	if (t.Task.Key != nil || t.Task.Traits.Ordering() != "") && place.Resharding(topic) {
		if met, err := r.former.meetKey(ctx, t, out, topic, call); met || err != nil {
			return err
		}
		named = false // its id is no other task's
	}
	if named && place.Resharding(topic) {
		r.former.doubts = append(r.former.doubts, doubt{t, out, batch})
		return nil
	}
	r.place(t, out, batch, call)
	return nil
}

// batch is what has the tasks of a task's topic. One that the topic would refuse makes none.
func (r *router) batch(ctx context.Context, t *NewTask) (*actors.AddBatch, *problem.Error) {
	for i := len(r.topics) - 1; i >= 0; i-- {
		if r.topics[i].Config().Name == t.Topic {
			return r.batches[i], nil
		}
	}
	ref, err := r.node.Topics().Open(ctx, t.Topic, true, func(fresh *store.Topic) *problem.Error { return r.resolve(t, fresh) })
	if err != nil {
		return nil, err
	}
	config := ref.Config()
	batch := &actors.AddBatch{Topic: config, Shards: make([][]shard.Addition, config.End())}
	r.topics, r.batches = append(r.topics, ref), append(r.batches, batch)
	return batch, nil
}

// resolve gives a task its id, due time, expiry and fingerprint. A delay counts from a moment that the store's clock has
// not passed, and is rounded up: it is never cut short. No delay means due on arrival. It may be done again.
func (r *router) resolve(t *NewTask, topic *store.Topic) *problem.Error {
	now := store.Millis(r.now.UnixMilli())
	if err := t.checkAgainst(topic, now); err != nil {
		return err
	}
	return r.setTimes(t, topic)
}

// setTimes is resolve for a task that is checked.
func (r *router) setTimes(t *NewTask, topic *store.Topic) *problem.Error {
	t.Task.Fingerprint = t.fingerprint(r.digest)
	if t.Task.ID == "" {
		t.name()
	}
	present, latest := r.present(t, topic)
	now := store.Millis(present.UnixMilli())
	t.Task.Created, t.Task.Due, t.Task.Indexed = now, now, topic.Indexed
	switch {
	case t.When.At != 0:
		t.Task.Due = t.When.At
	case t.When.Delay > 0:
		t.Task.Due = clock.CeilMillis(latest.Add(t.When.Delay))
	}
	if t.Slack != 0 || t.Latest != 0 {
		if err := smooth(r.node, t, topic, now); err != nil {
			return err
		}
	}
	if t.ExpireAfter > 0 {
		t.Task.Expires = t.Task.Due.Add(t.ExpireAfter)
	}
	return checkExpiry(t.Task.Expires, t.Task.Due)
}

// present is the time by the clock of the shard that a named task goes to: a moment that
// it has reached, and one that it has not passed.
func (r *router) present(t *NewTask, topic *store.Topic) (now, latest time.Time) {
	if r.node.Clocks().Many() {
		if c := r.node.Clocks().Of(place.In(topic, topic.Active(), t.Task.ID)); c != nil {
			return c.Now(), c.Latest()
		}
	}
	return r.now, r.latest
}

// name gives a task an id.
func (t *NewTask) name() {
	if t.Task.Key != nil {
		t.Task.Key.SameRepeats = true
	}
	switch ordering := t.Task.Traits.Ordering(); {
	case ordering != "":
		t.Task.ID = place.KeyedID(ordering)
	case t.Task.Key != nil:
		t.Task.ID = place.KeyedID(t.Task.Key.Text)
	default:
		t.Task.ID = uuid.Must(uuid.NewV7()).String() // fails only without entropy
	}
}

// place puts a task with those of its shard.
func (r *router) place(t *NewTask, out *Enqueued, batch *actors.AddBatch, call *shard.Countdown) {
	out.ID = t.Task.ID
	n := place.In(batch.Topic, batch.Topic.Active(), t.Task.ID).N
	batch.Shards[n] = append(batch.Shards[n], shard.Addition{Task: &t.Task, To: (*answer)(out), Call: call})
}

func (r *router) send() {
	for i, ref := range r.topics {
		ref.Add(r.batches[i])
	}
}

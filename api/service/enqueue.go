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
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// Enqueue stores tasks, of any topics, and answers each in order. The error is
// about the request as a whole. When ctx ends first, every task of the request
// is in doubt.
func (s *Tasks) Enqueue(ctx context.Context, tasks []NewTask) ([]Enqueued, error) {
	if err := s.checkBatch(tasks); err != nil {
		return nil, err
	}
	out, err := s.enqueue(ctx, tasks)
	if err != nil {
		return nil, err
	}
	s.countEnqueued(out)
	return out, nil
}

// rerouteTries is how often tasks are sent again that a shard did not take because
// the topic has got other ones. Each try finds the configuration of the one before.
const rerouteTries = 3

func (s *Tasks) enqueue(ctx context.Context, tasks []NewTask) ([]Enqueued, error) {
	out, err := s.enqueueOnce(ctx, tasks)
	for range rerouteTries {
		missed := sealed(out)
		if len(missed) == 0 || err != nil {
			break
		}
		again, topics := make([]NewTask, len(missed)), make(map[string]bool)
		for k, i := range missed {
			again[k], topics[tasks[i].Topic] = tasks[i], true
		}
		for name := range topics {
			if err := s.node.Topics().RefreshSealed(ctx, name); err != nil {
				return nil, problem.AsError(err)
			}
		}
		var results []Enqueued
		if results, err = s.enqueueOnce(ctx, again); err == nil {
			for k, i := range missed {
				out[i] = results[k]
			}
		}
	}
	return out, err
}

// sealed are the tasks that went to a shard that takes no new ones.
func sealed(out []Enqueued) (missed []int) {
	for i := range out {
		if out[i].Err != nil && out[i].Err.Reason == problem.ReasonSealed {
			missed = append(missed, i)
		}
	}
	return missed
}

func (s *Tasks) enqueueOnce(ctx context.Context, tasks []NewTask) ([]Enqueued, error) {
	out := make([]Enqueued, len(tasks))
	done := make(chan struct{})
	call := shard.NewCountdown(len(tasks), func() { close(done) })
	r := s.route(ctx, tasks, out, call)
	defer r.leave()
	select {
	case <-done:
		s.clearLeftovers(ctx, r.leftovers)
		return out, nil
	case <-ctx.Done():
		return nil, problem.AsError(ctx.Err()) // out is still written to
	}
}

// CheckBatch refuses a request of so many tasks, before anything is done for them.
func (s *Tasks) CheckBatch(n int) error {
	if n == 0 || n > s.limits.BatchTasks {
		return problem.BadField("tasks", "BATCH_SIZE", "%d tasks; 1 to %d are allowed", n, s.limits.BatchTasks)
	}
	return nil
}

func (s *Tasks) checkBatch(tasks []NewTask) error {
	if err := s.node.Serving(); err != nil {
		return err
	}
	if err := s.CheckBatch(len(tasks)); err != nil {
		return err
	}
	l, bytes := s.limits, 0
	for i := range tasks {
		bytes += len(tasks[i].Task.Payload)
	}
	if bytes > l.BatchBytes && len(tasks) > 1 {
		return problem.BadField("tasks", "BATCH_SIZE", "%d bytes of payload; at most %d are allowed", bytes, l.BatchBytes)
	}
	return nil
}

// route prepares each task and sends it to its shard, refusing what is not valid.
func (s *Tasks) route(ctx context.Context, tasks []NewTask, out []Enqueued, call *shard.Countdown) *router {
	r := &router{node: s.node, store: s.store, limits: s.limits, now: s.node.Clock().Now(), latest: s.node.Clock().Latest(), digest: xxhash.New()}
	for i := range tasks {
		if err := r.add(ctx, &tasks[i], &out[i], call); err != nil {
			out[i].ID, out[i].Err = tasks[i].Task.ID, err
			call.Finish(1)
		}
	}
	if len(r.doubts) > 0 {
		r.resolveDoubts(ctx, call)
	}
	r.send()
	return r
}

// router sorts the tasks of one request by topic and shard.
type router struct {
	node        *actors.Node
	store       taskStore
	limits      *limits
	now, latest time.Time
	digest      *xxhash.Digest
	topics      []*actors.Topic
	batches     []*actors.AddBatch
	doubts      []doubt
	leftovers   []leftover
	entered     map[*actors.Topic]int // of topics with a backlog cap
}

func (r *router) add(ctx context.Context, t *NewTask, out *Enqueued, call *shard.Countdown) *problem.Error {
	if err := r.limits.checkTask(t); err != nil {
		return err
	}
	batch, err := r.batch(ctx, t.Topic)
	if err != nil {
		return err
	}
	topic, named := batch.Topic, t.Task.ID != ""
	if err := r.resolve(t, topic); err != nil {
		return err
	}
	if err := r.enter(ctx, topic); err != nil {
		return err
	}
	if (t.Task.Key != nil || t.Task.Traits.Ordering() != "") && place.Resharding(topic) {
		if met, err := r.meetKey(ctx, t, out, batch, call); met || err != nil {
			return err
		}
		named = false // its id is no other task's
	}
	if named && place.Resharding(topic) {
		r.doubts = append(r.doubts, doubt{t, out, batch})
		return nil
	}
	r.place(t, out, batch, call)
	return nil
}

// place puts a task with those of its shard.
func (r *router) place(t *NewTask, out *Enqueued, batch *actors.AddBatch, call *shard.Countdown) {
	out.ID = t.Task.ID
	n := place.In(batch.Topic, batch.Topic.Active(), t.Task.ID).N
	batch.Shards[n] = append(batch.Shards[n], shard.Addition{Task: &t.Task, To: (*answer)(out), Call: call})
}

// answer is an outcome as the shards fill it in.
type answer Enqueued

// Added translates what the store says.
func (a *answer) Added(t *store.Task, r store.AddResult) {
	a.Due = r.Due
	if t.Key != nil {
		a.keyed(t, r)
		return
	}
	switch r.Status {
	case store.Added:
		a.State, a.Replaced = store.StateScheduled, r.Replaced
	case store.Held:
		a.State, a.Replaced = store.StateRunning, r.Replaced
	case store.Duplicate:
		a.State, a.Deduplicated = r.State, true
	default:
		a.Err = problem.IDConflict(t.ID, r.State)
	}
}

// Refused says why nothing was stored.
func (a *answer) Refused(err *problem.Error) { a.Err = err }

func (r *router) batch(ctx context.Context, topic string) (*actors.AddBatch, *problem.Error) {
	for i := len(r.topics) - 1; i >= 0; i-- {
		if r.topics[i].Config().Name == topic {
			return r.batches[i], nil
		}
	}
	ref, err := r.node.Topics().Open(ctx, topic, true)
	if err != nil {
		return nil, err
	}
	config := ref.Config()
	batch := &actors.AddBatch{Topic: config, Shards: make([][]shard.Addition, config.End())}
	r.topics, r.batches = append(r.topics, ref), append(r.batches, batch)
	return batch, nil
}

// resolve gives a task its id, due time, expiry and fingerprint. A delay counts
// from a moment that the store's clock has not passed, and is rounded up: it is
// never cut short. No delay means due on arrival.
func (r *router) resolve(t *NewTask, topic *store.Topic) *problem.Error {
	now := store.Millis(r.now.UnixMilli())
	if err := t.checkAgainst(topic, now); err != nil {
		return err
	}
	t.Task.Fingerprint = t.fingerprint(r.digest)
	if t.Task.ID == "" {
		t.name()
	}
	present, latest := r.present(t, topic)
	now = store.Millis(present.UnixMilli())
	t.Task.Created, t.Task.Due, t.Task.Indexed = now, now, topic.Indexed
	switch {
	case t.When.At != 0:
		t.Task.Due = t.When.At
	case t.When.Delay > 0:
		t.Task.Due = clock.CeilMillis(latest.Add(t.When.Delay))
	}
	if t.Slack != 0 || t.Latest != 0 {
		if err := r.smooth(t, topic, now); err != nil {
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

func (r *router) send() {
	for i, ref := range r.topics {
		ref.Add(r.batches[i])
	}
}

func (s *Tasks) countEnqueued(out []Enqueued) {
	stored, again := 0, 0
	for i := range out {
		switch {
		case out[i].Deduplicated:
			again++
		case out[i].Err == nil:
			stored++
		}
	}
	s.node.Metrics().CountEnqueued(stored, again)
}

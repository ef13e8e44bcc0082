package actors

import (
	"context"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/google/uuid"

	"github.com/ddq-io/ddq/store"
)

// Enqueue stores tasks, of any topics, and answers each in order. The error is
// about the request as a whole. When ctx ends first, every task of the request
// is in doubt.
func (s *System) Enqueue(ctx context.Context, tasks []NewTask) ([]Enqueued, error) {
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

func (s *System) enqueue(ctx context.Context, tasks []NewTask) ([]Enqueued, error) {
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
			if err := s.refreshTopic(ctx, name); err != nil {
				return nil, failure(err)
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
		if out[i].Err != nil && out[i].Err.Reason == reasonSealed {
			missed = append(missed, i)
		}
	}
	return missed
}

func (s *System) enqueueOnce(ctx context.Context, tasks []NewTask) ([]Enqueued, error) {
	out := make([]Enqueued, len(tasks))
	done := make(chan struct{})
	call := newCountdown(len(tasks), func() { close(done) })
	r := s.route(ctx, tasks, out, call)
	defer r.leave()
	select {
	case <-done:
		s.clearLeftovers(ctx, r.leftovers)
		return out, nil
	case <-ctx.Done():
		return nil, failure(ctx.Err()) // out is still written to
	}
}

func (s *System) checkBatch(tasks []NewTask) error {
	if err := s.serving(); err != nil {
		return err
	}
	l, bytes := &s.cfg.Limits, 0
	if len(tasks) == 0 || len(tasks) > l.BatchTasks {
		return invalid("tasks", "BATCH_SIZE", "%d tasks; 1 to %d are allowed", len(tasks), l.BatchTasks)
	}
	for i := range tasks {
		bytes += len(tasks[i].Task.Payload)
	}
	if bytes > l.BatchBytes && len(tasks) > 1 {
		return invalid("tasks", "BATCH_SIZE", "%d bytes of payload; at most %d are allowed", bytes, l.BatchBytes)
	}
	return nil
}

// route prepares each task and sends it to its shard, refusing what is not valid.
func (s *System) route(ctx context.Context, tasks []NewTask, out []Enqueued, call *countdown) *router {
	r := &router{System: s, now: s.clock.Now(), latest: s.clock.Latest(), digest: xxhash.New()}
	for i := range tasks {
		if err := r.add(ctx, &tasks[i], &out[i], call); err != nil {
			out[i].ID, out[i].Err = tasks[i].Task.ID, err
			call.finish(1)
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
	*System
	now, latest time.Time
	digest      *xxhash.Digest
	topics      []*topicRef
	batches     []*enqueue
	doubts      []doubt
	leftovers   []leftover
	entered     map[*topicRef]int // of topics with a backlog cap
}

func (r *router) add(ctx context.Context, t *NewTask, out *Enqueued, call *countdown) *Error {
	if err := r.cfg.Limits.checkTask(t); err != nil {
		return err
	}
	batch, err := r.batch(ctx, t.Topic)
	if err != nil {
		return err
	}
	topic, named := batch.topic, t.Task.ID != ""
	if err := r.resolve(t, topic); err != nil {
		return err
	}
	if err := r.enter(ctx, topic); err != nil {
		return err
	}
	if (t.Task.Key != nil || t.Task.Traits.Ordering() != "") && resharding(topic) {
		if met, err := r.meetKey(ctx, t, out, batch, call); met || err != nil {
			return err
		}
		named = false // its id is no other task's
	}
	if named && resharding(topic) {
		r.doubts = append(r.doubts, doubt{t, out, batch})
		return nil
	}
	r.place(t, out, batch, call)
	return nil
}

// place puts a task with those of its shard.
func (r *router) place(t *NewTask, out *Enqueued, batch *enqueue, call *countdown) {
	out.ID = t.Task.ID
	shard := placeOf(batch.topic, batch.topic.Active(), t.Task.ID).N
	batch.shards[shard] = append(batch.shards[shard], addition{task: &t.Task, out: out, call: call})
}

func (r *router) batch(ctx context.Context, topic string) (*enqueue, *Error) {
	for i := len(r.topics) - 1; i >= 0; i-- {
		if r.topics[i].config.Load().Name == topic {
			return r.batches[i], nil
		}
	}
	ref, err := r.topic(ctx, topic, true)
	if err != nil {
		return nil, err
	}
	config := ref.config.Load()
	batch := &enqueue{topic: config, shards: make([][]addition, config.End())}
	r.topics, r.batches = append(r.topics, ref), append(r.batches, batch)
	return batch, nil
}

// resolve gives a task its id, due time, expiry and fingerprint. A delay counts
// from a moment that the store's clock has not passed, and is rounded up: it is
// never cut short. No delay means due on arrival.
func (r *router) resolve(t *NewTask, topic *store.Topic) *Error {
	now := store.Millis(r.now.UnixMilli())
	if err := t.checkAgainst(topic, now); err != nil {
		return err
	}
	t.Task.Fingerprint = t.fingerprint(r.digest)
	if t.Task.ID == "" {
		t.name()
	}
	t.Task.Created, t.Task.Due, t.Task.Indexed = now, now, topic.Indexed
	switch {
	case t.When.At != 0:
		t.Task.Due = t.When.At
	case t.When.Delay > 0:
		t.Task.Due = ceilMillis(r.latest.Add(t.When.Delay))
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

// name gives a task an id.
func (t *NewTask) name() {
	if t.Task.Key != nil {
		t.Task.Key.SameRepeats = true
	}
	switch ordering := t.Task.Traits.Ordering(); {
	case ordering != "":
		t.Task.ID = keyedID(ordering)
	case t.Task.Key != nil:
		t.Task.ID = keyedID(t.Task.Key.Text)
	default:
		t.Task.ID = uuid.Must(uuid.NewV7()).String() // fails only without entropy
	}
}

func (r *router) send() {
	for i, ref := range r.topics {
		r.use(ref)
		r.System.send(ref.pid, r.batches[i])
	}
}

func (s *System) countEnqueued(out []Enqueued) {
	stored, again := 0, 0
	for i := range out {
		switch {
		case out[i].Deduplicated:
			again++
		case out[i].Err == nil:
			stored++
		}
	}
	s.metrics.enqueued.Add(float64(stored))
	s.metrics.deduplicated.Add(float64(again))
}

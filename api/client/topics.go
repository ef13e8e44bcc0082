package client

import (
	"context"
	"iter"
	"time"

	"github.com/ddq-io/ddq/api/client/internal/call"
	"github.com/ddq-io/ddq/api/client/internal/wire"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// Policy holds what a topic decides for its tasks. A nil field means the
// server's default at creation, and no change in ConfigureTopic.
type Policy struct {
	Shards            *int           // 1 to 256; ReshardTopic changes it later
	VisibilityTimeout *time.Duration // 1s to 12h
	MaxRetries        *int           // 0 to 1,000
	Backoff           *Backoff
	MaxDelay          *time.Duration // the farthest due time: up to ten years
	MaxPayload        *int           // bytes
	DoneRetention     *time.Duration // how long done tasks are kept; 0 deletes them at the ack
	DeadRetention     *time.Duration // how long dead letters are kept; 0 keeps them for ever
	MaxDead           *int           // dead letters kept: beyond it the oldest are deleted; 0 any number
	MaxBacklog        *int           // tasks that may wait: beyond it ErrExhausted; 0 any number

	// WatchRetention is how long what happens to tasks is kept for Watch: 1s to 168h, or 0
	// for not at all; and WatchMax how many changes each shard keeps at least, if they are
	// not too old: 1,000 to 10,000,000, and 0 means 100,000.
	WatchRetention *time.Duration
	WatchMax       *int

	// WorkflowRetention is how long workflows are kept after their end that do not say it
	// themselves: 1s to 366 days, and 0 means 7 days; MaxWorkflows how many may be open, beyond
	// which a submit is ErrExhausted: 0 means 1,000,000.
	WorkflowRetention *time.Duration
	MaxWorkflows      *int

	// MaxSchedules is how many schedules the topic may have, beyond which one that is put is
	// ErrExhausted: 0 means 1,000,000.
	MaxSchedules *int

	// Limits over all nodes, see the guide about policies. The zero Rate and 0 are none.
	Rate           *Rate // of all tasks of the topic
	KeyRate        *Rate // of those of each rate key
	Concurrency    *int  // most tasks held at a time: up to 100,000
	KeyConcurrency *int  // of each concurrency key
	OverLimit      *OverLimit

	// PriorityAgeing: one of so many deliveries is that of the task that has been due
	// for longest, whatever its priority and fairness key: 1 to 1,000.
	PriorityAgeing *int

	// IndexedAttributes are the names of at most four attributes by which tasks are
	// found without a walk through all of them; none of them ends it.
	IndexedAttributes *[]string
}

// Topic is a named stream of tasks. All fields of its policy are set.
type Topic struct {
	Name           string
	Policy         Policy
	Version        int64 // rises with every change
	FormerShards   int   // of before a ReshardTopic, not empty yet
	DeliveryPaused bool
	EnqueuePaused  bool

	// Resumed is when deliveries began to rise after a pause, and Ramp how long they
	// do; zero when they did not have to.
	Resumed time.Time
	Ramp    time.Duration
}

// Depth counts the tasks of a topic by state.
type Depth struct {
	Scheduled int64 `json:"scheduled"`
	Ready     int64 `json:"ready"`
	Running   int64 `json:"running"`
	Done      int64 `json:"done"`
	Dead      int64 `json:"dead"` // dead and expired
}

// TopicStatus is a topic as it stands.
type TopicStatus struct {
	Topic
	Depth         Depth
	Subscriptions int    // on the node that answered
	Durability    string // fast, replicated or synced: what a receipt is worth

	// IndexingShards have an index of attributes that is not what the policy says yet: a
	// filter by such an attribute walks through their tasks.
	IndexingShards int

	// DefaultPolicy is that of a topic which is created now at the node that answered, nil from a
	// server of before. A value of Policy that is another one was set, or is a default of before.
	DefaultPolicy *Policy
}

// Topics are the calls about topics: what there is, their policies, pause and resume, purge. A Client has them.
type Topics struct {
	*caller
	admin ddqv1.AdminServiceClient
}

// CreateTopic creates a topic. ErrExists when there is one of that name.
func (c *Topics) CreateTopic(ctx context.Context, name string, p Policy) (topic Topic, err error) {
	reply, err := call.Answer(ctx, c.do, call.Once, c.admin.CreateTopic, &ddqv1.CreateTopicRequest{Name: name, Policy: p.wire()})
	return topicFrom(reply.GetTopic()), err
}

// ConfigureTopic changes the fields of p that are set.
func (c *Topics) ConfigureTopic(ctx context.Context, name string, p Policy) (topic Topic, err error) {
	reply, err := call.Answer(ctx, c.do, call.Idempotent, c.admin.ConfigureTopic, &ddqv1.ConfigureTopicRequest{Name: name, Policy: p.wire()})
	return topicFrom(reply.GetTopic()), err
}

// ConfigureTopicIf is ConfigureTopic for a topic of this version: ErrVersion when it
// was changed since. An answer that was lost is not asked for again: then, too, the
// next call says ErrVersion.
func (c *Topics) ConfigureTopicIf(ctx context.Context, name string, version int64, p Policy) (topic Topic, err error) {
	reply, err := call.Answer(ctx, c.do, call.Once, c.admin.ConfigureTopic, &ddqv1.ConfigureTopicRequest{Name: name, Policy: p.wire(), IfVersion: &version})
	return topicFrom(reply.GetTopic()), err
}

// DescribeTopic returns a topic and counts its tasks.
func (c *Topics) DescribeTopic(ctx context.Context, name string) (topic TopicStatus, err error) {
	reply, err := call.Answer(ctx, c.do, call.Idempotent, c.admin.DescribeTopic, &ddqv1.DescribeTopicRequest{Name: name})
	topic = TopicStatus{
		Topic:          topicFrom(reply.GetTopic()),
		Depth:          depthFrom(reply.GetDepth()),
		Subscriptions:  int(reply.GetSubscriptions()),
		Durability:     reply.GetDurability(),
		IndexingShards: int(reply.GetIndexingShards()),
	}
	if p := reply.GetDefaultPolicy(); p != nil {
		topic.DefaultPolicy = new(policyFrom(p))
	}
	return topic, err
}

func depthFrom(d *ddqv1.Depth) Depth {
	return Depth{Scheduled: d.GetScheduled(), Ready: d.GetReady(), Running: d.GetRunning(), Done: d.GetDone(), Dead: d.GetDead()}
}

// ListTopics goes through all topics. The sequence ends with the first error.
func (c *Topics) ListTopics(ctx context.Context) iter.Seq2[Topic, error] {
	return call.Pages(func(token string) ([]Topic, string, error) {
		reply, err := call.Answer(ctx, c.do, call.Idempotent, c.admin.ListTopics, &ddqv1.ListTopicsRequest{PageSize: call.PageSize, PageToken: token})
		return call.List(reply.GetTopics(), topicFrom), reply.GetNextPageToken(), err
	})
}

// DeleteTopic deletes a topic: an empty one, or with force also its tasks.
func (c *Topics) DeleteTopic(ctx context.Context, name string, force bool) error {
	_, err := call.Answer(ctx, c.do, call.Once, c.admin.DeleteTopic, &ddqv1.DeleteTopicRequest{Name: name, Force: force})
	return err
}

// Pause says what of a topic to pause.
type Pause struct {
	Delivery bool // tasks stay where they are when due
	Enqueue  bool // new tasks are refused with ErrExhausted
}

// PauseTopic pauses delivery, enqueues or both, until ResumeTopic.
func (c *Topics) PauseTopic(ctx context.Context, name string, p Pause) (topic Topic, err error) {
	reply, err := call.Answer(ctx, c.do, call.Idempotent, c.admin.PauseTopic, &ddqv1.PauseTopicRequest{Name: name, Delivery: p.Delivery, Enqueue: p.Enqueue})
	return topicFrom(reply.GetTopic()), err
}

// ResumeTopic ends every pause of a topic.
func (c *Topics) ResumeTopic(ctx context.Context, name string) (topic Topic, err error) {
	reply, err := call.Answer(ctx, c.do, call.Idempotent, c.admin.ResumeTopic, &ddqv1.ResumeTopicRequest{Name: name})
	return topicFrom(reply.GetTopic()), err
}

// ResumeTopicSlowly ends every pause of a topic. Deliveries that were paused rise
// from almost none to all that workers take, over ramp: at most an hour.
func (c *Topics) ResumeTopicSlowly(ctx context.Context, name string, ramp time.Duration) (topic Topic, err error) {
	reply, err := call.Answer(ctx, c.do, call.Idempotent, c.admin.ResumeTopic, &ddqv1.ResumeTopicRequest{Name: name, RampMs: wire.Millis(ramp)})
	return topicFrom(reply.GetTopic()), err
}

// PurgeTopic deletes the tasks that no worker holds and returns how many. Those of workflows'
// steps are skipped: CancelWorkflow ends them.
func (c *Topics) PurgeTopic(ctx context.Context, name string) (deleted, skipped int64, err error) {
	reply, err := call.Answer(ctx, c.do, call.Once, c.admin.PurgeTopic, &ddqv1.PurgeTopicRequest{Name: name})
	return reply.GetDeleted(), reply.GetSkipped(), err
}

func (p Policy) wire() *ddqv1.TopicPolicy {
	w := &ddqv1.TopicPolicy{
		Shards:              wire.Int32Ptr(p.Shards),
		VisibilityTimeoutMs: wire.MillisPtr(p.VisibilityTimeout),
		MaxRetries:          wire.Int32Ptr(p.MaxRetries),
		Backoff:             p.Backoff.wire(),
		MaxDelayMs:          wire.MillisPtr(p.MaxDelay),
		DoneRetentionMs:     wire.MillisPtr(p.DoneRetention),
		DeadRetentionMs:     wire.MillisPtr(p.DeadRetention),
		MaxDead:             wire.Int64Ptr(p.MaxDead),
		MaxBacklog:          wire.Int64Ptr(p.MaxBacklog),
		MaxPayloadBytes:     wire.Int64Ptr(p.MaxPayload),
		PriorityAgeing:      wire.Int32Ptr(p.PriorityAgeing),
		WatchRetentionMs:    wire.MillisPtr(p.WatchRetention),
		WatchMaxEvents:      wire.Int64Ptr(p.WatchMax),
		WorkflowRetentionMs: wire.MillisPtr(p.WorkflowRetention),
		MaxWorkflows:        wire.Int64Ptr(p.MaxWorkflows),
		MaxSchedules:        wire.Int64Ptr(p.MaxSchedules),
	}
	if p.IndexedAttributes != nil {
		w.IndexedAttributes = &ddqv1.IndexedAttributes{Names: *p.IndexedAttributes}
	}
	p.limits(w)
	return w
}

func topicFrom(t *ddqv1.Topic) Topic {
	return Topic{
		Name:           t.GetName(),
		Policy:         policyFrom(t.GetPolicy()),
		Version:        t.GetVersion(),
		FormerShards:   int(t.GetFormerShards()),
		DeliveryPaused: t.GetDeliveryPaused(),
		EnqueuePaused:  t.GetEnqueuePaused(),
		Ramp:           wire.Duration(t.GetRampMs()),
		Resumed:        wire.UnixTime(t.GetResumedUnixMs()),
	}
}

func policyFrom(p *ddqv1.TopicPolicy) Policy {
	policy := Policy{
		Shards:            new(int(p.GetShards())),
		VisibilityTimeout: new(wire.Duration(p.GetVisibilityTimeoutMs())),
		MaxRetries:        new(int(p.GetMaxRetries())),
		Backoff:           backoffFrom(p.GetBackoff()),
		MaxDelay:          new(wire.Duration(p.GetMaxDelayMs())),
		MaxPayload:        new(int(p.GetMaxPayloadBytes())),
		DoneRetention:     new(wire.Duration(p.GetDoneRetentionMs())),
		DeadRetention:     new(wire.Duration(p.GetDeadRetentionMs())),
		MaxDead:           new(int(p.GetMaxDead())),
		MaxBacklog:        new(int(p.GetMaxBacklog())),
		PriorityAgeing:    new(int(p.GetPriorityAgeing())),
		WatchRetention:    new(wire.Duration(p.GetWatchRetentionMs())),
		WatchMax:          new(int(p.GetWatchMaxEvents())),
		WorkflowRetention: new(wire.Duration(p.GetWorkflowRetentionMs())),
		MaxWorkflows:      new(int(p.GetMaxWorkflows())),
		MaxSchedules:      new(int(p.GetMaxSchedules())),
		IndexedAttributes: new(p.GetIndexedAttributes().GetNames()),
	}
	policy.limitsFrom(p)
	return policy
}

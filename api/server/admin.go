package server

import (
	"context"
	"unicode/utf8"

	"github.com/ddq-io/ddq/actors/metrics"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/wire"
	"github.com/ddq-io/ddq/store"
)

// admin serves AdminService.
type admin struct {
	ddqv1.UnsafeAdminServiceServer
	*lifetime
	service *service.Service
	version string // of this program

	warnings func() []string // of the node's settings; may be nil
	accepted []string        // of those, what a setting accepts
}

var _ ddqv1.AdminServiceServer = (*admin)(nil)

func (a *admin) CreateTopic(ctx context.Context, r *ddqv1.CreateTopicRequest) (*ddqv1.CreateTopicResponse, error) {
	change, e := policyOf(r.Policy)
	if e != nil {
		return nil, e
	}
	t, err := a.service.Topics.Create(ctx, r.Name, change)
	if err != nil {
		return nil, err
	}
	return &ddqv1.CreateTopicResponse{Topic: topicWire(&t)}, nil
}

func (a *admin) ConfigureTopic(ctx context.Context, r *ddqv1.ConfigureTopicRequest) (*ddqv1.ConfigureTopicResponse, error) {
	change, e := policyOf(r.Policy)
	if e != nil {
		return nil, e
	}
	change.IfVersion = r.IfVersion
	t, err := a.service.Topics.Configure(ctx, r.Name, change)
	if err != nil {
		return nil, err
	}
	return &ddqv1.ConfigureTopicResponse{Topic: topicWire(&t)}, nil
}

func (a *admin) DescribeTopic(ctx context.Context, r *ddqv1.DescribeTopicRequest) (*ddqv1.DescribeTopicResponse, error) {
	t, err := a.service.Topics.Describe(ctx, r.Name)
	if err != nil {
		return nil, err
	}
	server, err := a.service.Describe(ctx)
	if err != nil {
		return nil, err
	}
	return &ddqv1.DescribeTopicResponse{
		Topic:          topicWire(&t.Topic),
		Depth:          depthWire(t.Depth),
		Subscriptions:  int32(t.Subscriptions),
		Durability:     server.Store.Durability,
		IndexingShards: int32(t.Indexing),
		DefaultPolicy:  topicWire(&t.Default).Policy,
	}, nil
}

func depthWire(d metrics.Depth) *ddqv1.Depth {
	return &ddqv1.Depth{Scheduled: d.Scheduled, Ready: d.Ready, Running: d.Running, Done: d.Done, Dead: d.Dead}
}

func (a *admin) ListTopics(ctx context.Context, r *ddqv1.ListTopicsRequest) (*ddqv1.ListTopicsResponse, error) {
	size, e := pageSize(r.PageSize)
	if e != nil {
		return nil, e
	}
	topics, next, err := a.service.Topics.List(ctx, size, r.PageToken)
	if err != nil {
		return nil, err
	}
	out := &ddqv1.ListTopicsResponse{NextPageToken: next}
	for i := range topics {
		out.Topics = append(out.Topics, topicWire(&topics[i]))
	}
	return out, nil
}

func (a *admin) DeleteTopic(ctx context.Context, r *ddqv1.DeleteTopicRequest) (*ddqv1.DeleteTopicResponse, error) {
	if err := a.service.Topics.Delete(ctx, r.Name, r.Force); err != nil {
		return nil, err
	}
	return &ddqv1.DeleteTopicResponse{}, nil
}

func (a *admin) PauseTopic(ctx context.Context, r *ddqv1.PauseTopicRequest) (*ddqv1.PauseTopicResponse, error) {
	if !r.Delivery && !r.Enqueue {
		return nil, wire.Invalid("OUT_OF_RANGE_FIELD", "delivery", "or enqueue must be set: there is nothing to pause")
	}
	var change service.TopicChange
	if r.Delivery {
		change.DeliveryPaused = &r.Delivery
	}
	if r.Enqueue {
		change.EnqueuePaused = &r.Enqueue
	}
	t, err := a.service.Topics.Configure(ctx, r.Name, change)
	if err != nil {
		return nil, err
	}
	return &ddqv1.PauseTopicResponse{Topic: topicWire(&t)}, nil
}

func (a *admin) ResumeTopic(ctx context.Context, r *ddqv1.ResumeTopicRequest) (*ddqv1.ResumeTopicResponse, error) {
	ramp, e := wire.Span(r.RampMs, "ramp_ms")
	if e != nil {
		return nil, e
	}
	t, err := a.service.Topics.Configure(ctx, r.Name, service.TopicChange{DeliveryPaused: new(bool), EnqueuePaused: new(bool), Ramp: ramp})
	if err != nil {
		return nil, err
	}
	return &ddqv1.ResumeTopicResponse{Topic: topicWire(&t)}, nil
}

func (a *admin) PurgeTopic(ctx context.Context, r *ddqv1.PurgeTopicRequest) (*ddqv1.PurgeTopicResponse, error) {
	done, err := a.service.Topics.Purge(ctx, r.Name)
	if err != nil {
		return nil, err
	}
	return &ddqv1.PurgeTopicResponse{Deleted: done.Deleted, Skipped: done.Skipped}, nil
}

func (a *admin) ListDeadLetters(ctx context.Context, r *ddqv1.ListDeadLettersRequest) (*ddqv1.ListDeadLettersResponse, error) {
	filter, e := filterOf(r.Filter)
	if e != nil {
		return nil, e
	}
	tasks, next, err := page(r.PageSize, r.PageToken, func(size int, token string) ([]service.Found, string, error) {
		return a.service.DeadLetters.List(ctx, r.Topic, filter, size, token)
	})
	if err != nil {
		return nil, err
	}
	return &ddqv1.ListDeadLettersResponse{Tasks: tasks, NextPageToken: next}, nil
}

func (a *admin) RequeueDeadLetters(ctx context.Context, r *ddqv1.RequeueDeadLettersRequest) (*ddqv1.RequeueDeadLettersResponse, error) {
	filter, e := filterOf(r.Filter)
	if e != nil {
		return nil, e
	}
	if r.DryRun {
		p, err := a.dryRun(ctx, r, filter, true)
		return &ddqv1.RequeueDeadLettersResponse{Skipped: p.Skipped, Matched: p.Matched, Examined: p.Examined, Capped: p.Capped}, err
	}
	done, err := a.service.DeadLetters.Requeue(ctx, r.Topic, r.Ids, filter, service.Pace{})
	if err != nil {
		return nil, err
	}
	return &ddqv1.RequeueDeadLettersResponse{Requeued: done.Count, NotFound: texts(done.Missing), Skipped: done.Skipped}, nil
}

func (a *admin) DeleteDeadLetters(ctx context.Context, r *ddqv1.DeleteDeadLettersRequest) (*ddqv1.DeleteDeadLettersResponse, error) {
	filter, e := filterOf(r.Filter)
	if e != nil {
		return nil, e
	}
	if r.DryRun {
		p, err := a.dryRun(ctx, r, filter, false)
		return &ddqv1.DeleteDeadLettersResponse{Matched: p.Matched, Examined: p.Examined, Capped: p.Capped}, err
	}
	n, missing, err := a.service.DeadLetters.Delete(ctx, r.Topic, r.Ids, filter, service.Pace{})
	if err != nil {
		return nil, err
	}
	return &ddqv1.DeleteDeadLettersResponse{Deleted: n, NotFound: texts(missing)}, nil
}

// deadAsked is what requeues and deletes of dead letters have in common.
type deadAsked interface {
	GetTopic() string
	GetIds() []string
}

// dryRun counts the dead letters that a call would change.
func (a *admin) dryRun(ctx context.Context, r deadAsked, filter service.DeadFilter, requeue bool) (p service.Progress, err error) {
	if len(r.GetIds()) > 0 {
		return p, wire.Invalid("BAD_FILTER", "ids", "must be empty in a dry run, which counts what a filter matches")
	}
	return a.service.DeadLetters.Count(ctx, r.GetTopic(), filter, service.DryRun{Most: service.DryRunCall, Requeue: requeue})
}

func (a *admin) DescribeServer(ctx context.Context, _ *ddqv1.DescribeServerRequest) (*ddqv1.DescribeServerResponse, error) {
	d, err := a.service.Describe(ctx)
	if err != nil {
		return nil, err
	}
	if a.warnings != nil {
		d.Warnings = append(d.Warnings, a.warnings()...)
	}
	return &ddqv1.DescribeServerResponse{
		Version:                    a.version,
		Node:                       d.Node,
		Store:                      d.Store.Name,
		Durability:                 d.Store.Durability,
		Warnings:                   texts(d.Warnings),
		AcceptedWarnings:           texts(a.accepted),
		StoreNowUnixMs:             int64(d.StoreNow),
		UptimeMs:                   d.Uptime.Milliseconds(),
		DefaultVisibilityTimeoutMs: d.Visibility.Milliseconds(),
		MaxPayloadBytes:            int64(d.Limits.Payload),
	}, nil
}

// filterOf converts a filter that may be unset.
func filterOf(f *ddqv1.DeadLetterFilter) (out service.DeadFilter, e *problem.Error) {
	if f == nil {
		return out, nil
	}
	if out.Reason, e = wire.ReadEnum[store.Reason](reasonToWire[:], f.Reason, "filter.reason"); e != nil {
		return out, e
	}
	if !utf8.ValidString(f.ErrorContains) { // mended it would match, and delete, other tasks
		return out, wire.Invalid("OUT_OF_RANGE_FIELD", "filter.error_contains", "must be UTF-8")
	}
	if f.DeadAfterUnixMs < 0 {
		return out, wire.Invalid("BAD_TIME", "filter.dead_after_unix_ms", "must not be negative")
	}
	if f.DeadBeforeUnixMs < 0 {
		return out, wire.Invalid("BAD_TIME", "filter.dead_before_unix_ms", "must not be negative")
	}
	out.ErrorContains = f.ErrorContains
	out.After, out.Before = store.Millis(f.DeadAfterUnixMs), store.Millis(f.DeadBeforeUnixMs)
	return out, nil
}

// texts makes every string fit for the wire.
func texts(in []string) []string {
	for i, s := range in {
		in[i] = wire.Text(s)
	}
	return in
}

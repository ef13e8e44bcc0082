package client

import (
	"context"
	"iter"
	"time"

	"github.com/ddq-io/ddq/api/client/internal/call"
	"github.com/ddq-io/ddq/api/client/internal/wire"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// DeadLetterFilter narrows dead letters down; zero fields match everything.
type DeadLetterFilter struct {
	Reason        DeadReason
	ErrorContains string    // part of the last error
	After, Before time.Time // when the task died
}

// Wire is f as messages have it.
func (f DeadLetterFilter) Wire() *ddqv1.DeadLetterFilter {
	return &ddqv1.DeadLetterFilter{
		Reason: ddqv1.DeadReason(f.Reason), ErrorContains: f.ErrorContains,
		DeadAfterUnixMs: wire.UnixMillis(f.After), DeadBeforeUnixMs: wire.UnixMillis(f.Before),
	}
}

// DeadLetters are the calls about tasks that are dead: list, requeue and delete. A Client
// has them.
type DeadLetters struct {
	*caller
	admin ddqv1.AdminServiceClient
}

// ListDeadLetters goes through the dead letters of a topic that f matches. The
// sequence ends with the first error.
func (c *DeadLetters) ListDeadLetters(ctx context.Context, topic string, f DeadLetterFilter) iter.Seq2[Snapshot, error] {
	return call.Pages(func(token string) ([]Snapshot, string, error) {
		reply, err := call.Answer(ctx, c.do, call.Idempotent, c.admin.ListDeadLetters, &ddqv1.ListDeadLettersRequest{
			Topic:     topic,
			Filter:    f.Wire(),
			PageSize:  call.PageSize,
			PageToken: token,
		})
		return snapshots(reply.GetTasks()), reply.GetNextPageToken(), err
	})
}

// RequeueDeadLetters makes dead letters due now, with fresh attempts. It
// returns how many, and which of ids are no dead letters. At most 1,000 ids. With the
// task of a workflow's step among them nothing is requeued: RetryWorkflow makes it anew.
func (c *DeadLetters) RequeueDeadLetters(ctx context.Context, topic string, ids []string) (requeued int64, notFound []string, err error) {
	if len(ids) == 0 {
		return 0, nil, nil // on the wire, no ids mean all
	}
	reply, err := call.Answer(ctx, c.do, call.Once, c.admin.RequeueDeadLetters, &ddqv1.RequeueDeadLettersRequest{Topic: topic, Ids: ids})
	return reply.GetRequeued(), reply.GetNotFound(), err
}

// RequeueMatching makes all dead letters that f matches due now, with fresh
// attempts, and returns how many. Those of workflows' steps are skipped.
func (c *DeadLetters) RequeueMatching(ctx context.Context, topic string, f DeadLetterFilter) (requeued, skipped int64, err error) {
	reply, err := call.Answer(ctx, c.do, call.Once, c.admin.RequeueDeadLetters, &ddqv1.RequeueDeadLettersRequest{Topic: topic, Filter: f.Wire()})
	return reply.GetRequeued(), reply.GetSkipped(), err
}

// DeleteDeadLetters deletes dead letters for good. It returns how many, and
// which of ids are no dead letters. At most 1,000 ids.
func (c *DeadLetters) DeleteDeadLetters(ctx context.Context, topic string, ids []string) (deleted int64, notFound []string, err error) {
	if len(ids) == 0 {
		return 0, nil, nil // on the wire, no ids mean all
	}
	return c.deleteDead(ctx, &ddqv1.DeleteDeadLettersRequest{Topic: topic, Ids: ids})
}

// DeleteMatching deletes all dead letters that f matches and returns how many.
func (c *DeadLetters) DeleteMatching(ctx context.Context, topic string, f DeadLetterFilter) (deleted int64, err error) {
	deleted, _, err = c.deleteDead(ctx, &ddqv1.DeleteDeadLettersRequest{Topic: topic, Filter: f.Wire()})
	return deleted, err
}

func (c *DeadLetters) deleteDead(ctx context.Context, r *ddqv1.DeleteDeadLettersRequest) (deleted int64, notFound []string, err error) {
	reply, err := call.Answer(ctx, c.do, call.Once, c.admin.DeleteDeadLetters, r)
	return reply.GetDeleted(), reply.GetNotFound(), err
}

// DeadCount is what a dry run counted.
type DeadCount struct {
	Matched  int64
	Skipped  int64 // of those that match: tasks of workflows' steps, which a requeue leaves as they are
	Examined int64 // dead letters, 10,000 at most
	Capped   bool  // there may be more that match, among those that were not examined
}

// CountRequeue counts what RequeueMatching would requeue, and changes nothing. A server of before does not know
// that it is not to requeue them: update it first.
func (c *DeadLetters) CountRequeue(ctx context.Context, topic string, f DeadLetterFilter) (DeadCount, error) {
	r, err := call.Answer(ctx, c.do, call.Idempotent, c.admin.RequeueDeadLetters, &ddqv1.RequeueDeadLettersRequest{Topic: topic, Filter: f.Wire(), DryRun: true})
	return DeadCount{r.GetMatched(), r.GetSkipped(), r.GetExamined(), r.GetCapped()}, err
}

// CountDelete counts what DeleteMatching would delete, as CountRequeue does.
func (c *DeadLetters) CountDelete(ctx context.Context, topic string, f DeadLetterFilter) (DeadCount, error) {
	r, err := call.Answer(ctx, c.do, call.Idempotent, c.admin.DeleteDeadLetters, &ddqv1.DeleteDeadLettersRequest{Topic: topic, Filter: f.Wire(), DryRun: true})
	return DeadCount{Matched: r.GetMatched(), Examined: r.GetExamined(), Capped: r.GetCapped()}, err
}

package client

import (
	"context"
	"errors"
	"io"
	"iter"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/ddq-io/ddq/api/client/internal/call"
	"github.com/ddq-io/ddq/api/client/internal/wire"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// Filter says which tasks of a topic are meant: those that everything which is set
// matches.
type Filter struct {
	States                     []State   // any of these; every live one when empty
	DueFrom, DueBefore         time.Time // from the first on, and before the second
	CreatedFrom, CreatedBefore time.Time
	IDPrefix                   string
	Attributes                 map[string]string // with these values
	AttributePrefixes          map[string]string // with values that begin like these
}

// Wire is f as messages have it.
func (f *Filter) Wire() *ddqv1.TaskFilter {
	w := &ddqv1.TaskFilter{
		DueFromUnixMs: wire.UnixMillis(f.DueFrom), DueBeforeUnixMs: wire.UnixMillis(f.DueBefore),
		CreatedFromUnixMs: wire.UnixMillis(f.CreatedFrom), CreatedBeforeUnixMs: wire.UnixMillis(f.CreatedBefore), IdPrefix: f.IDPrefix,
	}
	for _, s := range f.States {
		w.States = append(w.States, ddqv1.TaskState(s))
	}
	for _, key := range slices.Sorted(maps.Keys(f.Attributes)) {
		w.Attributes = append(w.Attributes, &ddqv1.AttributeFilter{Key: key, Match: &ddqv1.AttributeFilter_Equals{Equals: f.Attributes[key]}})
	}
	for _, key := range slices.Sorted(maps.Keys(f.AttributePrefixes)) {
		w.Attributes = append(w.Attributes, &ddqv1.AttributeFilter{Key: key, Match: &ddqv1.AttributeFilter_Prefix{Prefix: f.AttributePrefixes[key]}})
	}
	return w
}

// Find goes through the tasks of a topic that f matches, those that wait in order of
// their due times within each shard, or, where they are found by an indexed attribute, in
// order of its value and of their ids. Tasks that change state meanwhile may be missed or
// seen twice. The sequence ends with the first error.
func (c *Tasks) Find(ctx context.Context, topic string, f Filter) iter.Seq2[Snapshot, error] {
	return call.Pages(func(token string) ([]Snapshot, string, error) {
		reply, err := call.Answer(ctx, c.do, call.Idempotent, c.queue.ListTasks, &ddqv1.ListTasksRequest{Topic: topic, Filter: f.Wire(), PageSize: call.PageSize, PageToken: token})
		return snapshots(reply.GetTasks()), reply.GetNextPageToken(), err
	})
}

// Counts are numbers of tasks by state.
type Counts struct {
	Scheduled, Ready, Retrying, Running, Done, Dead int64
}

// CountTasks counts the tasks of a topic by state: all of them with the zero Filter,
// which costs next to nothing and counts retrying tasks as scheduled ones; else those
// that f matches, which are read for it.
func (c *Tasks) CountTasks(ctx context.Context, topic string, f Filter) (n Counts, err error) {
	r, err := call.Answer(ctx, c.do, call.Idempotent, c.queue.CountTasks, &ddqv1.CountTasksRequest{Topic: topic, Filter: f.Wire()})
	return Counts{r.GetScheduled(), r.GetReady(), r.GetRetrying(), r.GetRunning(), r.GetDone(), r.GetDead()}, err
}

// Histogram counts the tasks that no worker holds by when they are due. Before, Counts
// and After add up to Pending.
type Histogram struct {
	Start   time.Time
	Bucket  time.Duration
	Counts  []int64
	Before  int64 // due before Start
	After   int64 // due after the last bucket
	Pending int64
}

// DueHistogram counts in buckets of a width from start on, which is now when it is
// zero: at most 1,000, and 60 when buckets is 0.
func (c *Tasks) DueHistogram(ctx context.Context, topic string, start time.Time, width time.Duration, buckets int) (h Histogram, err error) {
	request := &ddqv1.DueHistogramRequest{Topic: topic, StartUnixMs: wire.UnixMillis(start), BucketMs: wire.Millis(width), Buckets: wire.Int32(buckets)}
	r, err := call.Answer(ctx, c.do, call.Idempotent, c.queue.DueHistogram, request)
	return Histogram{
		Start: time.UnixMilli(r.GetStartUnixMs()), Bucket: wire.Duration(r.GetBucketMs()), Counts: r.GetCounts(),
		Before: r.GetBefore(), After: r.GetAfter(), Pending: r.GetPending(),
	}, err
}

// Bulk says how DeleteTasks and RescheduleTasks go about it.
type Bulk struct {
	DryRun   bool  // count only
	MaxTasks int64 // no more than these are matched; 0 means 1,000,000, the most

	// Progress, if set, hears how far the server is.
	Progress func(Progress)
}

// Progress is how far a change of many tasks is.
type Progress struct {
	Matched, Changed int64
	Skipped          int64 // matched, and delivered, deleted or edited before it was their turn
	Capped           bool  // there may be more that match than MaxTasks
}

// DeleteTasks deletes the tasks that f matches and no worker holds. f must not be zero:
// PurgeTopic deletes everything. It takes as long as there are tasks, and ctx lasts: the
// client's timeout does not apply. An error comes with what was done before it.
func (c *Tasks) DeleteTasks(ctx context.Context, topic string, f Filter, b Bulk) (Progress, error) {
	stream, err := c.queue.DeleteTasks(ctx, &ddqv1.DeleteTasksRequest{Topic: topic, Filter: f.Wire(), DryRun: b.DryRun, MaxTasks: b.MaxTasks})
	if err != nil {
		return Progress{}, fromRPC(err)
	}
	return b.follow(func() (*ddqv1.BulkProgress, error) {
		r, err := stream.Recv()
		return r.GetProgress(), err
	})
}

// Shift says when tasks are due: at When, or, when it is nil, By from their own due
// times, which may be negative; and each up to Spread later, by its id.
type Shift struct {
	When   *When
	By     time.Duration
	Spread time.Duration
}

// RescheduleTasks moves the due times of the tasks that f matches and no worker holds.
// It is otherwise like DeleteTasks.
func (c *Tasks) RescheduleTasks(ctx context.Context, topic string, f Filter, to Shift, b Bulk) (Progress, error) {
	r := &ddqv1.RescheduleTasksRequest{Topic: topic, Filter: f.Wire(), DryRun: b.DryRun, MaxTasks: b.MaxTasks}
	switch {
	case to.When == nil:
		r.When = &ddqv1.RescheduleTasksRequest_Shift{Shift: durationpb.New(to.By)}
	case to.When.Due.IsZero():
		r.When = &ddqv1.RescheduleTasksRequest_Delay{Delay: durationpb.New(to.When.Delay)}
	default:
		r.When = &ddqv1.RescheduleTasksRequest_ExecuteTime{ExecuteTime: timestamppb.New(to.When.Due)}
	}
	if to.Spread != 0 {
		r.Spread = durationpb.New(to.Spread)
	}
	stream, err := c.queue.RescheduleTasks(ctx, r)
	if err != nil {
		return Progress{}, fromRPC(err)
	}
	return b.follow(func() (*ddqv1.BulkProgress, error) {
		r, err := stream.Recv()
		return r.GetProgress(), err
	})
}

// follow reads how far the server is until it is done.
func (b *Bulk) follow(next func() (*ddqv1.BulkProgress, error)) (p Progress, err error) {
	done := false
	for {
		r, err := next()
		switch {
		case errors.Is(err, io.EOF) && done:
			return p, nil
		case errors.Is(err, io.EOF):
			return p, fromRPC(io.ErrUnexpectedEOF)
		case err != nil:
			return p, fromRPC(err)
		}
		p = Progress{r.GetMatched(), r.GetChanged(), r.GetSkipped(), r.GetCapped()}
		done = r.GetDone()
		if b.Progress != nil {
			b.Progress(p)
		}
	}
}

package server

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// stock enqueues 60 tasks, t-00 to t-59, each due a minute after the one before, of
// two tenants in turn.
func (r *rig) stock() (start time.Time) {
	r.Helper()
	start = time.Now()
	for i := range 60 {
		r.enqueue(&ddqv1.EnqueueRequest{
			Topic: "t", Id: fmt.Sprintf("t-%02d", i), When: &ddqv1.EnqueueRequest_Delay{Delay: durationpb.New(time.Duration(i+1) * time.Minute)},
			Attributes: []*ddqv1.Attribute{{Key: "tenant", Value: []string{"acme", "tiny"}[i%2]}, {Key: "path", Value: fmt.Sprintf("/mail/%d", i)}},
		})
	}
	return start
}

// found lists what a filter matches, in pages of 7, by id.
func (r *rig) found(f *ddqv1.TaskFilter) []string {
	r.Helper()
	var ids []string
	for token := ""; ; {
		page, err := r.queue.ListTasks(r.Context(), &ddqv1.ListTasksRequest{Topic: "t", Filter: f, PageSize: 7, PageToken: token})
		if err != nil {
			r.Fatal(err)
		}
		for _, t := range page.Tasks {
			ids = append(ids, t.Id)
		}
		if token = page.NextPageToken; token == "" {
			slices.Sort(ids)
			return ids
		}
	}
}

func numbers(from, to, step int) (ids []string) {
	for i := from; i < to; i += step {
		ids = append(ids, fmt.Sprintf("t-%02d", i))
	}
	return ids
}

func attribute(key, equals string) []*ddqv1.AttributeFilter {
	return []*ddqv1.AttributeFilter{{Key: key, Match: &ddqv1.AttributeFilter_Equals{Equals: equals}}}
}

// TestFindByFilter is what hibiken/asynq#595 and riverqueue/riverui#383 ask for: find
// the tasks of one tenant among all others.
func TestFindByFilter(t *testing.T) { testFindByFilter(t, nil) }

// TestFindByIndexedAttributes finds the same.
func TestFindByIndexedAttributes(t *testing.T) { testFindByFilter(t, []string{"tenant", "path"}) }

func testFindByFilter(t *testing.T, indexed []string) {
	bubble(t, Config{}, func(r *rig) {
		must(r, created("t", &ddqv1.TopicPolicy{IndexedAttributes: &ddqv1.IndexedAttributes{Names: indexed}})(r))
		start := r.stock()
		held := r.hold("t", "held")
		ms := func(minutes int) int64 { return start.Add(time.Duration(minutes) * time.Minute).UnixMilli() }
		for _, c := range []struct {
			filter *ddqv1.TaskFilter
			want   []string
		}{
			{&ddqv1.TaskFilter{IdPrefix: "t-0"}, numbers(0, 10, 1)},
			{&ddqv1.TaskFilter{DueFromUnixMs: ms(11), DueBeforeUnixMs: ms(21)}, numbers(10, 20, 1)},
			{&ddqv1.TaskFilter{Attributes: attribute("tenant", "acme")}, numbers(0, 60, 2)},
			{&ddqv1.TaskFilter{Attributes: append(attribute("tenant", "tiny"), attribute("path", "/mail/7")...)}, []string{"t-07"}},
			{&ddqv1.TaskFilter{Attributes: []*ddqv1.AttributeFilter{{Key: "path", Match: &ddqv1.AttributeFilter_Prefix{Prefix: "/mail/5"}}}}, append(numbers(5, 6, 1), numbers(50, 60, 1)...)},
			{&ddqv1.TaskFilter{Attributes: attribute("tenant", "ac")}, nil},
			{&ddqv1.TaskFilter{CreatedBeforeUnixMs: start.UnixMilli()}, nil},
			{&ddqv1.TaskFilter{CreatedFromUnixMs: start.UnixMilli(), IdPrefix: "t-5"}, numbers(50, 60, 1)},
			{&ddqv1.TaskFilter{States: []ddqv1.TaskState{ddqv1.TaskState_TASK_STATE_RUNNING}}, []string{"held"}},
			{&ddqv1.TaskFilter{States: []ddqv1.TaskState{ddqv1.TaskState_TASK_STATE_RUNNING, ddqv1.TaskState_TASK_STATE_SCHEDULED}, DueBeforeUnixMs: ms(2)}, []string{"held", "t-00"}},
			{&ddqv1.TaskFilter{States: []ddqv1.TaskState{ddqv1.TaskState_TASK_STATE_READY}}, nil},
			{&ddqv1.TaskFilter{}, append([]string{"held"}, numbers(0, 60, 1)...)},
		} {
			if got := r.found(c.filter); !slices.Equal(got, c.want) {
				r.Errorf("%v:\n got %v\nwant %v", c.filter, got, c.want)
			}
		}
		r.mustAck("t", held)
	})
}

func TestCountAndHistogram(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		start := r.stock()
		r.hold("t", "held") // until its hold runs out
		time.Sleep(2*time.Minute + time.Second)
		all, err := r.queue.CountTasks(r.Context(), &ddqv1.CountTasksRequest{Topic: "t"})
		must(r, err)
		if all.Scheduled != 58 || all.Ready != 3 && all.Ready+all.Running != 3 {
			r.Errorf("counts are %v", all)
		}
		tiny, err := r.queue.CountTasks(r.Context(), &ddqv1.CountTasksRequest{Topic: "t", Filter: &ddqv1.TaskFilter{Attributes: attribute("tenant", "tiny")}})
		must(r, err)
		if !proto.Equal(tiny, &ddqv1.CountTasksResponse{Scheduled: 29, Ready: 1}) {
			r.Errorf("counts of a tenant are %v", tiny)
		}
		h, err := r.queue.DueHistogram(r.Context(), &ddqv1.DueHistogramRequest{Topic: "t", StartUnixMs: start.Add(30 * time.Second).UnixMilli(), BucketMs: 10 * 60_000, Buckets: 4})
		must(r, err)
		total := h.Before + h.After
		for _, n := range h.Counts {
			total += n
		}
		if len(h.Counts) != 4 || !slices.Equal(h.Counts[1:], []int64{10, 10, 10}) || h.After != 20 || total != h.Pending {
			r.Errorf("histogram is %v", h)
		}
		if sum := all.Scheduled + all.Ready; h.Pending != sum {
			r.Errorf("%d tasks in the histogram, %d pending", h.Pending, sum)
		}
	})
}

// last reads the progress of a change of many tasks to its end.
func last[T any](r *rig, stream grpc.ServerStreamingClient[T], progress func(*T) *ddqv1.BulkProgress) *ddqv1.BulkProgress {
	r.Helper()
	var p *ddqv1.BulkProgress
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			if !p.GetDone() {
				r.Fatalf("ended with %v", p)
			}
			return p
		}
		must(r, err)
		p = progress(m)
	}
}

func (r *rig) deleteTasks(request *ddqv1.DeleteTasksRequest) *ddqv1.BulkProgress {
	r.Helper()
	stream, err := r.queue.DeleteTasks(r.Context(), request)
	must(r, err)
	return last(r, stream, (*ddqv1.DeleteTasksResponse).GetProgress)
}

// TestDeleteManyByFilter: contribsys/faktory#176 asks for it, celery/celery#4300 tells
// what becomes of revokes that are not in the store.
func TestDeleteManyByFilter(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		r.stock()
		acme := &ddqv1.TaskFilter{Attributes: attribute("tenant", "acme")}
		if p := r.deleteTasks(&ddqv1.DeleteTasksRequest{Topic: "t", Filter: acme, DryRun: true}); p.Matched != 30 || p.Changed != 0 {
			r.Errorf("dry run: %v", p)
		}
		if p := r.deleteTasks(&ddqv1.DeleteTasksRequest{Topic: "t", Filter: acme, MaxTasks: 10}); p.Matched != 10 || p.Changed != 10 || !p.Capped {
			r.Errorf("with a cap: %v", p)
		}
		if p := r.deleteTasks(&ddqv1.DeleteTasksRequest{Topic: "t", Filter: acme}); p.Matched != 20 || p.Changed != 20 || p.Skipped != 0 || p.Capped {
			r.Errorf("the rest: %v", p)
		}
		if got := r.found(&ddqv1.TaskFilter{}); !slices.Equal(got, numbers(1, 60, 2)) {
			r.Errorf("left are %v", got)
		}
	})
}

// TestRescheduleManyByFilter spreads tasks over a window, the use of contribsys/faktory#176.
func TestRescheduleManyByFilter(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		start := r.stock()
		move := func(request *ddqv1.RescheduleTasksRequest) *ddqv1.BulkProgress {
			r.Helper()
			request.Topic = "t"
			stream, err := r.queue.RescheduleTasks(r.Context(), request)
			must(r, err)
			return last(r, stream, (*ddqv1.RescheduleTasksResponse).GetProgress)
		}
		p := move(&ddqv1.RescheduleTasksRequest{
			Filter: &ddqv1.TaskFilter{IdPrefix: "t-5"}, When: &ddqv1.RescheduleTasksRequest_Shift{Shift: durationpb.New(-30 * time.Minute)},
		})
		if p.Changed != 10 {
			r.Errorf("shift: %v", p)
		}
		got, err := r.queue.GetTask(r.Context(), &ddqv1.GetTaskRequest{Topic: "t", Id: "t-50"})
		must(r, err)
		if due := got.Task.ExecuteTime.AsTime().Sub(start); due < 21*time.Minute || due > 21*time.Minute+time.Second || got.Task.Version != 2 {
			r.Errorf("due %v after the start: %v", due, got)
		}
		p = move(&ddqv1.RescheduleTasksRequest{
			Filter: &ddqv1.TaskFilter{IdPrefix: "t-"}, When: &ddqv1.RescheduleTasksRequest_Delay{Delay: durationpb.New(2 * time.Hour)}, Spread: durationpb.New(time.Hour),
		})
		if p.Changed != 60 {
			r.Errorf("spread: %v", p)
		}
		h, err := r.queue.DueHistogram(r.Context(), &ddqv1.DueHistogramRequest{Topic: "t", StartUnixMs: start.Add(2 * time.Hour).UnixMilli(), BucketMs: 30 * 60_000, Buckets: 2})
		must(r, err)
		if h.Before+h.After > 2 || h.Counts[0] < 10 || h.Counts[1] < 10 {
			r.Errorf("spread is %v", h)
		}
		if p = move(&ddqv1.RescheduleTasksRequest{
			Filter: &ddqv1.TaskFilter{IdPrefix: "t-"}, When: &ddqv1.RescheduleTasksRequest_Shift{Shift: durationpb.New(20 * 366 * 24 * time.Hour)},
		}); p.Skipped != 60 || p.Changed != 0 {
			r.Errorf("farther than the topic allows: %v", p)
		}
	})
}

func deletedMany(request *ddqv1.DeleteTasksRequest) func(r *rig) error {
	return func(r *rig) error {
		must(r, simple(r))
		request := proto.CloneOf(request)
		request.Topic = "t"
		stream, err := r.queue.DeleteTasks(r.Context(), request)
		must(r, err)
		_, err = stream.Recv()
		return err
	}
}

func listedBy(f *ddqv1.TaskFilter) func(r *rig) error {
	return func(r *rig) error {
		must(r, simple(r))
		_, err := r.queue.ListTasks(r.Context(), &ddqv1.ListTasksRequest{Topic: "t", Filter: f})
		return err
	}
}

var findRefusals = []refusal{
	{"filter of an unknown state", listedBy(&ddqv1.TaskFilter{States: []ddqv1.TaskState{99}}), codes.InvalidArgument, "BAD_ENUM", "filter.states", "", 0},
	{"filter of no state", listedBy(&ddqv1.TaskFilter{States: []ddqv1.TaskState{0}}), codes.InvalidArgument, "BAD_ENUM", "filter.states", "", 0},
	{"filter of negative times", listedBy(&ddqv1.TaskFilter{DueFromUnixMs: -1}), codes.InvalidArgument, "BAD_TIME", "filter.due_from_unix_ms", "", 0},
	{"filter of an empty range", listedBy(&ddqv1.TaskFilter{DueFromUnixMs: 5, DueBeforeUnixMs: 5}), codes.InvalidArgument, "BAD_TIME", "filter.due_before_unix_ms", "", 0},
	{"filter of an empty range of creation", listedBy(&ddqv1.TaskFilter{CreatedFromUnixMs: 5, CreatedBeforeUnixMs: 4}), codes.InvalidArgument, "BAD_TIME", "filter.created_before_unix_ms", "", 0},
	{"filter of a bad id", listedBy(&ddqv1.TaskFilter{IdPrefix: "a b"}), codes.InvalidArgument, "BAD_ID", "filter.id_prefix", "", 0},
	{"filter of an attribute without a key", listedBy(&ddqv1.TaskFilter{Attributes: []*ddqv1.AttributeFilter{{}}}), codes.InvalidArgument, "BAD_ATTRIBUTES", "filter.attributes", "", 0},
	{"filter and state", func(r *rig) error {
		_, err := r.queue.ListTasks(r.Context(), &ddqv1.ListTasksRequest{
			Topic: "t", State: ddqv1.TaskState_TASK_STATE_READY, Filter: &ddqv1.TaskFilter{States: []ddqv1.TaskState{ddqv1.TaskState_TASK_STATE_READY}},
		})
		return err
	}, codes.InvalidArgument, "BAD_FILTER", "filter.states", "", 0},
	{"delete many of everything", deletedMany(&ddqv1.DeleteTasksRequest{}), codes.InvalidArgument, "BAD_FILTER", "filter", "", 0},
	{"delete many that run", deletedMany(&ddqv1.DeleteTasksRequest{Filter: &ddqv1.TaskFilter{States: []ddqv1.TaskState{ddqv1.TaskState_TASK_STATE_RUNNING}}}), codes.InvalidArgument, "BAD_ENUM", "filter.states", "", 0},
	{"delete more than many", deletedMany(&ddqv1.DeleteTasksRequest{Filter: &ddqv1.TaskFilter{IdPrefix: "a"}, MaxTasks: math.MaxInt64}), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "max_tasks", "", 0},
	{"reschedule many without a time", func(r *rig) error {
		stream, err := r.queue.RescheduleTasks(r.Context(), &ddqv1.RescheduleTasksRequest{Topic: "t", Filter: &ddqv1.TaskFilter{IdPrefix: "a"}})
		must(r, err)
		_, err = stream.Recv()
		return err
	}, codes.InvalidArgument, "BAD_TIME", "when", "", 0},
	{"histogram without a width", func(r *rig) error {
		_, err := r.queue.DueHistogram(r.Context(), &ddqv1.DueHistogramRequest{Topic: "t"})
		return err
	}, codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "bucket_ms", "", 0},
	{"histogram of many buckets", func(r *rig) error {
		_, err := r.queue.DueHistogram(r.Context(), &ddqv1.DueHistogramRequest{Topic: "t", BucketMs: 1, Buckets: 1001})
		return err
	}, codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "buckets", "", 0},
	{"count in an unknown topic", func(r *rig) error {
		_, err := r.queue.CountTasks(r.Context(), &ddqv1.CountTasksRequest{Topic: "t"})
		return err
	}, codes.NotFound, "NO_TOPIC", "topic", "", 0},
}

func TestFindRefusals(t *testing.T) { testRefusals(t, findRefusals) }

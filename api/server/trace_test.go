package server

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/proto"

	"github.com/ddq-io/ddq/api/ddqv1"
)

const (
	aParent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	bParent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b8-01"
)

func TestTraceContextStaysWithItsTask(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		ask := &ddqv1.EnqueueRequest{Topic: "t", Id: "a", Traceparent: aParent, Tracestate: "vendor=1"}
		r.enqueue(ask)
		again := proto.CloneOf(ask)
		again.Traceparent, again.Tracestate = bParent, ""
		if got := r.enqueue(again); !got.Deduplicated {
			r.Errorf("the same task in another span is another task: %v", got)
		}
		if got := r.get("a"); got.Traceparent != aParent || got.Tracestate != "vendor=1" {
			r.Errorf("stored as %v", got)
		}
		d := r.retrieve("t")
		if d.Task.Traceparent != aParent || d.Task.Tracestate != "vendor=1" {
			r.Errorf("delivered as %v", d.Task)
		}
		_, err := r.queue.Nack(r.Context(), &ddqv1.NackRequest{Topic: "t", Nack: &ddqv1.Nack{TaskId: "a", HoldToken: d.HoldToken, DelayMs: proto.Int64(0)}})
		must(r, err)
		if d := r.retrieve("t"); d.Task.Traceparent != aParent || d.Task.RetryCount != 1 {
			r.Errorf("delivered again as %v", d.Task)
		}
	})
}

// Each task has its own, however it comes.
func TestTraceContextsOfBatchesStreamsAndAcks(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		tasks := func(of string) []*ddqv1.EnqueueRequest {
			return []*ddqv1.EnqueueRequest{
				{Topic: "t", Id: of + "-a", Traceparent: aParent}, {Topic: "t", Id: of + "-b", Traceparent: bParent, Tracestate: "b=2"}, {Topic: "t", Id: of + "-none"},
			}
		}
		_, err := r.queue.EnqueueBatch(r.Context(), &ddqv1.EnqueueBatchRequest{Tasks: tasks("batch")})
		must(r, err)
		stream := r.pipeline()
		must(r, stream.Send(&ddqv1.EnqueueStreamRequest{Tasks: tasks("stream")}))
		_, err = stream.Recv()
		must(r, err)
		must(r, stream.CloseSend())
		must(r, r.finish(r.hold("orders", "first"), func(a *ddqv1.Ack) { a.Enqueue = tasks("ack") }))
		synctest.Wait()
		for _, of := range []string{"batch", "stream", "ack"} {
			for _, want := range tasks(of) {
				if got := r.get(want.Id); got.Traceparent != want.Traceparent || got.Tracestate != want.Tracestate {
					r.Errorf("%s has %q with %q", want.Id, got.Traceparent, got.Tracestate)
				}
			}
		}
	})
}

func TestBadTraceContextsAreLeftOutAndCounted(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		r.enqueue(&ddqv1.EnqueueRequest{Topic: "t", Id: "bad", Traceparent: "00-0-0-0", Tracestate: "a=1"})
		r.enqueue(&ddqv1.EnqueueRequest{Topic: "t", Id: "long", Traceparent: aParent, Tracestate: "a=1,b=" + strings.Repeat("x", 256)})
		r.enqueue(&ddqv1.EnqueueRequest{Topic: "t", Id: "good", Traceparent: aParent, Tracestate: "a=1"})
		if got := r.get("bad"); got.Traceparent != "" || got.Tracestate != "" {
			r.Errorf("a malformed one is kept: %v", got)
		}
		if got := r.get("long"); got.Traceparent != aParent || got.Tracestate != "a=1" {
			r.Errorf("a long one is kept as %v", got)
		}
		if n := r.tracesCut(); n != 2 {
			r.Errorf("%v are counted, want 2", n)
		}
	})
}

// A schedule's runs have no producer.
func TestRunsHaveNotTheTraceOfTheirSchedule(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		_, err := r.schedules.PutSchedule(r.Context(), &ddqv1.PutScheduleRequest{Schedule: &ddqv1.Schedule{
			Topic: "t", Name: "nightly", Timetable: &ddqv1.Timetable{Entries: []*ddqv1.TimetableEntry{{When: &ddqv1.TimetableEntry_Every{Every: &ddqv1.Interval{EveryMs: 60_000}}}}},
			Run: &ddqv1.Schedule_Task{Task: &ddqv1.EnqueueRequest{Traceparent: aParent}},
		}})
		must(r, err)
		time.Sleep(time.Minute)
		if d := r.retrieve("t"); d.Task.Schedule != "nightly" || d.Task.Traceparent != "" {
			r.Errorf("delivered as %v", d.Task)
		}
	})
}

// Attempts have the trace in which their worker recorded them. What is none is left out, and refuses no
// settlement.
func TestAttemptsHaveTheirTraces(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		first, second := bytes.Repeat([]byte{1}, 16), bytes.Repeat([]byte{2}, 16)
		_, err := r.admin.CreateTopic(r.Context(), &ddqv1.CreateTopicRequest{Name: "t", Policy: &ddqv1.TopicPolicy{DoneRetentionMs: proto.Int64(60_000)}})
		must(r, err)
		r.enqueue(&ddqv1.EnqueueRequest{Topic: "t", Id: "a", MaxRetries: proto.Int32(9)})
		for _, id := range [][]byte{first, []byte("short"), make([]byte, 16), nil} {
			d := r.retrieve("t")
			_, err := r.queue.Nack(r.Context(), &ddqv1.NackRequest{Topic: "t", Nack: &ddqv1.Nack{TaskId: "a", HoldToken: d.HoldToken, DelayMs: proto.Int64(0), TraceId: id}})
			must(r, err)
		}
		d := r.retrieve("t")
		_, err = r.queue.Ack(r.Context(), &ddqv1.AckRequest{Topic: "t", Ack: &ddqv1.Ack{TaskId: "a", HoldToken: d.HoldToken, TraceId: second}})
		must(r, err)
		attempts := r.get("a").Attempts
		for i, want := range [][]byte{first, nil, nil, nil, second} {
			if got := attempts[i]; !bytes.Equal(got.TraceId, want) || got.DueAt == nil || got.DueAt.AsTime().After(got.StartedAt.AsTime()) {
				r.Errorf("attempt %d is %v", i+1, got)
			}
		}
		if n := r.tracesCut(); n != 2 {
			r.Errorf("%v are counted, want 2", n)
		}
	})
}

// tracesCut is the count of what was left out.
func (r *rig) tracesCut() float64 {
	r.Helper()
	reg := prometheus.NewRegistry()
	reg.MustRegister(r.service.Node().Metrics().TracesCut)
	families, err := reg.Gather()
	must(r, err)
	return families[0].Metric[0].GetCounter().GetValue()
}

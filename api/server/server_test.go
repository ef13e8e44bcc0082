package server

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/server/status/statustest"
)

// services asks reflection for the names of all services.
func (r *rig) services() (names []string) {
	r.Helper()
	stream, err := reflectionpb.NewServerReflectionClient(r.conn).ServerReflectionInfo(r.Context())
	must(r, err)
	must(r, stream.Send(&reflectionpb.ServerReflectionRequest{
		MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{},
	}))
	must(r, stream.CloseSend())
	resp, err := stream.Recv()
	must(r, err)
	for _, s := range resp.GetListServicesResponse().Service {
		names = append(names, s.Name)
	}
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		r.Errorf("reflection ended with %v", err)
	}
	return names
}

// Every method that reflection lists is called with an empty request. It may
// refuse that, but it has to be there and must not fail inside.
func TestEveryMethodIsHandled(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		methods := 0
		for _, name := range r.services() {
			if !strings.HasPrefix(name, "ddq.") {
				continue
			}
			d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
			must(r, err)
			list := d.(protoreflect.ServiceDescriptor).Methods()
			for i := range list.Len() {
				methods++
				m := list.Get(i)
				switch code := status.Code(r.callEmpty(name, m)); code {
				case codes.Unimplemented, codes.Internal, codes.Unknown:
					r.Errorf("%s: %v", m.FullName(), code)
				}
			}
		}
		if methods != 107 {
			r.Errorf("%d methods, want 107", methods)
		}
	})
}

func (r *rig) callEmpty(service string, m protoreflect.MethodDescriptor) error {
	r.Helper()
	path := "/" + service + "/" + string(m.Name())
	in, out := dynamicpb.NewMessage(m.Input()), dynamicpb.NewMessage(m.Output())
	if !m.IsStreamingClient() && !m.IsStreamingServer() {
		return r.conn.Invoke(r.Context(), path, in, out)
	}
	ctx, cancel := context.WithCancel(r.Context()) // ends what would go on for ever
	defer cancel()
	stream, err := r.conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, path)
	must(r, err)
	if err := stream.SendMsg(in); !errors.Is(err, io.EOF) { // at its end, which RecvMsg tells, when it was refused unread
		must(r, err)
	}
	must(r, stream.CloseSend())
	if err := stream.RecvMsg(out); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

func TestHealthFollowsTheSystem(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		health := healthpb.NewHealthClient(r.conn)
		watch, err := health.Watch(r.Context(), &healthpb.HealthCheckRequest{Service: "ddq.v1.DelayQueueService"})
		must(r, err)
		requireHealth := func(want healthpb.HealthCheckResponse_ServingStatus) {
			t.Helper()
			got, err := health.Check(r.Context(), &healthpb.HealthCheckRequest{})
			if err != nil || got.Status != want {
				t.Errorf("check: got %v, %v, want %v", got, err, want)
			}
			got, err = watch.Recv()
			if err != nil || got.Status != want {
				t.Errorf("watch: got %v, %v, want %v", got, err, want)
			}
		}
		requireHealth(healthpb.HealthCheckResponse_SERVING)
		r.service.Node().Drain(r.Context())
		requireHealth(healthpb.HealthCheckResponse_NOT_SERVING)
	})
}

// firstWord is a watcher that goes once it has heard something.
type firstWord struct {
	grpc.ServerStream
	ctx   context.Context
	leave context.CancelFunc
	heard healthpb.HealthCheckResponse_ServingStatus
}

func (w *firstWord) Context() context.Context { return w.ctx }
func (w *firstWord) Send(r *healthpb.HealthCheckResponse) error {
	w.heard = r.Status
	w.leave()
	return nil
}

// A client of several nodes makes no call at a node until the watch says that it serves.
func TestWatchBeginsWithTheStateOfTheMoment(t *testing.T) {
	starting := errors.New("not running")
	h := newHealth(t.Context(), func() error { return starting }, nil)
	starting = nil
	w := &firstWord{}
	w.ctx, w.leave = context.WithCancel(t.Context())
	_ = h.Watch(&healthpb.HealthCheckRequest{}, w) // ends with its context
	if w.heard != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("the first word is %v", w.heard)
	}
}

// stopping calls Stop and returns what it returned, and when.
func (r *rig) stopping(within time.Duration) (stopped func() (time.Duration, error)) {
	began, done := time.Now(), make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		done <- r.server.Stop(ctx)
	}()
	return func() (time.Duration, error) {
		err := <-done
		return time.Since(began), err
	}
}

func TestStopLetsWorkersSettle(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		s := r.subscribe(5)
		r.enqueue(&ddqv1.EnqueueRequest{Topic: "t", Id: "a"})
		d := s.delivery()
		stopped := r.stopping(10 * time.Second)
		if f := s.next(); f.Drain.GetGraceMs() != 9000 {
			r.Errorf("got %v, want a drain of 9,000 ms", f)
		}
		s.send(&ddqv1.SubscribeRequest{Credit: proto.Int32(5)}) // of no effect
		s.send(ackFrame(1, d))
		if f := s.next(); len(f.Settled) != 1 || len(f.Settled[0].Results) != 0 {
			r.Errorf("got %v, want the answer to the ack", f)
		}
		must(r, s.CloseSend())
		if err := s.ending(); !errors.Is(err, io.EOF) {
			r.Errorf("stream ended with %v", err)
		}
		if took, err := stopped(); err != nil || took > time.Second {
			r.Errorf("stopped after %v: %v", took, err)
		}
	})
}

func TestStopEndsWhatWaits(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		s, pipeline := r.subscribe(5), r.pipeline()
		silent := r.open()
		watch, err := healthpb.NewHealthClient(r.conn).Watch(r.Context(), &healthpb.HealthCheckRequest{})
		must(r, err)
		polled := make(chan error, 1)
		go func() {
			_, err := r.queue.Retrieve(r.Context(), &ddqv1.RetrieveRequest{Topic: "t", WaitMs: 60_000})
			polled <- err
		}()
		synctest.Wait()
		stopped := r.stopping(10 * time.Second)
		for what, err := range map[string]error{
			"poll":   <-polled,
			"stream": func() error { _, err := pipeline.Recv(); return err }(),
			"worker": s.ending(),
		} {
			if got := statustest.Look(r.T, err); got.Code != codes.Unavailable || got.Reason != "DRAINING" || got.Retry == 0 {
				r.Errorf("%s ended with %+v", what, got)
			}
		}
		if err := silent.ending(); err == nil {
			r.Error("a stream without hello goes on")
		}
		last := healthpb.HealthCheckResponse_UNKNOWN
		for f, err := watch.Recv(); err == nil; f, err = watch.Recv() {
			last = f.Status
		}
		if last != healthpb.HealthCheckResponse_NOT_SERVING {
			r.Errorf("the watch ended with %v", last)
		}
		if took, err := stopped(); err != nil || took < 9*time.Second || took >= 10*time.Second {
			r.Errorf("stopped after %v: %v", took, err)
		}
	})
}

func TestStopCutsOffWhatDoesNotEnd(t *testing.T) {
	bubble(t, Config{DrainGrace: time.Hour}, func(r *rig) {
		r.enqueue(&ddqv1.EnqueueRequest{Topic: "t"})
		resume := r.store.stop()
		defer resume()
		called := make(chan error, 1)
		go func() {
			_, err := r.queue.Enqueue(r.Context(), &ddqv1.EnqueueRequest{Topic: "t"})
			called <- err
		}()
		synctest.Wait()
		took, err := r.stopping(3 * time.Second)()
		if !errors.Is(err, context.DeadlineExceeded) || took > 4*time.Second {
			r.Errorf("stopped after %v: %v", took, err)
		}
		if err := <-called; err == nil {
			r.Error("a task whose storing is unknown was acknowledged")
		}
	})
}

func TestPageSizeOverTheLimitIsClamped(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		r.enqueue(&ddqv1.EnqueueRequest{Topic: "t", Id: "a"})
		resp, err := r.queue.ListTasks(r.Context(), &ddqv1.ListTasksRequest{Topic: "t", PageSize: 1 << 30})
		if err != nil || len(resp.Tasks) != 1 || resp.NextPageToken != "" {
			r.Errorf("got %v, %v", resp, err)
		}
	})
}

func TestTopicsComeBackAsConfigured(t *testing.T) {
	bubble(t, Config{Version: "v9"}, func(r *rig) {
		policy := &ddqv1.TopicPolicy{
			Shards: proto.Int32(2), VisibilityTimeoutMs: proto.Int64(5000), MaxRetries: proto.Int32(7),
			Backoff:    &ddqv1.Backoff{Kind: ddqv1.BackoffKind_BACKOFF_KIND_LINEAR, BaseMs: 10, MaxMs: 100, JitterPercent: 5},
			MaxDelayMs: proto.Int64(60_000), MaxPayloadBytes: proto.Int64(100), DoneRetentionMs: proto.Int64(1000),
			DeadRetentionMs: proto.Int64(2000), MaxDead: proto.Int64(3), MaxBacklog: proto.Int64(4),
			PriorityAgeing: proto.Int32(4), Concurrency: proto.Int32(5), KeyConcurrency: proto.Int32(2),
			OverLimit:         ddqv1.OverLimit_OVER_LIMIT_DEAD_LETTER,
			IndexedAttributes: &ddqv1.IndexedAttributes{Names: []string{"path", "tenant"}},
			WatchRetentionMs:  proto.Int64(60_000), WatchMaxEvents: proto.Int64(2000), WorkflowRetentionMs: proto.Int64(5000), MaxWorkflows: proto.Int64(6),
			MaxSchedules: proto.Int64(7),
		}
		must(r, created("t", policy)(r))
		paused, err := r.admin.PauseTopic(r.Context(), &ddqv1.PauseTopicRequest{Name: "t", Delivery: true})
		must(r, err)
		if !paused.Topic.DeliveryPaused || paused.Topic.EnqueuePaused {
			r.Errorf("paused %v", paused.Topic)
		}
		r.enqueue(&ddqv1.EnqueueRequest{Topic: "t", Id: "a"})
		got, err := r.admin.DescribeTopic(r.Context(), &ddqv1.DescribeTopicRequest{Name: "t"})
		must(r, err)
		if !proto.Equal(got.Topic.Policy, policy) || got.Depth.Ready != 1 || got.Durability == "" {
			r.Errorf("got %v", got)
		}
		resumed, err := r.admin.ResumeTopic(r.Context(), &ddqv1.ResumeTopicRequest{Name: "t"})
		must(r, err)
		if resumed.Topic.DeliveryPaused || resumed.Topic.Version <= paused.Topic.Version {
			r.Errorf("resumed %v", resumed.Topic)
		}
		purged, err := r.admin.PurgeTopic(r.Context(), &ddqv1.PurgeTopicRequest{Name: "t"})
		if err != nil || purged.Deleted != 1 {
			r.Errorf("purged %v, %v", purged, err)
		}
		list, err := r.admin.ListTopics(r.Context(), &ddqv1.ListTopicsRequest{})
		if err != nil || len(list.Topics) != 1 {
			r.Errorf("listed %v, %v", list, err)
		}
		_, err = r.admin.DeleteTopic(r.Context(), &ddqv1.DeleteTopicRequest{Name: "t"})
		must(r, err)
		server, err := r.admin.DescribeServer(r.Context(), &ddqv1.DescribeServerRequest{})
		if err != nil || server.Version != "v9" || server.Store != "memory" || server.StoreNowUnixMs == 0 || server.MaxPayloadBytes != 1<<20 {
			r.Errorf("got %v, %v", server, err)
		}
	})
}

func TestDeadLettersAreListedRequeuedAndDeleted(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		for _, id := range []string{"a", "b", "c"} {
			d := r.hold("t", id)
			_, err := r.queue.Nack(r.Context(), &ddqv1.NackRequest{Topic: "t", Nack: &ddqv1.Nack{
				TaskId: id, HoldToken: d.HoldToken, Permanent: true, Error: "no " + id,
			}})
			must(r, err)
		}
		list, err := r.admin.ListDeadLetters(r.Context(), &ddqv1.ListDeadLettersRequest{Topic: "t", Filter: &ddqv1.DeadLetterFilter{
			ErrorContains: "no b", Reason: ddqv1.DeadReason_DEAD_REASON_PERMANENT,
		}})
		must(r, err)
		if len(list.Tasks) != 1 || list.Tasks[0].LastError != "no b" || list.Tasks[0].FinishedAt == nil || list.Tasks[0].DeadReason != ddqv1.DeadReason_DEAD_REASON_PERMANENT {
			r.Errorf("listed %v", list)
		}
		again, err := r.admin.RequeueDeadLetters(r.Context(), &ddqv1.RequeueDeadLettersRequest{Topic: "t", DryRun: true})
		must(r, err)
		gone, err := r.admin.DeleteDeadLetters(r.Context(), &ddqv1.DeleteDeadLettersRequest{Topic: "t", DryRun: true, Filter: &ddqv1.DeadLetterFilter{ErrorContains: "none has it"}})
		must(r, err)
		if again.Requeued != 0 || again.Matched != 3 || again.Examined != 3 || gone.Deleted != 0 || gone.Matched != 0 || gone.Examined != 3 {
			r.Errorf("dry runs: %v, %v", again, gone)
		}
		requeued, err := r.admin.RequeueDeadLetters(r.Context(), &ddqv1.RequeueDeadLettersRequest{Topic: "t", Ids: []string{"a", "x"}})
		if err != nil || requeued.Requeued != 1 || len(requeued.NotFound) != 1 || requeued.NotFound[0] != "x" {
			r.Errorf("requeued %v, %v", requeued, err)
		}
		if d := r.retrieve("t"); d.Task.Id != "a" || d.Task.RetryCount != 0 {
			r.Errorf("got %v", d)
		}
		deleted, err := r.admin.DeleteDeadLetters(r.Context(), &ddqv1.DeleteDeadLettersRequest{Topic: "t"})
		if err != nil || deleted.Deleted != 2 {
			r.Errorf("deleted %v, %v", deleted, err)
		}
	})
}

func TestCallsAreCounted(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		s := r.subscribe(1)
		r.enqueue(&ddqv1.EnqueueRequest{Topic: "t"})
		if err := simpleWithout(r); err == nil {
			r.Fatal("a task without topic was accepted")
		}
		m := r.server.metrics
		for _, c := range []struct {
			name string
			got  prometheus.Metric
			want float64
		}{
			{"ok", m.requests.WithLabelValues(ddqv1.DelayQueueService_Enqueue_FullMethodName, "OK"), 1},
			{"refused", m.requests.WithLabelValues(ddqv1.DelayQueueService_Enqueue_FullMethodName, "InvalidArgument"), 1},
			{"streams", m.streams.WithLabelValues(ddqv1.DelayQueueService_Subscribe_FullMethodName), 1},
		} {
			if got := valueOf(r, c.got); got != c.want {
				r.Errorf("%s: counted %v, want %v", c.name, got, c.want)
			}
		}
		must(r, s.CloseSend())
	})
}

// valueOf reads a counter or a gauge.
func valueOf(r *rig, m prometheus.Metric) float64 {
	r.Helper()
	reg := prometheus.NewRegistry()
	must(r, reg.Register(m.(prometheus.Collector)))
	families, err := reg.Gather()
	must(r, err)
	got := families[0].Metric[0]
	return got.GetCounter().GetValue() + got.GetGauge().GetValue()
}

func simpleWithout(r *rig) error {
	_, err := r.queue.Enqueue(r.Context(), &ddqv1.EnqueueRequest{})
	return err
}

func TestStopMayBeCalledTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, actors.Config{})
		defer r.close()
		for range 2 {
			if err := r.server.Stop(context.Background()); err != nil {
				t.Error(err)
			}
		}
	})
}

package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/server/delivery"
	"github.com/ddq-io/ddq/api/server/status/statustest"
	"github.com/ddq-io/ddq/store"
)

// subscriber is a worker's end of a Subscribe stream.
type subscriber struct {
	*rig
	grpc.BidiStreamingClient[ddqv1.SubscribeRequest, ddqv1.SubscribeResponse]
}

func (r *rig) open() subscriber {
	r.Helper()
	stream, err := r.queue.Subscribe(r.Context())
	must(r, err)
	return subscriber{r, stream}
}

// subscribe opens a stream for topic t with credit, and reads the greeting.
func (r *rig) subscribe(credit int32) subscriber {
	r.Helper()
	s := r.open()
	s.send(&ddqv1.SubscribeRequest{Hello: &ddqv1.Hello{Topic: "t", Worker: "w"}, Credit: &credit})
	if f := s.next(); f.Subscribed.GetNode() == "" {
		r.Fatalf("first frame is %v", f)
	}
	return s
}

func (s subscriber) send(f *ddqv1.SubscribeRequest) {
	s.Helper()
	if err := s.Send(f); err != nil {
		s.Fatalf("send: %v", err)
	}
}

func (s subscriber) next() *ddqv1.SubscribeResponse {
	s.Helper()
	f, err := s.BidiStreamingClient.Recv()
	if err != nil {
		s.Fatalf("receive: %v", err)
	}
	return f
}

// delivery reads the next frame, which has to be one delivery.
func (s subscriber) delivery() *ddqv1.Delivery {
	s.Helper()
	f := s.next()
	if len(f.Deliveries) != 1 {
		s.Fatalf("got %v, want one delivery", f)
	}
	return f.Deliveries[0]
}

// ending reads until the stream ends and returns why.
func (s subscriber) ending() error {
	for {
		if _, err := s.BidiStreamingClient.Recv(); err != nil {
			return err
		}
	}
}

func ackFrame(sequence uint64, ds ...*ddqv1.Delivery) *ddqv1.SubscribeRequest {
	f := &ddqv1.SubscribeRequest{Sequence: sequence}
	for _, d := range ds {
		f.Acks = append(f.Acks, &ddqv1.Ack{TaskId: d.Task.Id, HoldToken: d.HoldToken})
	}
	return f
}

func TestSubscriptionDeliversAtTheDueTime(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		s := r.subscribe(10)
		due := r.enqueue(&ddqv1.EnqueueRequest{
			Topic: "t", Id: "a", Payload: []byte("hi"), VisibilityTimeoutMs: 10_000,
			When:       &ddqv1.EnqueueRequest_Delay{Delay: durationpb.New(5 * time.Second)},
			Attributes: []*ddqv1.Attribute{{Key: "k", Value: "v"}},
		}).ExecuteTime.AsTime()
		d := s.delivery()
		if late := time.Since(due); late < 0 || late > 5*time.Millisecond {
			r.Errorf("delivered %v after the due time", late)
		}
		if d.Task.Id != "a" || d.Task.Topic != "t" || string(d.Task.Payload) != "hi" || d.Task.Attributes[0].Value != "v" || d.Task.MaxRetries != 3 {
			r.Errorf("got %v", d.Task)
		}
		if d.HoldMs < 9_900 || d.HoldMs > 10_000 {
			r.Errorf("hold of %d ms, want 10,000", d.HoldMs)
		}
		s.send(ackFrame(1, d))
		f := s.next()
		if len(f.Settled) != 1 || f.Settled[0].Sequence != 1 || len(f.Settled[0].Results) != 0 {
			r.Errorf("the ack was answered by %v", f)
		}
	})
}

func TestStreamThatIsNotReadKeepsTheRestInTheStore(t *testing.T) {
	bubble(t, Config{SendStall: time.Hour}, func(r *rig) {
		const tasks = 40
		for i := range tasks {
			r.enqueue(&ddqv1.EnqueueRequest{Topic: "t", Id: fmt.Sprint(i), Payload: make([]byte, 1<<20), VisibilityTimeoutMs: 3_600_000})
		}
		s := r.open()
		s.send(&ddqv1.SubscribeRequest{Hello: &ddqv1.Hello{Topic: "t", Worker: "w", MaxInFlight: 10_000, MaxBytes: 2 << 20}, Credit: new(int32(10_000))})
		time.Sleep(time.Minute)
		topic, err := r.admin.DescribeTopic(r.Context(), &ddqv1.DescribeTopicRequest{Name: "t"})
		must(r, err)
		// What the connection takes in is sent, as far as the node can know.
		if held := topic.Depth.Running; held < 2 || held > 6 {
			r.Errorf("%d tasks are held for a stream of 2 MiB that is not read", held)
		}
		seen := map[string]int{}
		for len(seen) < tasks {
			for _, d := range s.next().Deliveries {
				seen[d.Task.Id]++
			}
		}
		for id, times := range seen {
			if times != 1 {
				r.Errorf("task %s came %d times", id, times)
			}
		}
	})
}

func TestCreditBoundsDeliveries(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		s := r.subscribe(2)
		for i := range 5 {
			r.enqueue(&ddqv1.EnqueueRequest{Topic: "t", Id: fmt.Sprint(i)})
		}
		got := make(chan *ddqv1.Delivery, 10)
		go func() {
			for {
				f, err := s.Recv()
				if err != nil {
					return
				}
				for _, d := range f.Deliveries {
					got <- d
				}
			}
		}()
		time.Sleep(time.Second)
		if len(got) != 2 {
			t.Fatalf("%d deliveries for a credit of 2", len(got))
		}
		s.send(&ddqv1.SubscribeRequest{Credit: proto.Int32(1)})
		time.Sleep(time.Second)
		if len(got) != 3 {
			t.Fatalf("%d deliveries for a credit of 3", len(got))
		}
	})
}

func TestSettlementsOfAFrameAreAnsweredTogether(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		s := r.subscribe(10)
		held := map[string]*ddqv1.Delivery{}
		for _, id := range []string{"ack", "nack", "dead", "release", "extend", "garbage"} {
			r.enqueue(&ddqv1.EnqueueRequest{Topic: "t", Id: id})
			held[id] = s.delivery()
		}
		token := func(id string) []byte { return held[id].HoldToken }
		f := ackFrame(7, held["ack"])
		f.Acks = append(f.Acks, &ddqv1.Ack{TaskId: "garbage", HoldToken: []byte("?")})
		f.Nacks = []*ddqv1.Nack{
			{TaskId: "nack", HoldToken: token("nack"), Error: "cut \xff", DelayMs: proto.Int64(60_000)},
			{TaskId: "dead", HoldToken: token("dead"), Permanent: true},
			{TaskId: "release", HoldToken: token("release"), Release: true, DelayMs: proto.Int64(60_000)},
			{TaskId: "nack", HoldToken: token("nack"), DelayMs: proto.Int64(-1)},
		}
		f.Extends = []*ddqv1.Extend{{TaskId: "extend", HoldToken: token("extend"), VisibilityTimeoutMs: 60_000}}
		s.send(f)
		answer := s.next().Settled
		if len(answer) != 1 || answer[0].Sequence != 7 {
			r.Fatalf("got %v", answer)
		}
		outcomes := map[string]string{}
		for _, result := range answer[0].Results {
			outcomes[result.TaskId] += result.Error.GetReason()
			if result.TaskId == "extend" && (result.HoldMs < 59_000 || result.HoldMs > 60_000) {
				r.Errorf("extended to %d ms", result.HoldMs)
			}
		}
		if len(outcomes) != 3 || outcomes["garbage"] != "BAD_TOKEN" || outcomes["nack"] != "BAD_DELAY" || outcomes["extend"] != "" {
			r.Errorf("got %v", outcomes)
		}
		r.requireState("nack", ddqv1.TaskState_TASK_STATE_RETRYING, "cut \uFFFD")
		r.requireState("dead", ddqv1.TaskState_TASK_STATE_DEAD, "")
		r.requireState("release", ddqv1.TaskState_TASK_STATE_SCHEDULED, "")
		r.requireState("extend", ddqv1.TaskState_TASK_STATE_RUNNING, "")
	})
}

func (r *rig) requireState(id string, state ddqv1.TaskState, lastError string) {
	r.Helper()
	resp, err := r.queue.GetTask(r.Context(), &ddqv1.GetTaskRequest{Topic: "t", Id: id})
	if err != nil {
		r.Errorf("%s: %v", id, err)
		return
	}
	if resp.Task.State != state || resp.Task.LastError != lastError {
		r.Errorf("%s is %v after %q, want %v after %q", id, resp.Task.State, resp.Task.LastError, state, lastError)
	}
}

func TestWhatBreaksTheRulesEndsTheStream(t *testing.T) {
	hello := &ddqv1.Hello{Topic: "t"}
	held := make([]*ddqv1.Ack, delivery.MaxSettles+1)
	for i := range held {
		held[i] = &ddqv1.Ack{TaskId: "a"}
	}
	for _, c := range []struct {
		name   string
		frames []*ddqv1.SubscribeRequest
		reason string
		field  string
	}{
		{"no hello", []*ddqv1.SubscribeRequest{{Credit: proto.Int32(1)}}, "BAD_STREAM", "hello"},
		{"two hellos", []*ddqv1.SubscribeRequest{{Hello: hello}, {Hello: hello}}, "BAD_STREAM", "hello"},
		{"no credit at all", []*ddqv1.SubscribeRequest{{Hello: hello, Credit: proto.Int32(0)}}, "BAD_STREAM", "credit"},
		{"negative credit", []*ddqv1.SubscribeRequest{{Hello: hello}, {Credit: proto.Int32(-1)}}, "BAD_STREAM", "credit"},
		{"too much credit", []*ddqv1.SubscribeRequest{{Hello: hello}, {Credit: proto.Int32(10_001)}}, "BAD_STREAM", "credit"},
		{"no sequence", []*ddqv1.SubscribeRequest{{Hello: hello}, {Acks: held[:1]}}, "BAD_STREAM", "sequence"},
		{"a sequence twice", []*ddqv1.SubscribeRequest{{Hello: hello}, {Sequence: 2, Acks: held[:1]}, {Sequence: 2, Acks: held[:1]}}, "BAD_STREAM", "sequence"},
		{"a falling sequence", []*ddqv1.SubscribeRequest{{Hello: hello}, {Sequence: 2, Acks: held[:1]}, {Sequence: 1, Acks: held[:1]}}, "BAD_STREAM", "sequence"},
		{"too many settlements", []*ddqv1.SubscribeRequest{{Hello: hello}, {Sequence: 1, Acks: held}}, "BAD_STREAM", "acks"},
		{"no topic", []*ddqv1.SubscribeRequest{{Hello: &ddqv1.Hello{}}}, "BAD_NAME", "topic"},
		{"long worker", []*ddqv1.SubscribeRequest{{Hello: &ddqv1.Hello{Topic: "t", Worker: strings.Repeat("w", 129)}}}, "BAD_NAME", "worker"},
		{"negative in flight", []*ddqv1.SubscribeRequest{{Hello: &ddqv1.Hello{Topic: "t", MaxInFlight: -1}}}, "OUT_OF_RANGE_FIELD", "max_in_flight"},
		{"overflowing visibility", []*ddqv1.SubscribeRequest{{Hello: &ddqv1.Hello{Topic: "t", VisibilityTimeoutMs: 1 << 62}}}, "OUT_OF_RANGE_FIELD", "visibility_timeout_ms"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, Config{}, func(r *rig) {
				s := r.open()
				for _, f := range c.frames {
					if err := s.Send(f); err != nil && !errors.Is(err, io.EOF) {
						r.Fatal(err)
					}
				}
				got := statustest.Look(r.T, s.ending())
				if got.Code != codes.InvalidArgument || got.Reason != c.reason || got.Field != c.field {
					r.Errorf("got %+v, want %s of %s", got, c.reason, c.field)
				}
			})
		})
	}
}

func TestTooManyInFlightAreLowered(t *testing.T) {
	for asked, want := range map[int32]int32{0: 1000, 10_000: 10_000, 10_001: 10_000, math.MaxInt32: 10_000} {
		bubble(t, Config{}, func(r *rig) {
			s := r.open()
			s.send(&ddqv1.SubscribeRequest{Hello: &ddqv1.Hello{Topic: "t", Worker: "w", MaxInFlight: asked}})
			if got := s.next().GetSubscribed().GetMaxInFlight(); got != want {
				r.Errorf("asked for %d: got %d, want %d", asked, got, want)
			}
		})
	}
}

func TestASilentStreamEnds(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		began := time.Now()
		got := statustest.Look(r.T, r.open().ending())
		if got.Reason != "BAD_STREAM" || time.Since(began) > 6*time.Second {
			r.Errorf("got %+v after %v", got, time.Since(began))
		}
	})
}

func TestStreamThatEndsBeforeHelloIsNoError(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		s := r.open()
		must(r, s.CloseSend())
		if err := s.ending(); !errors.Is(err, io.EOF) {
			r.Errorf("got %v", err)
		}
	})
}

func TestWorkerThatLeavesIsAnsweredAndTheRestGoesBack(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		s := r.subscribe(1)
		r.enqueue(&ddqv1.EnqueueRequest{Topic: "t", Id: "a"})
		d := s.delivery()
		s.send(ackFrame(1, d))
		must(r, s.CloseSend())
		if f := s.next(); len(f.Settled) != 1 {
			r.Errorf("got %v, want the answer to the ack", f)
		}
		if err := s.ending(); !errors.Is(err, io.EOF) {
			r.Errorf("ended with %v", err)
		}
		// Nobody is subscribed any more, so the next task is for whoever asks.
		r.enqueue(&ddqv1.EnqueueRequest{Topic: "t", Id: "b"})
		if got := r.retrieve("t"); got.Task.Id != "b" || got.Task.RetryCount != 0 {
			r.Errorf("got %v", got)
		}
	})
}

// A worker that takes no frames off its stream gets closed, and what was on the
// way to it is there for the next one at once, its attempts uncounted.
func TestWorkerThatDoesNotReadLosesItsStream(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		s := r.open()
		s.send(&ddqv1.SubscribeRequest{Hello: &ddqv1.Hello{Topic: "t"}, Credit: proto.Int32(1000)})
		synctest.Wait()
		for i := range 40 {
			r.enqueue(&ddqv1.EnqueueRequest{Topic: "t", Id: fmt.Sprint(i), Payload: make([]byte, 512<<10)})
		}
		time.Sleep(6 * time.Second)
		resp, err := r.queue.Retrieve(r.Context(), &ddqv1.RetrieveRequest{Topic: "t", MaxTasks: 1000, WaitMs: 1000})
		must(r, err)
		if len(resp.Deliveries) == 0 {
			r.Fatal("nothing came back from the stalled stream")
		}
		for _, d := range resp.Deliveries {
			if d.Task.RetryCount != 0 {
				r.Errorf("task %s has retry count %d", d.Task.Id, d.Task.RetryCount)
			}
		}
		if size := proto.Size(resp); size > 4<<20 {
			r.Errorf("reply of %d bytes", size)
		}
	})
}

func TestVanishedWorkerGivesBackWhatItNeverGot(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		ctx, vanish := context.WithCancel(r.Context())
		stream, err := r.queue.Subscribe(ctx)
		must(r, err)
		must(r, stream.Send(&ddqv1.SubscribeRequest{Hello: &ddqv1.Hello{Topic: "t"}, Credit: proto.Int32(1)}))
		synctest.Wait()
		vanish()
		synctest.Wait()
		r.enqueue(&ddqv1.EnqueueRequest{Topic: "t", Id: "a"})
		if d := r.retrieve("t"); d.Task.RetryCount != 0 {
			r.Errorf("got %v", d)
		}
	})
}

// Polls end with the first tasks that come; those still on their way to a poll
// that has ended are there for the next one, their attempts uncounted.
func TestPollsLeaveNothingBehind(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		const tasks = 60
		for i := range tasks {
			r.enqueue(&ddqv1.EnqueueRequest{Topic: "t", Id: fmt.Sprint(i)})
		}
		got := map[string]bool{}
		for began := time.Now(); len(got) < tasks && time.Since(began) < 5*time.Second; {
			resp, err := r.queue.Retrieve(r.Context(), &ddqv1.RetrieveRequest{Topic: "t", MaxTasks: 50, WaitMs: 100})
			must(r, err)
			for _, d := range resp.Deliveries {
				if got[d.Task.Id] || d.Task.RetryCount != 0 {
					r.Errorf("got %v", d.Task)
				}
				got[d.Task.Id] = true
			}
		}
		if len(got) != tasks {
			r.Errorf("%d tasks of %d came", len(got), tasks)
		}
	})
}

func TestLimitsHoldOnStreamsToo(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		s := r.subscribe(1)
		r.enqueue(&ddqv1.EnqueueRequest{Topic: "t", Id: "a"})
		d := s.delivery()
		s.send(&ddqv1.SubscribeRequest{
			Sequence: 1,
			Nacks:    []*ddqv1.Nack{{TaskId: "a", HoldToken: d.HoldToken, DelayMs: proto.Int64(11 * 366 * 24 * hour * 1000)}},
			Extends: []*ddqv1.Extend{
				{TaskId: "a", HoldToken: d.HoldToken, VisibilityTimeoutMs: 13 * hour * 1000},
				{TaskId: "a", HoldToken: d.HoldToken, VisibilityTimeoutMs: -1},
			},
		})
		results := s.next().Settled[0].Results
		if len(results) != 3 {
			r.Fatalf("got %v", results)
		}
		for i, want := range []string{"BAD_DELAY", "OUT_OF_RANGE_FIELD", "OUT_OF_RANGE_FIELD"} {
			if got := results[i].Error.GetReason(); got != want {
				r.Errorf("settlement %d: got %q, want %q", i, got, want)
			}
		}
		r.requireState("a", ddqv1.TaskState_TASK_STATE_RUNNING, "")
	})
}

// A shard that does not answer holds up the outcomes of its own tasks alone: those of others in a frame
// are told, and are told once.
func TestSettlementsThatTakeLongHoldUpNoOthers(t *testing.T) {
	for _, parts := range []bool{true, false} {
		bubble(t, Config{}, func(r *rig) {
			_, err := r.admin.CreateTopic(r.Context(), &ddqv1.CreateTopicRequest{Name: "t", Policy: &ddqv1.TopicPolicy{Shards: new(int32(4))}})
			must(r, err)
			s := r.open()
			s.send(&ddqv1.SubscribeRequest{Hello: &ddqv1.Hello{Topic: "t", InParts: parts}, Credit: new(int32(100))})
			s.next()
			var stuck, well []*ddqv1.Delivery
			for n := range 40 {
				r.enqueue(&ddqv1.EnqueueRequest{Topic: "t", Id: fmt.Sprint(n)})
				d := s.delivery()
				if shard, _, _ := subscription.DecodeToken(d.HoldToken); shard == 0 {
					stuck = append(stuck, d)
				} else {
					well = append(well, d)
				}
			}
			resume := r.store.stopOnly(func(s store.Shard) bool { return s.N == 0 })
			extends := &ddqv1.SubscribeRequest{Sequence: 1}
			for _, d := range append(stuck[1:], well[1:]...) {
				extends.Extends = append(extends.Extends, &ddqv1.Extend{TaskId: d.Task.Id, HoldToken: d.HoldToken})
			}
			began := time.Now()
			s.send(extends)
			s.send(ackFrame(2, stuck[0], well[0]))
			time.AfterFunc(time.Second, resume)
			answered := map[string]int{}
			for last := 0; last < 2; {
				for _, a := range s.next().Settled {
					if !a.Part {
						last++
					}
					if soon := time.Since(began) < time.Second; soon != a.Part || a.Part && !parts {
						r.Errorf("after %v: %v", time.Since(began), a)
					}
					for _, result := range a.Results {
						answered[result.TaskId]++
						if result.Error != nil || (result.HoldMs > 0) != (a.Sequence == 1) {
							r.Errorf("got %v", result)
						}
					}
				}
			}
			if took := time.Since(began); took > 1500*time.Millisecond {
				r.Errorf("took %v", took)
			}
			named := len(extends.Extends)
			if parts {
				named++ // the ack that went well before the other
			}
			if len(answered) != named {
				r.Errorf("%d settlements were named, want %d", len(answered), named)
			}
			for id, n := range answered {
				if n != 1 {
					r.Errorf("%s was answered %d times", id, n)
				}
			}
		})
	}
}

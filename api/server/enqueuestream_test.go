package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/server/status"
	"github.com/ddq-io/ddq/store"
)

func (r *rig) pipeline() grpc.BidiStreamingClient[ddqv1.EnqueueStreamRequest, ddqv1.EnqueueStreamResponse] {
	r.Helper()
	stream, err := r.queue.EnqueueStream(r.Context())
	must(r, err)
	return stream
}

func frameOf(sequence uint64, n int) *ddqv1.EnqueueStreamRequest {
	f := &ddqv1.EnqueueStreamRequest{Sequence: sequence}
	for i := range n {
		f.Tasks = append(f.Tasks, &ddqv1.EnqueueRequest{Topic: "t", Id: fmt.Sprintf("%d-%d", sequence, i)})
	}
	return f
}

func TestEveryFrameIsAnsweredOnce(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		stream := r.pipeline()
		const frames, tasks = 400, 3
		go func() {
			for i := range frames {
				if err := stream.Send(frameOf(uint64(i), tasks)); err != nil {
					t.Error(err)
				}
			}
			stream.CloseSend()
		}()
		answered := map[uint64]int{}
		for {
			f, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				break
			}
			must(r, err)
			if f.Error != nil || len(f.Results) != tasks || f.Results[0].Id != fmt.Sprintf("%d-0", f.Sequence) {
				r.Fatalf("got %v", f)
			}
			answered[f.Sequence]++
		}
		for i := range frames {
			if answered[uint64(i)] != 1 {
				r.Errorf("frame %d was answered %d times", i, answered[uint64(i)])
			}
		}
	})
}

// arrivals counts the messages that a server has read.
type arrivals struct{ n atomic.Int32 }

func (a *arrivals) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (a *arrivals) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (a *arrivals) HandleConn(context.Context, stats.ConnStats)                       {}
func (a *arrivals) HandleRPC(_ context.Context, s stats.RPCStats) {
	if _, ok := s.(*stats.InPayload); ok {
		a.n.Add(1)
	}
}

func TestFramesInWorkAreBounded(t *testing.T) {
	var read arrivals
	config := Config{StreamBytes: 3 * (frameCost + taskCost), Options: []grpc.ServerOption{grpc.StatsHandler(&read)}}
	bubble(t, config, func(r *rig) {
		r.enqueue(&ddqv1.EnqueueRequest{Topic: "t"})
		read.n.Store(0)
		resume := r.store.stop()
		stream := r.pipeline()
		for i := range 10 {
			must(r, stream.Send(frameOf(uint64(i), 1)))
		}
		must(r, stream.CloseSend())
		synctest.Wait()
		if n := read.n.Load(); n != 4 {
			t.Errorf("%d frames were read, want the 3 that may be in work and the one that waits", n)
		}
		resume()
		for i := range 10 {
			if _, err := stream.Recv(); err != nil {
				t.Fatalf("answer %d: %v", i, err)
			}
		}
	})
}

// unread is a stream whose client sends one frame, and does not read the answer.
type unread struct {
	grpc.ServerStream
	ctx    context.Context
	frames chan *ddqv1.EnqueueStreamRequest
}

func (u *unread) Context() context.Context { return u.ctx }

func (u *unread) Recv() (*ddqv1.EnqueueStreamRequest, error) {
	select {
	case f := <-u.frames:
		return f, nil
	case <-u.ctx.Done():
		return nil, u.ctx.Err()
	}
}

func (u *unread) SendHeader(metadata.MD) error { return nil }

func (u *unread) Send(*ddqv1.EnqueueStreamResponse) error {
	<-u.ctx.Done()
	return u.ctx.Err()
}

func TestProducerThatDoesNotReadIsCutOff(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		for _, drains := range []bool{false, true} { // also when it hangs while the stream ends
			ctx, hangUp := context.WithCancel(r.Context())
			u := &unread{ctx: ctx, frames: make(chan *ddqv1.EnqueueStreamRequest, 1)}
			u.frames <- frameOf(1, 1)
			if drains {
				time.AfterFunc(time.Second, r.server.startEnd)
			}
			before := time.Now()
			err := r.server.queue.EnqueueStream(u)
			if e := status.Classify(err); e.Reason != "STREAM_STALLED" || time.Since(before) != 5*time.Second {
				t.Errorf("after %v: %v", time.Since(before), err)
			}
			hangUp() // as the library does once the call has returned
		}
	})
}

func TestFrameThatFailsAsAWholeLeavesTheStreamOpen(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		stream := r.pipeline()
		for i, c := range []struct {
			frame  *ddqv1.EnqueueStreamRequest
			reason string
		}{
			{&ddqv1.EnqueueStreamRequest{Sequence: 0}, "BATCH_SIZE"},
			{&ddqv1.EnqueueStreamRequest{Sequence: 1, Tasks: make1001()}, "BATCH_SIZE"},
			{frameOf(2, 1), ""},
		} {
			must(r, stream.Send(c.frame))
			f, err := stream.Recv()
			must(r, err)
			if f.Sequence != uint64(i) || f.Error.GetReason() != c.reason {
				r.Errorf("frame %d: got %v", i, f)
			}
			if c.reason != "" && (codes.Code(f.Error.Code) != codes.InvalidArgument || len(f.Results) != 0) {
				r.Errorf("frame %d: got %v", i, f)
			}
		}
		r.store.fail(store.ErrUnavailable)
		must(r, stream.Send(frameOf(3, 1)))
		f, err := stream.Recv()
		must(r, err)
		if e := f.Results[0].Error; codes.Code(e.GetCode()) != codes.Unavailable || e.Reason != "STORE_DOWN" || e.RetryAfterMs != 1000 {
			r.Errorf("store down: got %v", f)
		}
	})
}

// A shard that does not answer holds up its own tasks alone: the others of a frame are answered, with
// what was refused, and make room for more.
func TestTasksThatTakeLongHoldUpNoOthers(t *testing.T) {
	const room = 8
	bubble(t, Config{StreamBytes: room * (frameCost + 3*taskCost)}, func(r *rig) {
		stuck, well := 0, 0
		r.enqueue(&ddqv1.EnqueueRequest{Topic: "stuck"})
		r.enqueue(&ddqv1.EnqueueRequest{Topic: "well"})
		resume := r.store.stopOnly(func(s store.Shard) bool { return s.Topic == "stuck" })
		stream := r.pipeline()
		read := func() *ddqv1.EnqueueStreamResponse {
			f, err := stream.Recv()
			must(r, err)
			return f
		}
		const frames = 3 * room
		for n := range uint64(frames) {
			must(r, stream.Send(&ddqv1.EnqueueStreamRequest{Sequence: n, InParts: true, Tasks: []*ddqv1.EnqueueRequest{
				{Topic: "stuck", Id: fmt.Sprint(n)}, {Topic: "no topic"}, {Topic: "well", Id: fmt.Sprint(n)},
			}}))
			began := time.Now()
			f := read()
			if f.Sequence != n || !slices.Equal(f.Part, []uint32{1, 2}) || f.Results[0].GetError().GetReason() != "BAD_NAME" || f.Results[1].GetId() != fmt.Sprint(n) || f.Results[1].GetError() != nil {
				r.Fatalf("frame %d: got %v", n, f)
			}
			if took := time.Since(began); n == 0 && took > 60*time.Millisecond || n > 0 && took > 2*time.Millisecond {
				r.Errorf("frame %d: answered after %v", n, took)
			}
			well++
		}
		resume()
		must(r, stream.CloseSend())
		for range frames {
			if f := read(); len(f.Part) == 0 && len(f.Results) == 1 && f.Results[0].GetError() == nil {
				stuck++
			}
		}
		if _, err := stream.Recv(); well != frames || stuck != frames || !errors.Is(err, io.EOF) {
			r.Errorf("%d and %d answered, then %v", well, stuck, err)
		}
	})
}

// Who does not know of parts gets whole answers.
func TestAnswersAreWholeUnlessPartsAreAskedFor(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		r.enqueue(&ddqv1.EnqueueRequest{Topic: "stuck"})
		r.enqueue(&ddqv1.EnqueueRequest{Topic: "well"})
		resume := r.store.stopOnly(func(s store.Shard) bool { return s.Topic == "stuck" })
		time.AfterFunc(time.Second, resume)
		stream, began := r.pipeline(), time.Now()
		must(r, stream.Send(&ddqv1.EnqueueStreamRequest{Sequence: 1, Tasks: []*ddqv1.EnqueueRequest{{Topic: "stuck"}, {Topic: "well"}}}))
		f, err := stream.Recv()
		must(r, err)
		if len(f.Results) != 2 || len(f.Part) != 0 || time.Since(began) < time.Second {
			r.Errorf("got %v", f)
		}
	})
}

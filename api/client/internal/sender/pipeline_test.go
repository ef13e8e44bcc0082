package sender

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/ddq-io/ddq/api/ddqv1"
)

func TestRepliesAreMatchedBySequence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &fakeQueue{}
		var kept []*ddqv1.EnqueueStreamResponse
		q.answer = func(s *fakeStream, r *ddqv1.EnqueueStreamRequest) {
			if kept = append(kept, stored(r)); len(kept) < 3 {
				return
			}
			for _, reply := range slices.Backward(kept) {
				s.replies <- reply
			}
		}
		p := start(t, q)
		var all sync.WaitGroup
		for n := range 3 {
			time.Sleep(frameGap) // each in a frame of its own
			all.Go(func() {
				id := fmt.Sprint(n)
				if a := send(t, p, id); a.Err != nil || a.Result.GetId() != id {
					t.Errorf("got %v for %s", a, id)
				}
			})
		}
		all.Wait()
		if !slices.Equal(q.frames, []int{1, 1, 1}) {
			t.Errorf("frames %v: they did not go out without waiting for answers", q.frames)
		}
	})
}

func TestFramesInFlightAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &fakeQueue{}
		var s *fakeStream
		var held []*ddqv1.EnqueueStreamResponse
		q.answer = func(on *fakeStream, r *ddqv1.EnqueueStreamRequest) { s, held = on, append(held, stored(r)) }
		p := start(t, q)
		var all sync.WaitGroup
		for n := range 20 {
			all.Go(func() {
				if a := send(t, p, fmt.Sprint(n)); a.Err != nil {
					t.Error(a.Err)
				}
			})
			time.Sleep(frameGap) // in a frame of its own
			synctest.Wait()
		}
		if got := len(q.frames); got != framesInFlight {
			t.Errorf("%d frames in flight, want %d", got, framesInFlight)
		}
		q.answer = nil
		for _, reply := range held {
			s.replies <- reply
		}
		all.Wait()
		if got := q.frames[framesInFlight]; got != 20-framesInFlight {
			t.Errorf("the next frame has %d tasks, want all %d that waited", got, 20-framesInFlight)
		}
	})
}

// A stream on which nothing is answered any more is given up by those whose
// time ran out, and does not collect their tasks.
func TestStuckStreamIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &fakeQueue{}
		q.answer = func(s *fakeStream, r *ddqv1.EnqueueStreamRequest) {
			if s.number > 1 {
				s.replies <- stored(r)
			}
		}
		p := start(t, q)
		var a Answer
		for n := range 100 {
			if a = send(t, p, "a"); a.Err == nil {
				break
			}
			p.mu.Lock()
			if got := len(p.pending); got > 2 {
				t.Errorf("%d calls pending after %d left", got, n+1)
			}
			p.mu.Unlock()
		}
		if a.Err != nil {
			t.Errorf("still failing: %v", a.Err)
		}
	})
}

// What breaks on this side has the status that a server would have given it.
func TestErrorsHaveAStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &fakeQueue{}
		q.answer = func(s *fakeStream, _ *ddqv1.EnqueueStreamRequest) { s.end(io.EOF) }
		p := start(t, q)
		if a := send(t, p, "a"); status.Code(a.Err) != codes.Unknown || !errors.Is(a.Err, io.EOF) {
			t.Errorf("on a stream that the server closed got %v", a.Err)
		}
		q.answer = func(s *fakeStream, r *ddqv1.EnqueueStreamRequest) {
			s.replies <- &ddqv1.EnqueueStreamResponse{Sequence: r.GetSequence()}
		}
		if a := send(t, p, "a"); status.Code(a.Err) != codes.Internal {
			t.Errorf("without a result got %v", a.Err)
		}
		q.answer = func(s *fakeStream, r *ddqv1.EnqueueStreamRequest) {
			s.replies <- &ddqv1.EnqueueStreamResponse{Sequence: r.GetSequence(), Error: &ddqv1.Error{Reason: "PAUSED"}}
		}
		if a := send(t, p, "a"); a.Err != nil || a.Result.GetError().GetReason() != "PAUSED" {
			t.Errorf("for a frame that was refused got %v", a)
		}
		p.Close(t.Context())
		if a := send(t, p, "a"); status.Code(a.Err) != codes.Canceled || !errors.Is(a.Err, ErrClosed) {
			t.Errorf("after Close got %v", a.Err)
		}
	})
}

// A request is its frame's until Send has returned: the reader may hear the answer, or that the
// stream broke, while the frame waits for the window or is marshaled.
func TestNobodyIsAnsweredWhileTheirFrameIsBeingSent(t *testing.T) {
	for name, heard := range map[string]func(s *fakeStream, r *ddqv1.EnqueueStreamRequest){
		"the stream broke": func(s *fakeStream, _ *ddqv1.EnqueueStreamRequest) { s.end(errors.New("reset")) },
		"the answer":       func(s *fakeStream, r *ddqv1.EnqueueStreamRequest) { s.replies <- stored(r) },
		"both": func(s *fakeStream, r *ddqv1.EnqueueStreamRequest) {
			s.replies <- stored(r)
			synctest.Wait()
			s.end(errors.New("reset"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := &fakeQueue{}
				sent := ""
				q.answer = func(s *fakeStream, r *ddqv1.EnqueueStreamRequest) {
					heard(s, r)
					synctest.Wait() // whoever was answered is done with the request
					sent = r.GetTasks()[0].GetTopic() + " " + string(r.GetTasks()[0].GetPayload())
				}
				p, pool := start(t, q), Pool{Poison: true}
				k := pool.Get(1)
				r := k.Next()
				r.Reset([]byte("payload"))
				r.Wire.Topic = "mail"
				r.Measure()
				p.Send(t.Context(), k)
				answered := k.Answers[0]
				pool.Put(k)
				if sent != "mail payload" {
					t.Errorf("the frame carries %q", sent)
				}
				if wants := name == "the stream broke"; (answered.Err != nil) != wants {
					t.Errorf("answered %v", answered)
				}
				p.mu.Lock()
				defer p.mu.Unlock()
				p.stream.mu.Lock()
				defer p.stream.mu.Unlock()
				if len(p.stream.flying) > 0 {
					t.Errorf("%d frames in flight", len(p.stream.flying))
				}
			})
		})
	}
}

// A task that takes long holds up neither those of its frame, nor more frames than may be in flight, nor
// the next stream: of several servers another one may do what the first one cannot.
func TestTaskThatTakesLongHoldsUpNoOthers(t *testing.T) {
	for _, leaves := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			const frames = 2 * framesInFlight
			q := &fakeQueue{}
			var late []func() // the answers of the slow ones
			healed := false
			q.answer = func(s *fakeStream, r *ddqv1.EnqueueStreamRequest) {
				now, later := &ddqv1.EnqueueStreamResponse{Sequence: r.GetSequence()}, &ddqv1.EnqueueStreamResponse{Sequence: r.GetSequence()}
				for i, result := range slices.Backward(stored(r).Results) {
					switch {
					case result.GetId() == "slow" && !healed:
						later.Results = append(later.Results, result)
						continue
					case leaves && result.GetId() != "slow":
						result.Error = &ddqv1.Error{Code: int32(codes.Unavailable)}
					}
					now.Results, now.Part = append(now.Results, result), append(now.Part, uint32(i))
				}
				if len(later.Results) == 0 {
					slices.Reverse(now.Results)
					now.Part = nil
					s.replies <- now
					return
				}
				if len(now.Results) > 0 {
					s.replies <- now
				}
				s.owes.Add(1)
				late = append(late, func() {
					s.replies <- later
					s.paid()
				})
			}
			p := start(t, q)
			began := time.Now()
			var slow sync.WaitGroup
			for n := range frames {
				var well sync.WaitGroup
				for _, id := range []string{fmt.Sprint("a", n), "slow", fmt.Sprint("b", n)} {
					of := &well
					if id == "slow" {
						of = &slow
					}
					of.Go(func() {
						a := send(t, p, id)
						if a.Err != nil || a.Result.GetId() != id || (a.Result.GetError() != nil) != (leaves && id != "slow") {
							t.Errorf("%s: %v", id, a)
						}
					})
				}
				well.Wait()
			}
			if took := time.Since(began); took > 700*time.Millisecond {
				t.Errorf("took %v", took)
			}
			if leaves && q.streams < 2 {
				t.Error("stays with a server that cannot")
			}
			synctest.Wait()
			healed = true
			for _, answer := range late {
				answer()
			}
			slow.Wait()
		})
	}
}

// send sends one task over p, and waits a second at most.
func send(t *testing.T, p *Pipeline, id string) Answer {
	k := new(Pool).Get(1)
	r := k.Next()
	r.Reset(nil)
	r.Wire.Id = id
	r.Measure()
	k.Limit(time.Now(), time.Second)
	p.Send(t.Context(), k)
	return k.Answers[0]
}

// start returns a pipeline to q, whose calls wait for a second.
func start(t *testing.T, q *fakeQueue) *Pipeline {
	t.Helper()
	p := NewPipeline(q, time.Second)
	t.Cleanup(func() { p.Close(context.Background()) })
	return p
}

// fakeQueue stores what it is sent, or answers as it is told.
type fakeQueue struct {
	ddqv1.DelayQueueServiceClient
	answer  func(s *fakeStream, r *ddqv1.EnqueueStreamRequest)
	frames  []int // tasks in each
	streams int   // opened so far
}

func (q *fakeQueue) EnqueueStream(ctx context.Context, _ ...grpc.CallOption) (grpc.BidiStreamingClient[ddqv1.EnqueueStreamRequest, ddqv1.EnqueueStreamResponse], error) {
	q.streams++
	ctx, cancel := context.WithCancelCause(ctx)
	return &fakeStream{queue: q, ctx: ctx, end: cancel, number: q.streams, replies: make(chan *ddqv1.EnqueueStreamResponse, 2*framesInFlight)}, nil
}

type fakeStream struct {
	grpc.BidiStreamingClient[ddqv1.EnqueueStreamRequest, ddqv1.EnqueueStreamResponse]
	queue   *fakeQueue
	ctx     context.Context
	end     context.CancelCauseFunc
	number  int // of the stream, from 1
	replies chan *ddqv1.EnqueueStreamResponse
	owes    atomic.Int32 // answers before its end
	closed  atomic.Bool
}

// paid says that an answer which the stream owed is in replies.
func (s *fakeStream) paid() {
	if s.owes.Add(-1) == 0 && s.closed.Load() {
		s.end(io.EOF)
	}
}

func (s *fakeStream) Send(r *ddqv1.EnqueueStreamRequest) error {
	s.queue.frames = append(s.queue.frames, len(r.GetTasks()))
	if s.queue.answer != nil {
		s.queue.answer(s, r)
		return nil
	}
	s.replies <- stored(r)
	return nil
}

func (s *fakeStream) Recv() (*ddqv1.EnqueueStreamResponse, error) {
	select {
	case r := <-s.replies:
		return r, nil
	case <-s.ctx.Done():
	}
	select {
	case r := <-s.replies:
		return r, nil
	default:
		return nil, context.Cause(s.ctx)
	}
}

// Header is that of a server which took the stream.
func (s *fakeStream) Header() (metadata.MD, error) { return metadata.MD{}, nil }

func (s *fakeStream) CloseSend() error {
	if s.closed.Store(true); s.owes.Load() == 0 {
		s.end(io.EOF)
	}
	return nil
}

// stored answers that the tasks of r are stored.
func stored(r *ddqv1.EnqueueStreamRequest) *ddqv1.EnqueueStreamResponse {
	reply := &ddqv1.EnqueueStreamResponse{Sequence: r.GetSequence()}
	for _, t := range r.GetTasks() {
		reply.Results = append(reply.Results, &ddqv1.EnqueueResult{Id: t.GetId()})
	}
	return reply
}

package client

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/ddq-io/ddq/api/codec"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// fakeServer stores what it is sent, and fails as it is told.
type fakeServer struct {
	ddqv1.UnimplementedDelayQueueServiceServer
	ddqv1.UnimplementedAdminServiceServer

	// judge, if set, decides about one task; nil stores it. Called with mu held.
	judge func(r *ddqv1.EnqueueRequest) *ddqv1.Error
	// answer, if set, sends the replies of an enqueue stream in its own way. It
	// returns the stream's end.
	answer func(s *fakeStream, r *ddqv1.EnqueueStreamRequest) error
	// unary, if set, is asked before each unary call.
	unary func(method string) error
	// batch, if set, is asked before each EnqueueBatch.
	batch func(r *ddqv1.EnqueueBatchRequest) error
	// wait answers waits.
	wait func(r *ddqv1.WaitTaskRequest) (*ddqv1.WaitTaskResponse, error)

	// watch sends the frames of the n-th stream.
	watch func(n int, r *ddqv1.WatchTasksRequest, send func(*ddqv1.WatchTasksResponse) error) error

	mu      sync.Mutex
	stored  map[string]*ddqv1.EnqueueRequest // by id; guarded by mu
	frames  []int                            // tasks in each frame; guarded by mu
	streams int                              // opened so far; guarded by mu
	calls   map[string]int                   // unary, by method; guarded by mu
	asked   []any                            // requests of admin calls; guarded by mu
}

type fakeStream struct {
	grpc.BidiStreamingServer[ddqv1.EnqueueStreamRequest, ddqv1.EnqueueStreamResponse]
	number int // of the stream, from 1
	frames int // received on it
}

func (f *fakeServer) EnqueueStream(rpc grpc.BidiStreamingServer[ddqv1.EnqueueStreamRequest, ddqv1.EnqueueStreamResponse]) error {
	f.mu.Lock()
	f.streams++
	s := &fakeStream{rpc, f.streams, 0}
	f.mu.Unlock()
	for {
		r, err := rpc.Recv()
		if err != nil {
			return nil // half-closed
		}
		s.frames++
		f.mu.Lock()
		f.frames = append(f.frames, len(r.GetTasks()))
		f.mu.Unlock()
		if f.answer != nil {
			if err := f.answer(s, r); err != nil {
				return err
			}
			continue
		}
		if err := rpc.Send(f.reply(r)); err != nil {
			return err
		}
	}
}

// reply stores the tasks of r.
func (f *fakeServer) reply(r *ddqv1.EnqueueStreamRequest) *ddqv1.EnqueueStreamResponse {
	reply := &ddqv1.EnqueueStreamResponse{Sequence: r.GetSequence()}
	for _, t := range r.GetTasks() {
		reply.Results = append(reply.Results, f.store(t))
	}
	return reply
}

func (f *fakeServer) store(t *ddqv1.EnqueueRequest) *ddqv1.EnqueueResult {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.judge != nil {
		if err := f.judge(t); err != nil {
			return &ddqv1.EnqueueResult{Id: t.GetId(), Error: err}
		}
	}
	outcome := ddqv1.IdempotencyOutcome_IDEMPOTENCY_OUTCOME_UNSPECIFIED
	if key := t.GetIdempotency().GetKey(); key != "" {
		for id, other := range f.stored {
			if other.GetIdempotency().GetKey() == key {
				return &ddqv1.EnqueueResult{Id: id, IdempotencyOutcome: ddqv1.IdempotencyOutcome_IDEMPOTENCY_OUTCOME_RETURNED}
			}
		}
		outcome = ddqv1.IdempotencyOutcome_IDEMPOTENCY_OUTCOME_ENQUEUED
	}
	_, known := f.stored[t.GetId()]
	if f.stored == nil {
		f.stored = make(map[string]*ddqv1.EnqueueRequest)
	}
	f.stored[t.GetId()] = t
	due := time.Now().Add(t.GetDelay().AsDuration())
	if at := t.GetExecuteTime(); at != nil {
		due = at.AsTime()
	}
	return &ddqv1.EnqueueResult{Id: t.GetId(), ExecuteTime: timestamppb.New(due), Deduplicated: known, IdempotencyOutcome: outcome}
}

func (f *fakeServer) Enqueue(_ context.Context, r *ddqv1.EnqueueRequest) (*ddqv1.EnqueueResponse, error) {
	if err := f.called("Enqueue"); err != nil {
		return nil, err
	}
	res := f.store(r)
	if res.GetError() != nil {
		return nil, status.Error(codes.Code(res.GetError().GetCode()), res.GetError().GetMessage())
	}
	return &ddqv1.EnqueueResponse{Id: res.GetId(), ExecuteTime: res.GetExecuteTime(), Deduplicated: res.GetDeduplicated(), IdempotencyOutcome: res.GetIdempotencyOutcome()}, nil
}

func (f *fakeServer) EnqueueBatch(_ context.Context, r *ddqv1.EnqueueBatchRequest) (*ddqv1.EnqueueBatchResponse, error) {
	if err := f.called("EnqueueBatch"); err != nil {
		return nil, err
	}
	if f.batch != nil {
		if err := f.batch(r); err != nil {
			return nil, err
		}
	}
	reply := f.reply(&ddqv1.EnqueueStreamRequest{Tasks: r.GetTasks()})
	return &ddqv1.EnqueueBatchResponse{Results: reply.GetResults()}, nil
}

// called counts a unary call.
func (f *fakeServer) called(method string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.calls == nil {
		f.calls = make(map[string]int)
	}
	f.calls[method]++
	if f.unary != nil {
		return f.unary(method)
	}
	return nil
}

func (f *fakeServer) count(method string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[method]
}

func (f *fakeServer) ids() map[string]*ddqv1.EnqueueRequest {
	f.mu.Lock()
	defer f.mu.Unlock()
	ids := make(map[string]*ddqv1.EnqueueRequest, len(f.stored))
	for id, t := range f.stored {
		ids[id] = t
	}
	return ids
}

// start serves f in memory until the test ends and returns a client of it.
func start(t testing.TB, f *fakeServer, cfg Config) *Client {
	t.Helper()
	c, _ := startServer(t, f, cfg)
	return c
}

// pings lets clients ping as often as a real server does.
var pings = grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true})

// startServer also returns the server, for tests that stop it themselves.
func startServer(t testing.TB, f *fakeServer, cfg Config) (*Client, *grpc.Server) {
	t.Helper()
	lis := bufconn.Listen(1 << 20)
	server := grpc.NewServer(grpc.ForceServerCodecV2(codec.Proto), pings)
	ddqv1.RegisterDelayQueueServiceServer(server, f)
	ddqv1.RegisterAdminServiceServer(server, f)
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(lis) })
	cfg.DialOptions = append(cfg.DialOptions,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }))
	c, err := Dial("passthrough:///fake", cfg)
	if err != nil {
		t.Fatal(err)
	}
	c.Tasks.calls.Poison = true
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		server.Stop()
		serving.Wait()
	})
	return c, server
}

package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/ddq-io/ddq/api/codec"
	"github.com/ddq-io/ddq/api/ddqv1"
)

const fakeHold = 30 * time.Second

// fakeServer accepts subscriptions and does on them what the test says. It
// fails the test when a worker takes more than it may.
type fakeServer struct {
	ddqv1.UnimplementedDelayQueueServiceServer
	t *testing.T

	// greet, if set, is asked before a subscription is accepted.
	greet func(n int, hello *ddqv1.Hello) error
	// results, if set, makes the answer to a frame with settlements; nil
	// without error sends none. Otherwise all is accepted.
	results func(st *fakeStream, r *ddqv1.SubscribeRequest) *ddqv1.Settled
	// goodbye, if set, is called when the worker has closed its side.
	goodbye func(st *fakeStream)
	// checkpoint, if set, answers checkpoints.
	checkpoint func(c *ddqv1.Checkpoint) (*ddqv1.CheckpointResponse, error)
	// handlerTimeout, if set, is that of every task.
	handlerTimeout time.Duration
	// limit, if set, is the max in flight that the server agrees to.
	limit int32
	// node is its name.
	node string

	streams chan *fakeStream // accepted, in order
	nacks   chan *ddqv1.Nack // unary

	mu     sync.Mutex
	opened int           // guarded by mu
	called int           // with a checkpoint of its own; guarded by mu
	now    []*fakeStream // that are open; guarded by mu
}

// fakeStream is the server's end of one subscription.
type fakeStream struct {
	f     *fakeServer
	rpc   grpc.BidiStreamingServer[ddqv1.SubscribeRequest, ddqv1.SubscribeResponse]
	hello *ddqv1.Hello
	end   chan error    // ends the stream
	ahead time.Duration // how far the server's clock is before that of the worker; 0: it is not told

	mu      sync.Mutex
	credit  int                  // guarded by mu
	ends    time.Time            // when the hold ends that a test follows; guarded by mu
	held    map[string]time.Time // when the hold ends, by token; guarded by mu
	acked   []string             // ids; guarded by mu
	nacked  []*ddqv1.Nack        // guarded by mu
	extends []*ddqv1.Extend      // guarded by mu
	frames  int                  // with settlements; guarded by mu
}

func (f *fakeServer) Subscribe(rpc grpc.BidiStreamingServer[ddqv1.SubscribeRequest, ddqv1.SubscribeResponse]) error {
	first, err := rpc.Recv()
	if err != nil {
		return err
	}
	f.mu.Lock()
	f.opened++
	n := f.opened
	f.mu.Unlock()
	if f.greet != nil {
		if err := f.greet(n, first.GetHello()); err != nil {
			return err
		}
	}
	st := &fakeStream{f: f, rpc: rpc, hello: first.GetHello(), end: make(chan error, 1), held: make(map[string]time.Time)}
	limit := st.hello.GetMaxInFlight()
	if f.limit > 0 {
		limit = f.limit
	}
	if err := rpc.Send(&ddqv1.SubscribeResponse{Subscribed: &ddqv1.Subscribed{Node: f.node, MaxInFlight: limit}}); err != nil {
		return err
	}
	defer f.note(st)()
	f.streams <- st
	read := make(chan error, 1)
	go func() { read <- st.read(int(limit)) }()
	select {
	case err := <-st.end:
		return err
	case err := <-read:
		return err
	case <-rpc.Context().Done():
		return rpc.Context().Err()
	}
}

// note counts st as open until what it returns is called.
func (f *fakeServer) note(st *fakeStream) (end func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = append(f.now, st)
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.now = slices.DeleteFunc(f.now, func(other *fakeStream) bool { return other == st })
	}
}

// open counts the streams that are open: those on demand by the server's name, the
// others at "*".
func (f *fakeServer) open() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	open := make(map[string]int)
	for _, st := range f.now {
		if st.hello.GetOnDemand() {
			open[f.node]++
		} else {
			open["*"]++
		}
	}
	return open
}

func (f *fakeServer) Nack(_ context.Context, r *ddqv1.NackRequest) (*ddqv1.NackResponse, error) {
	f.nacks <- r.GetNack()
	return &ddqv1.NackResponse{}, nil
}

func (f *fakeServer) Checkpoint(_ context.Context, r *ddqv1.CheckpointRequest) (*ddqv1.CheckpointResponse, error) {
	if f.checkpoint == nil || r.GetTopic() != "mail" {
		return nil, status.Errorf(codes.Unimplemented, "topic %q", r.GetTopic())
	}
	f.mu.Lock()
	f.called++
	f.mu.Unlock()
	return f.checkpoint(r.GetCheckpoint())
}

func (st *fakeStream) read(limit int) error {
	for {
		r, err := st.rpc.Recv()
		if errors.Is(err, io.EOF) && st.f.goodbye != nil {
			st.f.goodbye(st)
		}
		if err != nil {
			return nil
		}
		st.take(r, limit)
		if len(r.GetAcks())+len(r.GetNacks())+len(r.GetExtends())+len(r.GetCheckpoints()) == 0 {
			continue
		}
		answer := accept(r)
		answer.Results = append(answer.Results, st.f.keep(r.GetCheckpoints())...)
		if st.f.results != nil {
			answer = st.f.results(st, r)
		}
		if answer == nil {
			continue
		}
		if err := st.rpc.Send(&ddqv1.SubscribeResponse{Settled: []*ddqv1.Settled{answer}}); err != nil {
			return err
		}
	}
}

// keep answers the checkpoints of a frame.
func (f *fakeServer) keep(checkpoints []*ddqv1.Checkpoint) (results []*ddqv1.SettleResult) {
	for _, c := range checkpoints {
		kept, err := f.checkpoint(c)
		r := &ddqv1.SettleResult{TaskId: c.GetTaskId(), HoldToken: c.GetHoldToken(), Name: c.GetName(), Already: kept.GetAlready()}
		if err != nil {
			r.Error = &ddqv1.Error{Code: int32(status.Code(err)), Message: err.Error(), Reason: reasonOf(err)}
		}
		results = append(results, r)
	}
	return results
}

// accept is the answer that all went well.
func accept(r *ddqv1.SubscribeRequest) *ddqv1.Settled {
	answer := &ddqv1.Settled{Sequence: r.GetSequence()}
	for _, e := range r.GetExtends() {
		answer.Results = append(answer.Results, &ddqv1.SettleResult{
			TaskId: e.GetTaskId(), HoldToken: e.GetHoldToken(), HoldMs: fakeHold.Milliseconds(),
		})
	}
	return answer
}

// take keeps the books of a frame.
func (st *fakeStream) take(r *ddqv1.SubscribeRequest, limit int) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if len(r.GetAcks())+len(r.GetNacks())+len(r.GetExtends()) > 0 {
		st.frames++
	}
	for _, a := range r.GetAcks() {
		delete(st.held, string(a.GetHoldToken()))
		st.acked = append(st.acked, a.GetTaskId())
	}
	for _, n := range r.GetNacks() {
		delete(st.held, string(n.GetHoldToken()))
		st.nacked = append(st.nacked, n)
	}
	st.extends = append(st.extends, r.GetExtends()...)
	for _, e := range r.GetExtends() {
		if _, ok := st.held[string(e.GetHoldToken())]; ok && st.f.results == nil {
			st.held[string(e.GetHoldToken())] = time.Now().Add(fakeHold)
		}
	}
	maps.DeleteFunc(st.held, func(_ string, end time.Time) bool { return !time.Now().Before(end) })
	if r.Credit != nil {
		st.credit += int(r.GetCredit())
		if r.GetCredit() <= 0 {
			st.f.t.Errorf("granted %d", r.GetCredit())
		}
	}
	if got := st.credit + len(st.held); got > limit {
		st.f.t.Errorf("credit %d and %d held are over the limit of %d", st.credit, len(st.held), limit)
	}
}

// deliver sends tasks, in one frame, for which there must be credit.
func (st *fakeStream) deliver(ids ...string) {
	st.f.t.Helper()
	var all []*ddqv1.Delivery
	for _, id := range ids {
		all = append(all, delivery(st.hello.GetTopic(), id))
	}
	st.sendTasks(all...)
}

func (st *fakeStream) sendTasks(all ...*ddqv1.Delivery) {
	st.f.t.Helper()
	st.mu.Lock()
	if st.credit -= len(all); st.credit < 0 {
		st.f.t.Errorf("the test delivers without credit")
	}
	for _, d := range all {
		st.held[holdToken(d.Task.Id)] = time.Now().Add(fakeHold)
		d.Task.HandlerTimeoutMs = st.f.handlerTimeout.Milliseconds()
	}
	st.mu.Unlock()
	m := &ddqv1.SubscribeResponse{Deliveries: all}
	if st.ahead != 0 {
		m.ServerTimeMs = time.Now().Add(st.ahead).UnixMilli()
	}
	st.send(m)
}

func (st *fakeStream) send(m *ddqv1.SubscribeResponse) {
	st.f.t.Helper()
	if err := st.rpc.Send(m); err != nil {
		st.f.t.Errorf("send: %v", err)
	}
}

func (st *fakeStream) books() (credit, held int, acked []string, nacked []*ddqv1.Nack, extends int) {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.credit, len(st.held), append([]string(nil), st.acked...), append([]*ddqv1.Nack(nil), st.nacked...), len(st.extends)
}

func holdToken(id string) string { return "token-" + id }

func delivery(topic, id string) *ddqv1.Delivery {
	return &ddqv1.Delivery{
		Task:      &ddqv1.Task{Id: id, Topic: topic, Payload: []byte("payload " + id), RetryCount: 1, MaxRetries: 3},
		HoldToken: []byte(holdToken(id)),
		HoldMs:    fakeHold.Milliseconds(),
	}
}

func ids(from, to int) (list []string) {
	for n := from; n < to; n++ {
		list = append(list, fmt.Sprintf("t%d", n))
	}
	return list
}

// fixture is a worker on a fake server, in a bubble.
type fixture struct {
	*fakeServer
	w    *Worker
	conn *grpc.ClientConn
	stop context.CancelFunc // ends Run's context
	ran  chan error         // what Run returned
}

// watchFrames is an interceptor of a program, which must get the frames themselves.
func watchFrames(t *testing.T) grpc.StreamClientInterceptor {
	return func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, next grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		stream, err := next(ctx, desc, cc, method, opts...)
		return watchedStream{stream, t}, err
	}
}

type watchedStream struct {
	grpc.ClientStream
	t *testing.T
}

func (s watchedStream) RecvMsg(m any) error {
	if _, ok := m.(*ddqv1.SubscribeResponse); !ok {
		s.t.Errorf("an interceptor gets %T", m)
	}
	return s.ClientStream.RecvMsg(m)
}

// start runs a worker until the test ends.
func start(t *testing.T, f *fakeServer, cfg Config, h Handler) *fixture {
	t.Helper()
	f.t, f.node = t, "n1"
	f.streams, f.nacks = make(chan *fakeStream, 100), make(chan *ddqv1.Nack, 100)
	lis := bufconn.Listen(1 << 20)
	server := grpc.NewServer(grpc.ForceServerCodecV2(codec.Proto), grpc.MaxRecvMsgSize(6<<20)) // as a real one
	ddqv1.RegisterDelayQueueServiceServer(server, f)
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(lis) })
	conn, err := grpc.NewClient("passthrough:///fake", grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithStreamInterceptor(watchFrames(t)),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	if _, mux := h.(*Mux); cfg.Topic == "" && !mux {
		cfg.Topic = "mail"
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithCancel(context.Background())
	x := &fixture{fakeServer: f, w: New(conn, cfg, h), conn: conn, stop: cancel, ran: make(chan error, 1)}
	serving.Go(func() { x.ran <- x.w.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-x.ran:
			if err != nil {
				t.Errorf("Run returned %v", err)
			}
		case <-time.After(time.Hour): // of the bubble
			t.Error("Run does not return")
		}
		_ = conn.Close()
		server.Stop()
		serving.Wait()
	})
	return x
}

// end ends Run's context and returns what Run returned.
func (x *fixture) end() error {
	x.stop()
	err := <-x.ran
	x.ran <- nil // for the cleanup
	return err
}

var errBoom = errors.New("boom")

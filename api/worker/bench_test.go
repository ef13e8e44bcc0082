package worker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/ddq-io/ddq/api/codec"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// flood delivers the same tasks for as long as there is credit, and says yes
// to everything. Its frames are made beforehand.
type flood struct {
	ddqv1.UnimplementedDelayQueueServiceServer
	left atomic.Int64
}

func floodFrame(n int) *ddqv1.SubscribeResponse {
	m := &ddqv1.SubscribeResponse{}
	for i := range n {
		m.Deliveries = append(m.Deliveries, &ddqv1.Delivery{
			Task: &ddqv1.Task{
				Id: fmt.Sprintf("0199c1de-7b1c-7c3e-9a55-%012d", i), Topic: "mail", Payload: make([]byte, 200), MaxRetries: 3,
				ExecuteTime: timestamppb.Now(), CreatedAt: timestamppb.Now(), State: ddqv1.TaskState_TASK_STATE_RUNNING,
			},
			HoldToken: fmt.Appendf(nil, "shard-and-token-%08d", i), HoldMs: 30000,
		})
	}
	return m
}

const floodBatch = 128

func (f *flood) Subscribe(rpc grpc.BidiStreamingServer[ddqv1.SubscribeRequest, ddqv1.SubscribeResponse]) error {
	if _, err := rpc.Recv(); err != nil {
		return err
	}
	if err := rpc.Send(&ddqv1.SubscribeResponse{Subscribed: &ddqv1.Subscribed{}}); err != nil {
		return err
	}
	full, credit := floodFrame(floodBatch), 0
	for {
		r, err := rpc.Recv()
		if err != nil {
			return nil
		}
		if r.GetSequence() > 0 {
			if err := rpc.Send(&ddqv1.SubscribeResponse{Settled: []*ddqv1.Settled{{Sequence: r.GetSequence()}}}); err != nil {
				return err
			}
		}
		credit += int(r.GetCredit())
		for credit > 0 && f.left.Load() > 0 {
			n := min(credit, floodBatch, int(f.left.Load()))
			m := full
			if n < floodBatch {
				m = &ddqv1.SubscribeResponse{Deliveries: full.Deliveries[:n]}
			}
			f.left.Add(int64(-n))
			credit -= n
			if err := rpc.Send(m); err != nil {
				return err
			}
		}
	}
}

// BenchmarkTask is what a task costs a worker whose handler does nothing, with
// gRPC over TCP and the server's part of that.
func BenchmarkTask(b *testing.B) {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	f := &flood{}
	f.left.Store(int64(b.N))
	server := grpc.NewServer(grpc.ForceServerCodecV2(codec.Proto))
	ddqv1.RegisterDelayQueueServiceServer(server, f)
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(lis) })
	conn, err := grpc.NewClient(lis.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	var acked atomic.Int64
	w := New(conn, Config{Topic: "mail", Concurrency: 16, MaxInFlight: 1024, Observe: func(e Event) {
		if e.Kind == Acked && acked.Add(int64(e.Tasks)) == int64(b.N) {
			stop()
		}
	}}, HandlerFunc(func(context.Context, Task) error { return nil }))
	b.ReportAllocs()
	b.ResetTimer()
	before := cpu()
	if err := w.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
		b.Fatal(err)
	}
	b.ReportMetric(float64(cpu()-before)/float64(b.N), "cpu-ns/task")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tasks/s")
	b.StopTimer()
	_ = conn.Close()
	server.Stop()
	serving.Wait()
}

// BenchmarkUnmarshal is the part of it that is decoding.
func BenchmarkUnmarshal(b *testing.B) {
	raw, err := proto.Marshal(floodFrame(floodBatch))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		var m ddqv1.SubscribeResponse
		if err := m.UnmarshalVT(raw); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/floodBatch, "ns/task")
}

// cpu is what this process has used so far.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

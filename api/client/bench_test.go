package client

import (
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/ddq-io/ddq/api/codec"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// echo answers every enqueue at once; over real TCP, so that the figures
// include what a client and a server spend on gRPC.
type echo struct {
	ddqv1.UnimplementedDelayQueueServiceServer
}

func (echo) EnqueueStream(rpc grpc.BidiStreamingServer[ddqv1.EnqueueStreamRequest, ddqv1.EnqueueStreamResponse]) error {
	for {
		r, err := rpc.Recv()
		if err != nil {
			return nil
		}
		reply := &ddqv1.EnqueueStreamResponse{Sequence: r.GetSequence(), Results: make([]*ddqv1.EnqueueResult, len(r.GetTasks()))}
		for i, t := range r.GetTasks() {
			reply.Results[i] = &ddqv1.EnqueueResult{Id: t.GetId()}
		}
		if err := rpc.Send(reply); err != nil {
			return err
		}
	}
}

func startEcho(b *testing.B) *Client {
	b.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := grpc.NewServer(grpc.ForceServerCodecV2(codec.Proto))
	ddqv1.RegisterDelayQueueServiceServer(server, echo{})
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(lis) })
	c, err := Dial(lis.Addr().String(), Config{Timeout: time.Minute})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close(); server.Stop(); serving.Wait() })
	return c
}

// BenchmarkEnqueue64 has 64 goroutines enqueue one task at a time.
func BenchmarkEnqueue64(b *testing.B) {
	c := startEcho(b)
	task := Task{Topic: "mail", Payload: make([]byte, 200), Delay: time.Second}
	b.ReportAllocs()
	b.ResetTimer()
	var all sync.WaitGroup
	for g := range 64 {
		all.Go(func() {
			for range (b.N + 63 - g) / 64 {
				if _, err := c.Enqueue(b.Context(), task); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tasks/s")
}

// BenchmarkEnqueueBatch512 has four goroutines enqueue batches of 512.
func BenchmarkEnqueueBatch512(b *testing.B) {
	c := startEcho(b)
	tasks := make([]Task, 512)
	for i := range tasks {
		tasks[i] = Task{Topic: "mail", Payload: make([]byte, 200), Delay: time.Second}
	}
	b.ReportAllocs()
	b.ResetTimer()
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for range (b.N + 3 - g) / 4 {
				if _, err := c.EnqueueBatch(b.Context(), tasks); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	b.ReportMetric(float64(b.N)*512/b.Elapsed().Seconds(), "tasks/s")
}

// BenchmarkEnqueueAlone is the latency of a single caller.
func BenchmarkEnqueueAlone(b *testing.B) {
	c := startEcho(b)
	task := Task{Topic: "mail", Payload: make([]byte, 200), Delay: time.Second}
	for b.Loop() {
		if _, err := c.Enqueue(b.Context(), task); err != nil {
			b.Fatal(err)
		}
	}
}

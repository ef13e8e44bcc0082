package server

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/api/codec"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/store/memstore"
)

// loopback serves a system over an in-memory store on a TCP port of this machine.
func loopback(b *testing.B) ddqv1.DelayQueueServiceClient {
	b.Helper()
	cases := service.New(actors.New(actors.Config{}, memstore.New(), quiet, nil), nil)
	if err := cases.Node().Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	s := New(Config{}, cases, quiet, nil)
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := s.Serve(lis); err != nil {
			b.Error(err)
		}
	})
	conn, err := grpc.NewClient(lis.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(codec.Proto)))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		conn.Close()
		_ = s.Stop(b.Context()) // the context is over, and what runs with it
		serving.Wait()
		_ = cases.Node().Stop(b.Context())
	})
	return ddqv1.NewDelayQueueServiceClient(conn)
}

// BenchmarkEnqueueStream stores tasks due in an hour, 512 a frame, 8 frames
// unanswered at a time, client and server in this process.
func BenchmarkEnqueueStream(b *testing.B) {
	const size, unanswered = 512, 8
	client := loopback(b)
	stream, err := client.EnqueueStream(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	frame := &ddqv1.EnqueueStreamRequest{}
	for range size {
		frame.Tasks = append(frame.Tasks, &ddqv1.EnqueueRequest{
			Topic: "t", Payload: make([]byte, 200),
			When: &ddqv1.EnqueueRequest_Delay{Delay: durationpb.New(time.Hour)},
		})
	}
	room := make(chan struct{}, unanswered)
	var reading sync.WaitGroup
	reading.Go(func() {
		for {
			f, err := stream.Recv()
			if err == io.EOF {
				return
			}
			if err != nil || f.Error != nil || f.Results[0].Error != nil {
				b.Errorf("got %v, %v", f, err)
				return
			}
			<-room
		}
	})
	b.ReportAllocs()
	for b.Loop() {
		frame.Sequence++
		room <- struct{}{}
		if err := stream.Send(frame); err != nil {
			b.Fatal(err)
		}
	}
	if err := stream.CloseSend(); err != nil {
		b.Fatal(err)
	}
	reading.Wait()
	b.ReportMetric(float64(b.N*size)/b.Elapsed().Seconds(), "tasks/s")
}

// BenchmarkEnqueue stores one task a call, from 64 producers.
func BenchmarkEnqueue(b *testing.B) {
	client := loopback(b)
	b.SetParallelism(32)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		req := &ddqv1.EnqueueRequest{Topic: "t", Payload: make([]byte, 200), When: &ddqv1.EnqueueRequest_Delay{Delay: durationpb.New(time.Hour)}}
		for pb.Next() {
			if _, err := client.Enqueue(b.Context(), req); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tasks/s")
}

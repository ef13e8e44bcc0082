package server

import (
	"bytes"
	"runtime"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/server/status/statustest"
)

// raw sends bytes as they are.
type raw struct{}

func (raw) Name() string { return "proto" }

func (raw) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

func (raw) Unmarshal(mem.BufferSlice, any) error { return nil }

// TestMalformedMessagesAreTheCallersFault has what cannot be read, and what would take
// too much memory, in a call, in the request of a stream, and in a frame.
func TestMalformedMessagesAreTheCallersFault(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		for _, body := range [][]byte{{0xff}, {0x0a, 0x05, 'x'}, bytes.Repeat([]byte{0x0a, 0}, 1_000_000)} {
			var reply []byte
			check := func(what string, err error) {
				t.Helper()
				if s := statustest.Look(t, err); s.Code != codes.InvalidArgument || s.Reason != "BAD_MESSAGE" {
					t.Errorf("%s of %d bytes: got %+v", what, len(body), s)
				}
			}
			check("call", r.conn.Invoke(r.Context(), ddqv1.DelayQueueService_EnqueueBatch_FullMethodName, body, &reply, grpc.ForceCodecV2(raw{})))
			for _, method := range []string{ddqv1.DelayQueueService_WatchTasks_FullMethodName, ddqv1.DelayQueueService_Subscribe_FullMethodName} {
				stream, err := r.conn.NewStream(r.Context(), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method, grpc.ForceCodecV2(raw{}))
				must(r, err)
				must(r, stream.SendMsg(body[:min(len(body), 5)])) // cut off within a field
				must(r, stream.CloseSend())
				check(method, stream.RecvMsg(&reply))
			}
		}
	})
}

// TestBatchIsCountedBeforeItIsConverted has items that are refused one by one.
func TestBatchIsCountedBeforeItIsConverted(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		body := bytes.Repeat([]byte{0x0a, 0x02, 0x2a, 0x00}, 20_000) // execute_time {}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var reply []byte
		err := r.conn.Invoke(r.Context(), ddqv1.DelayQueueService_EnqueueBatch_FullMethodName, body, &reply, grpc.ForceCodecV2(raw{}))
		runtime.ReadMemStats(&after)
		if s := statustest.Look(t, err); s.Code != codes.InvalidArgument || s.Reason != "BATCH_SIZE" {
			t.Errorf("got %+v", s)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 20<<20 {
			t.Errorf("%d bytes were allocated for %d", n, len(body))
		}
	})
}

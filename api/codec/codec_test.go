package codec

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/ddq-io/ddq/api/ddqv1"
)

func frame(tasks, payload int) *ddqv1.EnqueueStreamRequest {
	f := &ddqv1.EnqueueStreamRequest{Sequence: 7}
	for range tasks {
		f.Tasks = append(f.Tasks, &ddqv1.EnqueueRequest{
			Topic:   "mail",
			Id:      "0199c1de-7b1c-7c3e-9a55-0f6c2f1f2a3b",
			Payload: bytes.Repeat([]byte{'x'}, payload),
			When:    &ddqv1.EnqueueRequest_Delay{Delay: durationpb.New(5 * time.Second)},
		})
	}
	return f
}

func TestMessagesSurviveTheRoundTrip(t *testing.T) {
	for name, m := range map[string]proto.Message{
		"empty":           &ddqv1.EnqueueStreamRequest{},
		"small":           frame(1, 10),
		"pooled":          frame(64, 200),
		"largest pooled":  frame(1, 1<<20),
		"oneof and times": &ddqv1.Task{Id: "a", ExecuteTime: timestamppb.New(time.Unix(5, 6e6)), Backoff: &ddqv1.Backoff{BaseMs: 3}},
		"standard":        &grpc_health_v1.HealthCheckRequest{Service: "ddq"},
		"standard pooled": &grpc_health_v1.HealthCheckRequest{Service: strings.Repeat("s", 4096)},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := Proto.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			got := m.ProtoReflect().New().Interface()
			if err := Proto.Unmarshal(data, got); err != nil {
				t.Fatal(err)
			}
			if !proto.Equal(got, m) {
				t.Errorf("got %v, want %v", got, m)
			}
			want, err := proto.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			if len(want) != data.Len() {
				t.Errorf("encoded in %d bytes, standard protobuf in %d", data.Len(), len(want))
			}
			data.Free()
		})
	}
}

// gRPC lets a receiver reuse one message, which the standard codec resets.
func TestUnmarshalReplacesWhatTheMessageHeld(t *testing.T) {
	data, err := Proto.Marshal(&ddqv1.EnqueueStreamRequest{Sequence: 2})
	if err != nil {
		t.Fatal(err)
	}
	got := frame(3, 10)
	if err := Proto.Unmarshal(data, got); err != nil {
		t.Fatal(err)
	}
	if got.Sequence != 2 || len(got.Tasks) != 0 {
		t.Errorf("got %v, want only sequence 2", got)
	}
}

// The buffer returns to the pool before the message is used.
func TestUnmarshalCopiesBytes(t *testing.T) {
	raw, err := proto.Marshal(frame(1, 10))
	if err != nil {
		t.Fatal(err)
	}
	got := &ddqv1.EnqueueStreamRequest{}
	if err := Proto.Unmarshal(mem.BufferSlice{mem.SliceBuffer(raw)}, got); err != nil {
		t.Fatal(err)
	}
	clear(raw)
	if !proto.Equal(got, frame(1, 10)) {
		t.Errorf("message changed with the buffer: %v", got)
	}
}

func TestFramesOfSeveralBuffersAreJoined(t *testing.T) {
	raw, err := proto.Marshal(frame(4, 100))
	if err != nil {
		t.Fatal(err)
	}
	half := len(raw) / 2
	data := mem.BufferSlice{mem.SliceBuffer(raw[:half]), mem.SliceBuffer(raw[half:])}
	got := &ddqv1.EnqueueStreamRequest{}
	if err := Proto.Unmarshal(data, got); err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(got, frame(4, 100)) {
		t.Errorf("got %v", got)
	}
}

func TestOtherValuesAreRefused(t *testing.T) {
	if _, err := Proto.Marshal("text"); err == nil {
		t.Error("marshaled a string")
	}
	if err := Proto.Unmarshal(nil, new(int)); err == nil {
		t.Error("unmarshaled into an int")
	}
}

// FuzzUnmarshal: garbage is an error or a message, never a panic, and what is
// accepted encodes to what standard protobuf understands the same way.
func FuzzUnmarshal(f *testing.F) {
	for _, m := range []proto.Message{frame(0, 0), frame(2, 5), &ddqv1.Task{Id: "a", LastError: "e"}} {
		raw, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Add([]byte{0x0b, 0x0c, 0xff})
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, m := range []proto.Message{&ddqv1.EnqueueStreamRequest{}, &ddqv1.SubscribeRequest{}, &ddqv1.SubscribeResponse{}} {
			if Proto.Unmarshal(mem.BufferSlice{mem.SliceBuffer(raw)}, m) != nil {
				continue
			}
			data, err := Proto.Marshal(m)
			if err != nil {
				t.Fatalf("%T was read but not written: %v", m, err)
			}
			again := m.ProtoReflect().New().Interface()
			if proto.Unmarshal(data.Materialize(), again) != nil {
				continue // strings that are not UTF-8, which only the standard checks
			}
			// Unknown fields do not count: a tag in more bytes than it needs is
			// kept by one and normalized by the other.
			if got, want := protojson.Format(again), protojson.Format(m); got != want {
				t.Fatalf("got %v, want %v", got, want)
			}
		}
	})
}

func BenchmarkCodec(b *testing.B) {
	for name, c := range map[string]encoding.CodecV2{"generated": Proto, "standard": encoding.GetCodecV2("proto")} {
		b.Run(name, func(b *testing.B) {
			f := frame(128, 200)
			b.ReportAllocs()
			for b.Loop() {
				data, err := c.Marshal(f)
				if err != nil {
					b.Fatal(err)
				}
				if err := c.Unmarshal(data, &ddqv1.EnqueueStreamRequest{}); err != nil {
					b.Fatal(err)
				}
				data.Free()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/128, "ns/task")
		})
	}
}

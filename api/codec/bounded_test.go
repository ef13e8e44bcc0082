package codec_test

import (
	"bytes"
	"errors"
	"runtime"
	"testing"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/ddq-io/ddq/api/codec"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// allocated is how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func inOne(b []byte) mem.BufferSlice { return mem.BufferSlice{mem.SliceBuffer(b)} }

// TestManyItemsAreRefusedBeforeTheyTakeMemory has messages of 4 MB that are nothing but
// items of two bytes, also one level down, and in several pieces as they come from the wire.
func TestManyItemsAreRefusedBeforeTheyTakeMemory(t *testing.T) {
	empty := bytes.Repeat([]byte{0x0a, 0}, 2_000_000)
	attributes := bytes.Repeat([]byte{0x32, 0}, 2_000_000)
	nested, err := proto.Marshal(&ddqv1.EnqueueBatchRequest{Tasks: []*ddqv1.EnqueueRequest{{Topic: "t"}}})
	if err != nil {
		t.Fatal(err)
	}
	one := append([]byte{0x0a, 0x80, 0x92, 0xf4, 0x01}, attributes...) // a field of 4,000,000 bytes
	for name, c := range map[string]struct {
		message proto.Message
		data    mem.BufferSlice
	}{
		"tasks of a batch":          {new(ddqv1.EnqueueBatchRequest), inOne(empty)},
		"tasks of a frame":          {new(ddqv1.EnqueueStreamRequest), inOne(bytes.Repeat([]byte{0x12, 0}, 2_000_000))},
		"attributes":                {new(ddqv1.EnqueueRequest), inOne(attributes)},
		"attributes within a batch": {new(ddqv1.EnqueueBatchRequest), inOne(append(nested, one...))},
		"in pieces":                 {new(ddqv1.EnqueueBatchRequest), append(inOne(empty[:1_000_001]), inOne(empty[1_000_001:])...)},
	} {
		var err error
		n := allocated(func() { err = codec.Bounded.Unmarshal(c.data, c.message) })
		if !errors.Is(err, codec.ErrTooManyItems) {
			t.Errorf("%s: got %v", name, err)
		}
		if n > 8<<20 { // the pieces put together
			t.Errorf("%s: %d bytes were allocated for a message of %d", name, n, c.data.Len())
		}
	}
}

func TestBoundedTakesWhatProtoTakes(t *testing.T) {
	want := &ddqv1.EnqueueBatchRequest{}
	for range 1000 {
		task := &ddqv1.EnqueueRequest{Topic: "t", Payload: bytes.Repeat([]byte{0x0a, 0}, 100)} // not items
		for range 32 {
			task.Attributes = append(task.Attributes, &ddqv1.Attribute{Key: "key", Value: "value"})
		}
		want.Tasks = append(want.Tasks, task)
	}
	data, err := proto.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	got := new(ddqv1.EnqueueBatchRequest)
	if err := codec.Bounded.Unmarshal(inOne(data), got); err != nil || !proto.Equal(got, want) {
		t.Errorf("unmarshaled %d tasks: %v", len(got.Tasks), err)
	}
	for _, malformed := range [][]byte{bytes.Repeat([]byte{0xff}, 200_000), append(data, 0x0a)} {
		if err := codec.Bounded.Unmarshal(inOne(malformed), got); err == nil || errors.Is(err, codec.ErrTooManyItems) {
			t.Errorf("%d malformed bytes: got %v", len(malformed), err)
		}
	}
}

package codec

import (
	"fmt"
	"slices"
	"testing"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/ddq-io/ddq/api/ddqv1"
)

func TestItemsAreCountedOnEveryLevel(t *testing.T) {
	task := &ddqv1.EnqueueRequest{Topic: "t", Id: "a", Attributes: []*ddqv1.Attribute{{Key: "a", Value: "1"}, {Key: "b"}}}
	list := func(n int) *structpb.Value { // a list in a list, n deep
		v := structpb.NewStringValue("x")
		for range n {
			v = structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{v}})
		}
		return v
	}
	for _, c := range []struct {
		m    proto.Message
		want int
	}{
		{task, 2},
		{&ddqv1.EnqueueBatchRequest{Tasks: []*ddqv1.EnqueueRequest{task, task, {}}}, 3 + 4},
		{&ddqv1.DeleteTasksRequest{Filter: &ddqv1.TaskFilter{Attributes: []*ddqv1.AttributeFilter{{}, {}}}}, 2},
		{list(5), 5},
		{&structpb.Struct{Fields: map[string]*structpb.Value{"a": list(2), "b": list(0)}}, 2 + 2},
	} {
		data, err := proto.Marshal(c.m)
		if err != nil {
			t.Fatal(err)
		}
		left := 100
		new(shapes).of(c.m.ProtoReflect().Descriptor()).count(data, &left)
		if got := 100 - left; got != c.want {
			t.Errorf("%T: %d items, want %d", c.m, got, c.want)
		}
	}
}

func TestMessagesWithoutItemsHaveNoShape(t *testing.T) {
	known := new(shapes)
	for range 2 {
		if s := known.of(new(timestamppb.Timestamp).ProtoReflect().Descriptor()); s != nil {
			t.Errorf("a moment has %d fields to look at", len(s.fields))
		}
	}
}

// BenchmarkUnmarshal has frames in pieces of 16 KiB, as they come from the wire.
func BenchmarkUnmarshal(b *testing.B) {
	for _, tasks := range []int{128, 1000} { // below and above what is counted
		encoded, err := proto.Marshal(frame(tasks, 200))
		if err != nil {
			b.Fatal(err)
		}
		var data mem.BufferSlice
		for piece := range slices.Chunk(encoded, 16<<10) {
			data = append(data, mem.SliceBuffer(piece))
		}
		for name, c := range map[string]encoding.CodecV2{"proto": Proto, "bounded": Bounded} {
			b.Run(fmt.Sprintf("%s-%d", name, tasks), func(b *testing.B) {
				for b.Loop() {
					if err := c.Unmarshal(data, new(ddqv1.EnqueueStreamRequest)); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(tasks), "ns/task")
			})
		}
	}
}

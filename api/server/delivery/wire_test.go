package delivery

import (
	"testing"
	"time"

	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/store"
)

// Trace contexts of a frame lie in one piece: each task has its own, and those without none, also in
// room that another frame had before.
func TestEachTaskOfAFrameHasItsOwnTrace(t *testing.T) {
	one := &store.Trace{ID: store.TraceID{1}, Span: [8]byte{2}, Flags: 1, State: "a=1"}
	other := &store.Trace{ID: store.TraceID{15: 0xff}, Span: [8]byte{7: 0xe}}
	const oneText, otherText = "00-01000000000000000000000000000000-0200000000000000-01", "00-000000000000000000000000000000ff-000000000000000e-00"
	var slab wireSlab
	for _, frame := range [][]*store.Trace{{nil, one, nil, other, one}, {other}, {nil, nil}, {one, nil}} {
		ds := make([]Handed, len(frame))
		for i, trace := range frame {
			ds[i].Delivery = subscription.Delivery{Task: &store.Task{ID: "a", Trace: trace}}
		}
		for i, d := range slab.deliveries(ds, time.Now()) {
			text, state := "", ""
			switch frame[i] {
			case one:
				text, state = oneText, "a=1"
			case other:
				text = otherText
			}
			if d.Task.Traceparent != text || d.Task.Tracestate != state {
				t.Errorf("task %d of %d has %q with %q, want %q with %q", i, len(frame), d.Task.Traceparent, d.Task.Tracestate, text, state)
			}
		}
		slab.clear()
	}
}

// The text of all traceparents is one allocation.
func TestTracesOfAFrameTakeOneAllocation(t *testing.T) {
	frame := func(trace *store.Trace) float64 {
		ds := make([]Handed, 128)
		for i := range ds {
			ds[i].Delivery = subscription.Delivery{Task: &store.Task{ID: "a", Trace: trace}}
		}
		var slab wireSlab
		return testing.AllocsPerRun(10, func() {
			slab.clear()
			slab.deliveries(ds, time.Time{})
		})
	}
	without, with := frame(nil), frame(&store.Trace{ID: store.TraceID{1}, Span: [8]byte{2}})
	if with-without > 1 {
		t.Errorf("%v allocations with traces, %v without", with, without)
	}
}

package record

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/ddq-io/ddq/store"
)

// A task without a trace context takes what it took before there were any, and records of then are
// read.
func TestBodyWithoutATraceIsAsItWas(t *testing.T) {
	before := []byte("\x0a\x02hi\x10\x05\x20\x04") // payload, creation time, retries
	want := store.Task{Payload: []byte("hi"), Created: 5, MaxRetries: 3}
	got, err := AppendBody(nil, &want)
	if err != nil || !bytes.Equal(got, before) {
		t.Errorf("written as %x, %v; want %x", got, err, before)
	}
	var read store.Task
	if err := DecodeBody(before, &read); err != nil || !reflect.DeepEqual(read, want) {
		t.Errorf("read as %+v, %v", read, err)
	}
}

func TestTraceTakes28Bytes(t *testing.T) {
	task := store.Task{Payload: []byte("hi")}
	without, err := AppendBody(nil, &task)
	if err != nil {
		t.Fatal(err)
	}
	task.Trace = &store.Trace{ID: [16]byte{1}, Span: [8]byte{2}, Flags: 1}
	with, err := AppendBody(nil, &task)
	if err != nil || len(with)-len(without) != 28 {
		t.Errorf("%d bytes, %v", len(with)-len(without), err)
	}
	var read store.Task
	if err := DecodeBody(with, &read); err != nil || !reflect.DeepEqual(read.Trace, task.Trace) {
		t.Errorf("read as %+v, %v", read.Trace, err)
	}
}

// A trace is not worth a task.
func TestTraceThatIsCutShortIsNone(t *testing.T) {
	body, err := (&Body{Payload: []byte("hi"), Trace: make([]byte, traceBytes-1)}).MarshalVT()
	if err != nil {
		t.Fatal(err)
	}
	var read store.Task
	if err := DecodeBody(body, &read); err != nil || read.Trace != nil || string(read.Payload) != "hi" {
		t.Errorf("read as %+v, %v", read, err)
	}
}

// An attempt from before there were due times and traces of attempts is read, and one with both is 25
// bytes longer.
func TestAttemptsOfBeforeAreRead(t *testing.T) {
	before := []byte("\x0a\x0a\x08\x01\x12\x01w\x28\x05\x30\x01\x3a\x00") // number, worker, ended, outcome, no error
	before[1] = byte(len(before) - 2)
	want := store.Attempt{Number: 1, Worker: "w", Ended: 5, Outcome: store.OutcomeAcked}
	got, err := DecodeHistory(before)
	if err != nil || len(got.Attempts) != 1 || got.Attempts[0] != want {
		t.Fatalf("read as %+v, %v", got, err)
	}
	short, err := AppendHistory(nil, got)
	if err != nil {
		t.Fatal(err)
	}
	want.Due, want.Trace = 1_900_000_000_000, store.TraceID{1, 15: 2}
	long, err := AppendHistory(nil, store.History{Attempts: []store.Attempt{want}})
	if err != nil || len(long)-len(short) != 25 {
		t.Errorf("%d bytes, %v", len(long)-len(short), err)
	}
	if read, err := DecodeHistory(long); err != nil || read.Attempts[0] != want {
		t.Errorf("read as %+v, %v", read, err)
	}
}

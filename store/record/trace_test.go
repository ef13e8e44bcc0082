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

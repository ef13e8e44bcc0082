package record

import (
	"bytes"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/ddq-io/ddq/store"
)

// What can be read is written and read again as the same.
func FuzzDecodeBody(f *testing.F) {
	for _, t := range []*store.Task{
		{Payload: []byte("hello"), Created: 1, MaxRetries: -1},
		{MaxRetries: 3, Backoff: &store.Backoff{Kind: store.BackoffLinear, Base: time.Second, Max: time.Hour, Jitter: 20}},
		{Attributes: []store.Attribute{{Key: "k", Value: "v"}, {Key: "\x00", Value: ""}}},
		{StepOf: &store.StepOf{Workflow: "w", Name: "s", Copy: 1, Try: 1, Inputs: []store.StepInput{{Step: "r", End: store.StepDone, Size: 1, Result: []byte("x")}}}},
	} {
		b, err := AppendBody(nil, t)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte{0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f}) // a payload of 4 GiB, it says
	long, err := (&Body{HandlerTimeoutMs: math.MaxInt64, Backoff: &Backoff{BaseMs: math.MinInt64, MaxMs: math.MaxInt64/1_000_000 + 1}}).MarshalVT()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(long) // more milliseconds than a time.Duration can say
	f.Fuzz(func(t *testing.T, b []byte) {
		var task, again store.Task
		if DecodeBody(b, &task) != nil {
			return
		}
		stored, err := AppendBody([]byte("before"), &task)
		if err != nil {
			return // text that is no UTF-8
		}
		if err := DecodeBody(stored[len("before"):], &again); err != nil {
			t.Fatalf("%+v cannot be read again: %v", task, err)
		}
		if len(task.Payload) == 0 {
			task.Payload, again.Payload = nil, nil
		}
		if !reflect.DeepEqual(task, again) {
			t.Errorf("%+v became %+v", task, again)
		}
	})
}

func FuzzDecodeTopic(f *testing.F) {
	b, err := EncodeTopic(store.Topic{Name: "mail", Shards: 8, Visibility: time.Minute, MaxDelay: 87600 * time.Hour, Version: 3, EnqueuePaused: true})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte{0x10, 0x80})
	long, err := (&Topic{
		MaxDelayMs: math.MaxInt64, RampMs: math.MinInt64, VisibilityTimeoutMs: math.MaxInt64/1_000_000 + 1,
		Limits: &Limits{Rate: &Rate{Count: 1, PeriodMs: math.MaxInt64}},
	}).MarshalVT()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(long)
	f.Fuzz(func(t *testing.T, b []byte) {
		topic, err := DecodeTopic(b)
		if err != nil {
			return
		}
		stored, err := EncodeTopic(topic)
		if err != nil {
			return
		}
		again, err := DecodeTopic(stored)
		if err != nil {
			t.Fatalf("%+v cannot be read again: %v", topic, err)
		}
		if twice, err := EncodeTopic(again); err != nil || !bytes.Equal(twice, stored) {
			t.Errorf("%+v became %+v, %v", topic, again, err)
		}
	})
}

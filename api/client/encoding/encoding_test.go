package encoding

import (
	"bytes"
	"reflect"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

type mail struct {
	To   string            `json:"to"`
	Tags map[string]string `json:"tags,omitempty"`
}

func TestJSONReadsWhatItWrote(t *testing.T) {
	want := mail{To: "ann", Tags: map[string]string{"a": "1", "b": "2", "c": "3"}}
	payload, err := JSON[mail]{}.Encode(want)
	if text := `{"to":"ann","tags":{"a":"1","b":"2","c":"3"}}`; err != nil || string(payload) != text {
		t.Fatalf("wrote %s, %v; want %s", payload, err, text)
	}
	if got, err := (JSON[mail]{}).Decode(payload); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v, %v; want %+v", got, err, want)
	}
}

func TestJSONOfAnotherShape(t *testing.T) {
	for payload, want := range map[string]bool{
		`{"to":"ann","later":true}`: true, // of a newer producer
		`{}`:                        true,
		``:                          false,
		`{"to":"ann"`:               false,
		`{"to":"ann"} x`:            false,
		`{"to":17}`:                 false,
		"\xff\x00":                  false,
	} {
		if _, err := (JSON[mail]{}).Decode([]byte(payload)); (err == nil) != want {
			t.Errorf("%q: %v", payload, err)
		}
	}
}

func TestProtoReadsWhatItWrote(t *testing.T) {
	want, err := structpb.NewStruct(map[string]any{"to": "ann", "n": 1, "more": []any{"a", "b"}, "last": nil})
	if err != nil {
		t.Fatal(err)
	}
	payload, err := Proto[*structpb.Struct]{}.Encode(want)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := (Proto[*structpb.Struct]{}).Decode(payload); err != nil || !proto.Equal(got, want) {
		t.Errorf("read %v, %v; want %v", got, err, want)
	}
	for range 100 { // the order of a map is another one each time
		if again, err := (Proto[*structpb.Struct]{}).Encode(want); err != nil || !bytes.Equal(again, payload) {
			t.Fatalf("wrote %x, %v, and %x before", again, err, payload)
		}
	}
}

func TestProtoOfNothingAndOfGarbage(t *testing.T) {
	if payload, err := (Proto[*structpb.Struct]{}).Encode(nil); err != nil || len(payload) != 0 {
		t.Errorf("nil is %x, %v", payload, err)
	}
	if got, err := (Proto[*structpb.Struct]{}).Decode(nil); err != nil || got == nil || len(got.Fields) != 0 {
		t.Errorf("no payload is %v, %v", got, err)
	}
	if _, err := (Proto[*structpb.Struct]{}).Decode([]byte("{}")); err == nil {
		t.Error("text was read as a message")
	}
}

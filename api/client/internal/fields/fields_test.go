package fields

import (
	"reflect"
	"testing"
	"time"
)

type Inner struct {
	Wait time.Duration `json:"wait_ms"`
}

type record struct {
	Name string `json:"name,omitempty"`
	Inner
	At   time.Time `json:"at"`
	Body []byte    `json:"body,omitempty"`
}

func TestWriteAndRead(t *testing.T) {
	at := time.UnixMilli(1_900_000_000_250).UTC()
	for _, c := range []struct {
		v    record
		want string
	}{
		{record{}, `{"wait_ms":0,"at":""}`},
		{record{"a", Inner{time.Second}, at, []byte("text")}, `{"name":"a","wait_ms":1000,"at":"2030-03-17T17:46:40.250Z","body":"text"}`},
		{record{"", Inner{}, at, []byte{0xff}}, `{"wait_ms":0,"at":"2030-03-17T17:46:40.250Z","body_base64":"/w=="}`},
	} {
		b, err := Write(c.v)
		if err != nil || string(b) != c.want {
			t.Errorf("got %s, %v\nwant %s", b, err, c.want)
		}
		got := record{Name: "what is absent becomes zero"}
		if err := Read(b, &got); err != nil || !reflect.DeepEqual(got, c.v) {
			t.Errorf("got %+v, %v from %s", got, err, b)
		}
	}
}

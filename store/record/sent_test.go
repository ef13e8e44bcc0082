package record

import (
	"reflect"
	"testing"
	"time"

	"github.com/ddq-io/ddq/store"
)

func TestSentTaskIsWholeWhereItArrives(t *testing.T) {
	full := &store.Task{
		ID: "full", Payload: []byte("payload"), Attributes: []store.Attribute{{Key: "a", Value: "b"}}, Due: 7, Created: 5, Expires: 9,
		Visibility: time.Minute, HandlerTimeout: time.Second, MaxRetries: 3, Backoff: &store.Backoff{Kind: store.BackoffFixed, Base: time.Second},
		Traits: &store.Traits{Priority: 3, OrderingKey: "o"}, Fingerprint: 1 << 63, Cause: &store.Cause{Topic: "orders", ID: "17"},
		Key: &store.Key{Text: "k", Window: time.Hour, OnConflict: store.KeyReplace, SameRepeats: true},
	}
	for _, want := range []*store.Task{full, {ID: "bare", MaxRetries: -1}} {
		b, err := EncodeSent(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeSent(b)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
	}
	if _, err := DecodeSent([]byte{0xff}); err == nil {
		t.Error("garbage is a task")
	}
}

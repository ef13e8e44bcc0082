package record

import (
	"bytes"
	"testing"

	"github.com/ddq-io/ddq/store"
)

func TestKeptSaysWhetherTheValueIsEncrypted(t *testing.T) {
	for _, e := range []store.JournalEntry{{Value: []byte("plain")}, {Value: []byte("encrypted"), Encrypted: true}, {}} {
		var got store.JournalEntry
		DecodeKept(AppendKept(nil, 1764170000000, &e), &got)
		if got.Kept != 1764170000000 || got.Encrypted != e.Encrypted || !bytes.Equal(got.Value, e.Value) {
			t.Errorf("%+v is %+v when read", e, got)
		}
	}
}

func TestBodyKeepsWhetherItIsEncrypted(t *testing.T) {
	task := &store.Task{Payload: bytes.Repeat([]byte{7}, 40), Encrypted: true}
	encrypted, err := AppendBody(nil, task)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := AppendBody(nil, &store.Task{Payload: task.Payload})
	if err != nil {
		t.Fatal(err)
	}
	if len(encrypted) != len(plain)+1 {
		t.Errorf("a encrypted payload takes %d bytes more, want 1", len(encrypted)-len(plain))
	}
	var got store.Task
	if err := DecodeBody(encrypted, &got); err != nil || !got.Encrypted || !bytes.Equal(got.Payload, task.Payload) {
		t.Errorf("read %+v, %v", got, err)
	}
	if err := DecodeBody(plain, &got); err != nil || got.Encrypted || !bytes.Equal(got.Payload, task.Payload) {
		t.Errorf("then read a plain one as %+v, %v", got, err)
	}
}

package record

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/ddq-io/ddq/store"
)

func FuzzDecodeIndexed(f *testing.F) {
	f.Add(AppendIndexed(nil, []store.Attribute{{Key: "tenant", Value: "acme"}, {Key: "\x00", Value: strings.Repeat("v", 1024)}}))
	f.Add([]byte{1, 'k', 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		attributes, err := DecodeIndexed(b)
		if err != nil {
			return
		}
		if again := AppendIndexed(nil, attributes); !bytes.Equal(again, b) {
			t.Errorf("%q became %q", b, again)
		}
	})
}

// What is an entry is written again as the same, and found where its range says.
func FuzzIndexEntry(f *testing.F) {
	f.Add("tenant", "acme", "a", "ac")
	f.Add("tenant", strings.Repeat("\xff", 200), "\x00", "\xff\xff")
	f.Add("\xff", "a\x00b", "0190f3a4-7c1e-7b3a-9d52-3f6f0e8a1b2c", "")
	text := func(b []byte, id string) []byte { return append(b, id...) }
	f.Fuzz(func(t *testing.T, name, value, id, other string) {
		if len(name) > store.MaxIndexName {
			return
		}
		want := store.NewIndexEntry(value, id)
		key := append(AppendIndexValue(AppendIndexName(nil, name), want), id...)
		gotName, got, gotID, ok := CutIndexEntry(key)
		if got.ID = string(gotID); !ok || gotName != name || got != want {
			t.Fatalf("%q was read as %q %+v", key, gotName, got)
		}
		for _, prefix := range []bool{false, true} {
			for _, asked := range []string{value, other} {
				q := store.IndexQuery{Name: name, Value: asked, Prefix: prefix}
				from, to := IndexRange(nil, &q, text)
				in := bytes.Compare(key, from) >= 0 && bytes.Compare(key, to) < 0
				if in != q.Wants(want) {
					t.Errorf("entry %+v is in the range of %+v: %v, and wanted: %v", want, q, in, q.Wants(want))
				}
				q.After = &want
				if from, _ := IndexRange(nil, &q, text); in && bytes.Compare(key, from) >= 0 {
					t.Errorf("entry %+v is behind itself", want)
				}
			}
		}
	})
}

// The attributes of an encoded body are those of the task.
func TestBodyAttributes(t *testing.T) {
	task := &store.Task{
		Payload: []byte("payload"), Created: 1, Backoff: &store.Backoff{Kind: store.BackoffFixed, Base: 1e9}, Traits: &store.Traits{Priority: 1},
		Attributes: []store.Attribute{{Key: "path", Value: "/a"}, {Key: "color", Value: "red"}, {Key: "tenant", Value: ""}, {Key: "path", Value: "/b"}},
	}
	b, err := AppendBody(nil, task)
	if err != nil {
		t.Fatal(err)
	}
	set := store.NewIndexSet("tenant", "path", "absent")
	if got, want := BodyAttributes(b, set), set.Of(task.Attributes); !reflect.DeepEqual(got, want) || len(got) != 3 {
		t.Errorf("got %v, want %v", got, want)
	}
	for i := range b {
		BodyAttributes(b[:i], set) // nothing goes wrong
	}
}

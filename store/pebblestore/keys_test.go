package pebblestore

import (
	"bytes"
	"cmp"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/ddq-io/ddq/store"
)

func TestIDsComeBackAsTheyWere(t *testing.T) {
	id := uuid.Must(uuid.NewV7()).String()
	for _, id := range []string{
		"", "a", "\x00", "\x01", "\xff", id, strings.ToUpper(id), strings.ReplaceAll(id, "-", ""), "{" + id + "}", "urn:uuid:" + id,
		id[:35], id + "0", "0123456_-0123-0123-0123-0123456789ab", strings.Repeat("x", 128), strings.Repeat("-", 36),
	} {
		got, ok := decodeID(appendID(nil, id))
		if !ok || got != id {
			t.Errorf("id %q came back as %q, %v", id, got, ok)
		}
	}
	if packed := appendID(nil, id); len(packed) != 17 {
		t.Errorf("a UUID takes %d bytes, want 17", len(packed))
	}
}

func FuzzIDKey(f *testing.F) {
	f.Add("a", "b")
	f.Add(uuid.NewString(), uuid.NewString())
	f.Add(strings.Repeat("0", 36), "00000000-0000-0000-0000-000000000000")
	f.Fuzz(func(t *testing.T, a, b string) {
		keyA, keyB := appendID(nil, a), appendID(nil, b)
		if got, ok := decodeID(keyA); !ok || got != a {
			t.Fatalf("id %q came back as %q, %v", a, got, ok)
		}
		if (a == b) != bytes.Equal(keyA, keyB) {
			t.Fatalf("ids %q and %q have keys %x and %x", a, b, keyA, keyB)
		}
	})
}

func FuzzTimeKey(f *testing.F) {
	f.Add(int64(1), "a", int64(2), "b")
	f.Add(int64(-1), "", int64(0), "\x00")
	f.Add(int64(5), "a", int64(5), "a\x00")
	f.Fuzz(func(t *testing.T, dueA int64, a string, dueB int64, b string) {
		keyA := appendTimeKey(nil, 7, tablePending, store.Millis(dueA), a)
		keyB := appendTimeKey(nil, 7, tablePending, store.Millis(dueB), b)
		due, id, ok := decodeTimeKey(keyA)
		if !ok || int64(due) != dueA || id != a {
			t.Fatalf("%d %q came back as %d %q, %v", dueA, a, due, id, ok)
		}
		want := cmp.Or(cmp.Compare(dueA, dueB), cmp.Compare(a, b))
		if got := bytes.Compare(keyA, keyB); got != want {
			t.Fatalf("keys of (%d, %q) and (%d, %q) compare as %d, want %d", dueA, a, dueB, b, got, want)
		}
	})
}

// FuzzShards proves that no key of one shard lies among those of another.
func FuzzShards(f *testing.F) {
	f.Add(uint32(1), uint32(2), int64(0), "id")
	f.Add(uint32(0xff), uint32(0x100), int64(-1), "\xff\xff")
	f.Fuzz(func(t *testing.T, a, b uint32, due int64, id string) {
		for _, index := range []table{tableTasks, tablePending, tableHolds, tableDead, tableDone, tableTrim} {
			lower, upper := appendPrefix(nil, b, index), appendPrefix(nil, b, index+1)
			for _, own := range []table{tableTasks, tablePending, tableHolds, tableDead, tableDone, tableTrim} {
				for _, key := range [][]byte{appendIDKey(nil, a, own, id), appendTimeKey(nil, a, own, store.Millis(due), id)} {
					inside := bytes.Compare(key, lower) >= 0 && bytes.Compare(key, upper) < 0
					if inside != (a == b && own == index) {
						t.Fatalf("key %x of shard %d table %c, looked for in shard %d table %c", key, a, own, b, index)
					}
				}
			}
		}
	})
}

func FuzzShardKey(f *testing.F) {
	f.Add("mail", 0)
	f.Add("m", 0x61696c00)
	f.Fuzz(func(t *testing.T, topic string, n int) {
		n &= 0x7fffffff
		if len(topic) > 1000 {
			return
		}
		got, ok := decodeShardKey(shardKey(store.Shard{Topic: topic, N: n}))
		if !ok || got.Topic != topic || got.N != n {
			t.Fatalf("shard %q/%d came back as %v, %v", topic, n, got, ok)
		}
	})
}

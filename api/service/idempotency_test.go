package service

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

func TestKeyedIDsLieWithTheirKey(t *testing.T) {
	seen := make(map[string]bool)
	spread := make([]int, 8)
	for i := range 4000 {
		key := fmt.Sprint("order ", i/2)
		id := place.KeyedID(key)
		if seen[id] || !place.IsKeyedID(id) || place.IsUUIDv7(id) {
			t.Fatalf("id %q of key %q", id, key)
		}
		seen[id] = true
		for _, shards := range []int{1, 4, 8, 255} {
			if a, b := place.ShardOf(id, shards), place.ShardOf(place.KeyedID(key), shards); a != b {
				t.Fatalf("ids of one key lie in shards %d and %d of %d", a, b, shards)
			}
		}
		spread[place.ShardOf(id, 8)]++
		if err := checkIdempotency(&store.Task{ID: id, Key: &store.Key{Text: key}}); err != nil {
			t.Fatal(err)
		}
	}
	for shard, n := range spread {
		if n < 350 || n > 650 {
			t.Errorf("shard %d of 8 has %d of 4,000 tasks", shard, n)
		}
	}
}

func TestKeysAreChecked(t *testing.T) {
	for _, c := range []struct {
		key   store.Key
		id    string
		field string
	}{
		{store.Key{}, "", "idempotency.key"},
		{store.Key{Text: strings.Repeat("k", 129)}, "", "idempotency.key"},
		{store.Key{Text: "a\nb"}, "", "idempotency.key"},
		{store.Key{Text: "a\xff"}, "", "idempotency.key"},
		{store.Key{Text: "k", Window: -1}, "", "idempotency.window_ms"},
		{store.Key{Text: "k", Window: place.MaxWindow + 1}, "", "idempotency.window_ms"},
		{store.Key{Text: "k"}, "order-7", "id"},
		{store.Key{Text: "k"}, place.KeyedID("l"), "id"},
	} {
		if err := checkIdempotency(&store.Task{ID: c.id, Key: &c.key}); err == nil || err.Kind != problem.Invalid || err.Field != c.field {
			t.Errorf("key %+v, id %q: %v", c.key, c.id, err)
		}
	}
	for _, key := range []string{"k", strings.Repeat("k", 128), "Bestellung №7 ü"} {
		if err := checkIdempotency(&store.Task{Key: &store.Key{Text: key}}); err != nil {
			t.Errorf("key %q: %v", key, err)
		}
	}
}

package place

import (
	"testing"
)

func TestIDsOfAKeyRise(t *testing.T) {
	last := ""
	for range 10_000 {
		id := KeyedID("a")
		if id <= last || !MadeFor(id, "a") {
			t.Fatalf("%s follows %s", id, last)
		}
		last = id
	}
}

func TestIDLiesInTheShardThatItIsMadeFor(t *testing.T) {
	sum := []byte("fourteen bytes")
	for _, shards := range []int{1, 2, 7, 64, 1024} {
		for n := range shards {
			id := IDIn(sum, n, shards)
			if at := ShardOf(id, shards); at != n || !IsKeyedID(id) || id != IDIn(sum, n, shards) {
				t.Fatalf("%s is in shard %d of %d, want %d", id, at, shards, n)
			}
		}
	}
}

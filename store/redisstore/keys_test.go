package redisstore

import (
	"fmt"
	"testing"

	"github.com/ddq-io/ddq/store"
)

func TestKeyCacheIsBounded(t *testing.T) {
	var c keyCache
	for i := range cachedKeys + 10 {
		shard := store.Shard{Topic: fmt.Sprint("gone-", i), N: 1}
		if keys, want := c.of(shard), newShardKeys(shard); *keys != *want {
			t.Fatalf("keys of %v are %q", shard, keys)
		}
	}
	n := 0
	c.shards.Range(func(any, any) bool { n++; return true })
	if n > cachedKeys {
		t.Errorf("%d shards are kept, want at most %d", n, cachedKeys)
	}
}

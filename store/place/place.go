package place

import (
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/ddq-io/ddq/store"
)

// ShardOf places an id: shards of a topic are numbered from 0. It is part of what
// is stored: another answer would make tasks unfindable.
//
// Of a version 7 UUID only the millisecond counts. What is made together lies
// together then, so that the tasks of one small frame, and their holds and acks
// after it, are one store call instead of one for each shard; over time such ids
// spread as evenly as any. Of the id of a task with an idempotency key the hash of the
// key counts, so that all tasks of a key share a shard. Every other id is placed by all
// of it.
func ShardOf(id string, shards int) int {
	switch {
	case IsUUIDv7(id):
		id = id[:uuidMillis]
	case IsKeyedID(id):
		id = id[keyedHash : keyedHash+keyedHashLen]
	}
	return int(HashID(id) % uint64(shards))
}

const (
	uuidLen     = 36
	uuidMillis  = 13 // 12 hexadecimal digits of the millisecond, and a dash
	uuidVersion = 14 // the digit of the version
)

// IsUUIDv7 reports whether id looks like a version 7 UUID in its usual spelling.
// What only looks like one is placed by its first digits all the same.
func IsUUIDv7(id string) bool {
	return len(id) == uuidLen && id[uuidVersion] == '7' &&
		id[8] == '-' && id[13] == '-' && id[18] == '-' && id[23] == '-'
}

// Shards are the shards that may have tasks, by number.
func Shards(t *store.Topic) []store.Shard {
	var shards []store.Shard
	spans := t.Spans()
	for i := len(spans) - 1; i >= 0; i-- {
		for n := range spans[i].Shards {
			shards = append(shards, store.Shard{Topic: t.Name, N: spans[i].First + n})
		}
	}
	return shards
}

// In is the shard of an id among those of a generation.
func In(t *store.Topic, span store.Span, id string) store.Shard {
	return store.Shard{Topic: t.Name, N: span.First + ShardOf(id, span.Shards)}
}

// Candidates are the shards that may have a task, the likeliest first.
func Candidates(t *store.Topic, id string) []store.Shard {
	spans := t.Spans()
	places := make([]store.Shard, len(spans))
	for i, span := range spans {
		places[i] = In(t, span, id)
	}
	return places
}

// Resharding reports whether a topic has shards from before that may have tasks.
func Resharding(t *store.Topic) bool { return t.Former[0].Shards > 0 }

// Compare orders shards by topic, then by number.
func Compare(a, b store.Shard) int {
	if c := strings.Compare(a.Topic, b.Topic); c != 0 {
		return c
	}
	return a.N - b.N
}

// HashID is the hash that places ids.
func HashID(id string) uint64 { return xxhash.Sum64String(id) }

package redisstore

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/redisstore/conn"
)

const (
	// topicsKey is the hash of all topics' configurations.
	topicsKey = "ddq:topics"

	// schema is the version of the layout of a shard's keys. A shard is of the first one
	// until it gets a cell, or a task that tells one: see lua/parcels.lua. It is of the third from the
	// first message in a queue, or the first receipt, on.
	schema, newestSchema = 1, 3

	// guard is the member that keeps sets from being stored as lists (see doc.go).
	// No id is stored with this first byte.
	guard = "\xff----------------------------------------------------------------"
)

// shardKeys are the keys of a shard, in the order in which scripts expect them.
type shardKeys [len(shardNouns)]string

// shardNouns are the ends of the keys of a shard. Scripts know each key by its noun, in
// capital letters.
var shardNouns = [...]string{
	"owner", "tasks", "data", "running", "notes", "dlq", "done", "kept", "traits", "lanes", "history", "marks", "looks", "attrs", "index", "log", "order",
	"tells", "in", "cells", "parts", "wakes", "lists", "out", "queues",
}

const (
	ownerKey = iota
	tasksKey
	dataKey
	runningKey
	notesKey
	dlqKey
	doneKey
	keptKey
	traitsKey
	lanesKey
	historyKey
	marksKey // of idempotency keys
	looksKey
	attrsKey // of tasks, those that are indexed
	indexKey
	logKey
	orderKey
	tellsKey
	inKey
	cellsKey
	partsKey
	wakesKey
	listsKey
	outKey
	queuesKey
)

// of returns the keys that a script takes.
func (k *shardKeys) of(lua *conn.Script) []string { return k.pick(lua.Keys...) }

func newShardKeys(s store.Shard) *shardKeys {
	prefix := "ddq:{" + s.Topic + ":" + strconv.Itoa(s.N) + "}:"
	var keys shardKeys
	for i, noun := range shardNouns {
		keys[i] = prefix + noun
	}
	return &keys
}

// cachedKeys is how many shards' keys are kept: about 1.5 KB each.
const cachedKeys = 1 << 15

// keyCache keeps the keys of shards, because making them costs more than most of a call.
// It forgets all of them when there are too many: nobody tells which topics are deleted.
// The zero value is empty.
type keyCache struct {
	shards sync.Map // store.Shard -> *shardKeys
	size   atomic.Int64
}

func (c *keyCache) of(shard store.Shard) *shardKeys {
	shard = shard.Name()
	if keys, ok := c.shards.Load(shard); ok {
		return keys.(*shardKeys)
	}
	if c.size.Add(1) > cachedKeys {
		c.size.Store(1)
		c.shards.Clear()
	}
	keys, _ := c.shards.LoadOrStore(shard, newShardKeys(shard))
	return keys.(*shardKeys)
}

// pick returns some of the keys.
func (k *shardKeys) pick(which ...int) []string {
	keys := make([]string, len(which))
	for i, n := range which {
		keys[i] = k[n]
	}
	return keys
}

// sessionKey is the key of a node's session.
func sessionKey(node string) string { return "ddq:node:{" + node + "}" }

// inLimits reports whether a key is one of limits, by a noun of these.
func inLimits(key string, nouns ...string) bool {
	return slices.ContainsFunc(nouns, func(noun string) bool { return strings.Contains(key, "}:"+noun+":") })
}

// typeOf is the type that ddq gives a key; empty when it is not known.
func typeOf(key string) string {
	switch {
	case strings.Contains(key, "}:queues:"):
		return "stream"
	case key == topicsKey, strings.HasPrefix(key, "ddq:node:"), strings.HasPrefix(key, registryTag+"kind:"), inLimits(key, "waiting", "turns", "line", "line-turns", "calls"):
		return "hash"
	case inLimits(key, "held"):
		return "zset"
	case inLimits(key, "rate"), key == changesKey, key == limitsKey:
		return "string"
	}
	switch key[strings.LastIndexByte(key, ':')+1:] {
	case "owner", "data", "running", "notes", "traits", "history", "marks", "attrs", "tells", "cells", "parts":
		return "hash"
	case "tasks", "dlq", "done", "kept", "lanes", "looks", "index", "order", "wakes", "lists", "queues":
		return "zset"
	case "log", "in", "out":
		return "stream"
	}
	return ""
}

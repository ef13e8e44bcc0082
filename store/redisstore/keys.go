package redisstore

import (
	"strconv"

	"github.com/ddq-io/ddq/store"
)

const (
	// topicsKey is the hash of all topics' configurations.
	topicsKey = "ddq:topics"

	// schema is the version of the layout of a shard's keys.
	schema = 1

	// guard is the member that keeps sets from being stored as lists (see doc.go).
	// No id is stored with this first byte.
	guard = "\xff----------------------------------------------------------------"
)

// shardKeys are the keys of a shard, in the order in which scripts expect them.
type shardKeys [17]string

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
)

func newShardKeys(s store.Shard) *shardKeys {
	prefix := "ddq:{" + s.Topic + ":" + strconv.Itoa(s.N) + "}:"
	var keys shardKeys
	for i, noun := range [...]string{"owner", "tasks", "data", "running", "notes", "dlq", "done", "kept", "traits", "lanes", "history", "marks", "looks", "attrs", "index", "log", "order"} {
		keys[i] = prefix + noun
	}
	return &keys
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

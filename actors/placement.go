package actors

// shardOf places an id: shards of a topic are numbered from 0. It is part of what
// is stored: another answer would make tasks unfindable.
//
// Of a version 7 UUID only the millisecond counts. What is made together lies
// together then, so that the tasks of one small frame, and their holds and acks
// after it, are one store call instead of one for each shard; over time such ids
// spread as evenly as any. Of the id of a task with an idempotency key the hash of the
// key counts, so that all tasks of a key share a shard. Every other id is placed by all
// of it.
func shardOf(id string, shards int) int {
	switch {
	case isUUIDv7(id):
		id = id[:uuidMillis]
	case isKeyedID(id):
		id = id[keyedHash : keyedHash+keyedHashLen]
	}
	return int(hashID(id) % uint64(shards))
}

const (
	uuidLen     = 36
	uuidMillis  = 13 // 12 hexadecimal digits of the millisecond, and a dash
	uuidVersion = 14 // the digit of the version
)

// isUUIDv7 reports whether id looks like a version 7 UUID in its usual spelling.
// What only looks like one is placed by its first digits all the same.
func isUUIDv7(id string) bool {
	return len(id) == uuidLen && id[uuidVersion] == '7' &&
		id[8] == '-' && id[13] == '-' && id[18] == '-' && id[23] == '-'
}

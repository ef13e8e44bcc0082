// Package place says in which shard of a topic an id lies, in each generation of its
// shards. It is a part of what is stored: it never changes.
package place

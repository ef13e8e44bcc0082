package audience

import (
	"math/bits"

	"github.com/ddq-io/ddq/store/place"
)

// MaxShards is the most shards that an audience may have: a power of two.
const MaxShards = 1024

// Position is where a recipient stands among those of its shard: the bits of the hash of
// its id behind those that name the shard. It never changes, and is spread evenly over all
// numbers.
type Position uint64

// Locate returns the shard of a recipient in an audience of so many shards, and its
// position there.
func Locate(id string, shards int) (shard int, at Position) {
	hash, named := place.HashID(id), bitsOf(shards)
	return int(hash >> (64 - named)), Position(hash << named) // a shift by 64 leaves nothing
}

// bitsOf is how many bits name one of so many shards.
func bitsOf(shards int) int { return bits.Len(uint(shards)) - 1 }

package place

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/google/uuid"
)

// Tasks of one idempotency key lie in one shard, so that one script of the store
// decides between them, and so do those of one ordering key. Their ids say where: they
// are version 8 UUIDs, of the time, random bits and a part of the hash of the key, and are
// placed by the latter alone. With both keys it is the ordering key's. So an id finds its task without the key, whatever number of shards the topic has.
// A caller may make such an id, and has a request then that it can repeat.
const (
	KeyedMark    = "8ddc" // the third group: the version, and what no other UUID has but by chance
	keyedOrder   = 20     // where digits are that rise within a millisecond
	keyedHash    = 24     // where the hash of the key begins
	keyedHashLen = 8      // hexadecimal digits

	MaxKeyBytes = 128
	MaxWindow   = 366 * 24 * time.Hour
)

// IsKeyedID reports whether an id is made for a key. What only looks like one is placed
// by those digits all the same.
func IsKeyedID(id string) bool {
	return len(id) == uuidLen && id[uuidVersion:uuidVersion+len(KeyedMark)] == KeyedMark &&
		id[8] == '-' && id[13] == '-' && id[18] == '-' && id[23] == '-'
}

// KeyedID makes an id for a task with a key. Those that a node makes for one key rise.
func KeyedID(key string) string {
	id := []byte(uuid.Must(uuid.NewV7()).String()) // fails only without entropy
	copy(id[keyedOrder:], id[uuidVersion+1:uuidVersion+len(KeyedMark)])
	copy(id[uuidVersion:], KeyedMark)
	id[keyedOrder-1] = '8' // the variant; random bits would come before those that rise
	copy(id[keyedHash:], HashOfKey(key))
	return string(id)
}

// HashOfKey is the part of an id that is of its key.
func HashOfKey(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:keyedHashLen/2])
}

// MadeFor reports whether an id is one of tasks with the key.
func MadeFor(id, key string) bool {
	return IsKeyedID(id) && id[keyedHash:keyedHash+keyedHashLen] == HashOfKey(key)
}

// IDIn makes an id that lies in a shard of so many, out of 14 bytes or more that tell it from
// others: whoever knows what they are of finds the id again.
func IDIn(sum []byte, shard, shards int) string {
	random := hex.EncodeToString(sum[:10])
	at := binary.BigEndian.Uint32(sum[10:])
	var digits [keyedHashLen]byte
	for {
		var b [4]byte
		binary.BigEndian.PutUint32(b[:], at)
		hex.Encode(digits[:], b[:])
		if int(xxhash.Sum64(digits[:])%uint64(shards)) == shard {
			return random[:8] + "-" + random[8:12] + "-" + KeyedMark + "-8" + random[12:15] + "-" + string(digits[:]) + random[15:19]
		}
		at++
	}
}

// DerivedID makes an id for a task with a key out of 10 bytes or more that tell it from
// others: those of a hash, so that whoever knows what it is of finds the id again.
func DerivedID(sum []byte, key string) string {
	random := hex.EncodeToString(sum[:10])
	return random[:8] + "-" + random[8:12] + "-" + KeyedMark + "-8" + random[12:15] + "-" + HashOfKey(key) + random[15:19]
}

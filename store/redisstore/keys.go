package redisstore

import (
	"strconv"
	"strings"

	"github.com/ddq-io/ddq/store"
)

const (
	// topicsKey is the hash of all topics' configurations.
	topicsKey = "ddq:topics"

	// schema is the version of the layout of a shard's keys.
	schema = 1

	// guard is the member that keeps sets from being stored as lists (see doc.go).
	guard = "\x00----------------------------------------------------------------"
)

// shardKeys are the keys of a shard, in the order in which scripts expect them.
type shardKeys [8]string

const (
	ownerKey = iota
	tasksKey
	dataKey
	runningKey
	notesKey
	dlqKey
	doneKey
	keptKey
)

func newShardKeys(s store.Shard) *shardKeys {
	prefix := "ddq:{" + s.Topic + ":" + strconv.Itoa(s.N) + "}:"
	var keys shardKeys
	for i, noun := range [...]string{"owner", "tasks", "data", "running", "notes", "dlq", "done", "kept"} {
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

// First bytes of stored ids that are not the id itself. Ids are printable, so
// they do not start with any of these.
const (
	guardPrefix  = 0x00 // the guard, never an id
	uuidPrefix   = 0x01 // 16 bytes of a UUID follow
	escapePrefix = 0x02 // the id follows; it starts with a byte that needs this
)

// appendID appends the stored form of an id.
func appendID(b []byte, id string) []byte {
	if isUUID(id) {
		b = append(b, uuidPrefix)
		for i := 0; i < len(id); i += 2 {
			if id[i] == '-' {
				i++
			}
			b = append(b, nibble(id[i])<<4|nibble(id[i+1]))
		}
		return b
	}
	if id != "" && id[0] <= escapePrefix {
		b = append(b, escapePrefix)
	}
	return append(b, id...)
}

// parseID is the inverse of appendID. A member that no id has gives itself.
func parseID(member string) string {
	switch {
	case member == "":
		return ""
	case member[0] == uuidPrefix && len(member) == 17:
		return formatUUID(member[1:])
	case member[0] == escapePrefix:
		return member[1:]
	}
	return member
}

const uuidShape = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"

// isUUID reports whether id is a UUID as this package would spell it.
func isUUID(id string) bool {
	if len(id) != len(uuidShape) {
		return false
	}
	for i := range len(id) {
		c := id[i]
		if uuidShape[i] == '-' {
			if c != '-' {
				return false
			}
		} else if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

func nibble(c byte) byte {
	if c >= 'a' {
		return c - 'a' + 10
	}
	return c - '0'
}

func formatUUID(raw string) string {
	const digits = "0123456789abcdef"
	var b strings.Builder
	b.Grow(len(uuidShape))
	for i := range len(raw) {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			b.WriteByte('-')
		}
		b.WriteByte(digits[raw[i]>>4])
		b.WriteByte(digits[raw[i]&15])
	}
	return b.String()
}

package pebblestore

import (
	"encoding/binary"
	"encoding/hex"

	"github.com/ddq-io/ddq/store"
)

// table is the part of a shard's keys that a key belongs to.
type table byte

const (
	tableTasks   table = 'r'
	tablePending table = 'p'
	tableHolds   table = 'h'
	tableDead    table = 'x'
	tableDone    table = 'd'
	tableTrim    table = 't'
	tableHistory table = 'e'
	tableLanes   table = 'q'
	tableKeys    table = 'k' // idempotency keys
	tableOrder   table = 'y' // ordering keys
	tableIndex   table = 'i' // of attributes
	tableIndexed table = 'a' // for which attributes that is complete
	tableLog     table = 'w' // what happened to tasks
	tableMeta    table = 'm'
	tableOwner   table = 'o'
	tableLife    table = 'b' // of the topic that the shard belongs to

	// Of number 0, which is no shard's.
	tableShards table = 's'
	tableTopics table = 'c'
	tableFormat table = 'f'
	tableLimits table = 'l'
)

const prefixLen = 5 // number and table

// An id is stored behind one of these.
const (
	idText byte = 0 // the id as it is
	idUUID byte = 1 // 16 bytes
)

func appendPrefix(b []byte, number uint32, t table) []byte {
	return append(binary.BigEndian.AppendUint32(b, number), byte(t))
}

func appendIDKey(b []byte, number uint32, t table, id string) []byte {
	return appendID(appendPrefix(b, number, t), id)
}

// appendTimeKey leaves the id as it is, so that those of one time are in order.
func appendTimeKey(b []byte, number uint32, t table, at store.Millis, id string) []byte {
	return append(appendMillis(appendPrefix(b, number, t), at), id...)
}

// appendMillis keeps the order of times, also of negative ones.
func appendMillis(b []byte, m store.Millis) []byte {
	return binary.BigEndian.AppendUint64(b, uint64(m)^1<<63)
}

func millisAt(b []byte) store.Millis {
	return store.Millis(binary.BigEndian.Uint64(b) ^ 1<<63)
}

// appendID packs ids that are UUIDs in their usual spelling. All others, also
// other spellings of UUIDs, stay text: every id comes back as it was.
func appendID(b []byte, id string) []byte {
	start := len(b)
	b = append(b, idUUID)
	if b, ok := appendUUID(b, id); ok {
		return b
	}
	return append(append(b[:start], idText), id...)
}

func appendUUID(b []byte, id string) ([]byte, bool) {
	if len(id) != 36 || id[8] != '-' || id[13] != '-' || id[18] != '-' || id[23] != '-' {
		return b, false
	}
	for i := 0; i < len(id); i += 2 {
		switch i {
		case 8, 13, 18, 23:
			i++ // over the dash
		}
		high, low := hexValue[id[i]], hexValue[id[i+1]]
		if high|low > 0xf {
			return b, false
		}
		b = append(b, high<<4|low)
	}
	return b, true
}

// hexValue maps lower case hexadecimal digits to their value, all else to 0xff.
var hexValue = func() (values [256]byte) {
	for i := range values {
		values[i] = 0xff
	}
	for i, digit := range []byte("0123456789abcdef") {
		values[digit] = byte(i)
	}
	return values
}()

// decodeID reads what appendID wrote.
func decodeID(b []byte) (string, bool) {
	switch {
	case len(b) >= 1 && b[0] == idText:
		return string(b[1:]), true
	case len(b) == 17 && b[0] == idUUID:
		var text [36]byte
		hex.Encode(text[:8], b[1:5])
		hex.Encode(text[9:13], b[5:7])
		hex.Encode(text[14:18], b[7:9])
		hex.Encode(text[19:23], b[9:11])
		hex.Encode(text[24:], b[11:17])
		text[8], text[13], text[18], text[23] = '-', '-', '-', '-'
		return string(text[:]), true
	}
	return "", false
}

// decodeTimeKey reads what appendTimeKey wrote.
func decodeTimeKey(key []byte) (at store.Millis, id string, ok bool) {
	if len(key) < prefixLen+8 {
		return 0, "", false
	}
	return millisAt(key[prefixLen:]), string(key[prefixLen+8:]), true
}

// shardKey names a shard in the table of their numbers.
func shardKey(s store.Shard) []byte {
	b := appendPrefix(nil, 0, tableShards)
	b = append(binary.BigEndian.AppendUint16(b, uint16(len(s.Topic))), s.Topic...)
	return binary.BigEndian.AppendUint32(b, uint32(s.N))
}

func decodeShardKey(key []byte) (s store.Shard, ok bool) {
	key = key[prefixLen:]
	if len(key) < 6 || len(key) != 6+int(binary.BigEndian.Uint16(key)) {
		return s, false
	}
	topic, n := key[2:len(key)-4], key[len(key)-4:]
	return store.Shard{Topic: string(topic), N: int(binary.BigEndian.Uint32(n))}, true
}

func topicKey(name string) []byte {
	return append(appendPrefix(nil, 0, tableTopics), name...)
}

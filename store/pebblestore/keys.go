package pebblestore

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/record"
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
	tableJournal table = 'j' // what names of tasks returned
	tableLanes   table = 'q'
	tableKeys    table = 'k' // idempotency keys
	tableOrder   table = 'y' // ordering keys
	tableIndex   table = 'i' // of attributes
	tableIndexed table = 'a' // for which attributes that is complete
	tableLog     table = 'w' // what happened to tasks
	tableCells   table = 'C'
	tableWakes   table = 'W' // cells by when they wake
	tableLists   table = 'L' // cells by the lists that show them
	tableIn      table = 'I' // parcels of the in-box
	tableOut     table = 'O' // and of the out-box
	tableQueues  table = 'Q' // messages of the outbox queues
	tableMeta    table = 'm'
	tableOwner   table = 'o'
	tableLife    table = 'b' // of the topic that the shard belongs to

	// Of number 0, which is no shard's.
	tableShards   table = 's'
	tableTopics   table = 'c'
	tableFormat   table = 'f'
	tableLimits   table = 'l'
	tableRegistry table = 'g' // records that belong to no topic
)

const prefixLen = 5 // number and table

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

// appendIndexKey appends the key of an entry of the index, which has no value: the name of
// the attribute, its value, and the id as it is.
func appendIndexKey(b []byte, number uint32, a store.Attribute, id string) []byte {
	b = record.AppendIndexName(appendPrefix(b, number, tableIndex), a.Key)
	return append(record.AppendIndexValue(b, store.NewIndexEntry(a.Value, id)), id...)
}

// appendLaneKey appends the key of a pending task among those of its lane: the lane,
// the due time and the id as it is. It returns nil for a task of the zero lane. traits
// are encoded.
func appendLaneKey(b []byte, number uint32, traits []byte, due store.Millis, id string) []byte {
	if len(traits) == 0 {
		return nil
	}
	lane, _, err := record.CutLane(traits)
	if err != nil || lane == (store.Lane{}) {
		return nil
	}
	return append(appendMillis(appendLane(b, number, lane), due), id...)
}

func appendLane(b []byte, number uint32, lane store.Lane) []byte {
	return record.AppendLane(appendPrefix(b, number, tableLanes), lane)
}

// decodeLaneKey reads what appendLaneKey wrote.
func decodeLaneKey(key []byte) (lane store.Lane, due store.Millis, id string, ok bool) {
	if len(key) < prefixLen {
		return lane, 0, "", false
	}
	lane, rest, err := record.CutLane(key[prefixLen:])
	if err != nil || len(rest) < 8 {
		return lane, 0, "", false
	}
	return lane, millisAt(rest), string(rest[8:]), true
}

// behindLane is what no due time and id of a lane come behind.
var behindLane = bytes.Repeat([]byte{0xff}, 9)

// afterMillis is the key behind all those of a time.
func afterMillis(number uint32, t table, at store.Millis) []byte {
	if at == math.MaxInt64 {
		return appendPrefix(nil, number, t+1)
	}
	return appendMillis(appendPrefix(nil, number, t), at+1)
}

// appendLogKey appends the key of an entry of a log, which lies under the position of its
// last change.
func appendLogKey(b []byte, number uint32, position int64) []byte {
	return binary.BigEndian.AppendUint64(appendPrefix(b, number, tableLog), uint64(position))
}

// logEntry reads where an entry ends and how many changes it has.
func logEntry(key, value []byte) (position int64, n int, err error) {
	if len(key) != prefixLen+8 {
		return 0, 0, fmt.Errorf("malformed key of a log: %x", key)
	}
	n, err = record.LogEntryCount(value)
	return int64(binary.BigEndian.Uint64(key[prefixLen:])), n, err
}

// An unfinished task of an ordering key is in tableOrder, under the length of its key in
// a byte, the key, the due time and the id as it is.

func appendOrder(b []byte, number uint32, key string) []byte {
	return append(append(appendPrefix(b, number, tableOrder), byte(len(key))), key...)
}

func appendOrderKey(b []byte, number uint32, key string, due store.Millis, id string) []byte {
	return append(appendMillis(appendOrder(b, number, key), due), id...)
}

// decodeOrderKey reads what appendOrderKey wrote.
func decodeOrderKey(b []byte) (key string, due store.Millis, id string, ok bool) {
	if len(b) <= prefixLen {
		return "", 0, "", false
	}
	rest, size := b[prefixLen+1:], int(b[prefixLen])
	if len(rest) < size+8 {
		return "", 0, "", false
	}
	return string(rest[:size]), millisAt(rest[size:]), string(rest[size+8:]), true
}

// timedID reads the id of a task's key when it is a UUID of version 7. These begin
// with the time at which they were made, so most that come are newer than all that
// the shard has had, and need not be looked for. (RFC 9562, section 5.7)
func timedID(key []byte) (uuid7, bool) {
	id := key[prefixLen:]
	if id[0] != idUUID || id[7]>>4 != 7 {
		return uuid7{}, false
	}
	return uuid7{binary.BigEndian.Uint64(id[1:]), binary.BigEndian.Uint64(id[9:])}, true
}

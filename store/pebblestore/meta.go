package pebblestore

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/ddq-io/ddq/store"
)

// meta are the numbers of a shard.
type meta struct {
	batches             uint64 // that changed the shard
	seq                 int64
	pending, done, dead int64
	newest              uuid7 // the highest id of version 7 that was ever added
	sealed              bool  // takes no new task
	indexed             bool  // there is, or was, something in the index
	log                 logMeta
	boxes               boxMeta
	queues              queueMeta
}

// The last byte of the stored form of meta.
const (
	metaSealed = 1 << iota
	metaIndexed
)

func (m meta) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, m.batches)
	b = binary.BigEndian.AppendUint64(b, uint64(m.seq))
	b = binary.BigEndian.AppendUint64(b, uint64(m.pending))
	b = binary.BigEndian.AppendUint64(b, uint64(m.done))
	b = binary.BigEndian.AppendUint64(b, uint64(m.dead))
	b = binary.BigEndian.AppendUint64(b, m.newest.hi)
	b = binary.BigEndian.AppendUint64(b, m.newest.lo)
	var flags byte
	if m.sealed {
		flags |= metaSealed
	}
	if m.indexed {
		flags |= metaIndexed
	}
	b = append(b, flags)
	if m.log != (logMeta{}) || m.boxes != (boxMeta{}) || m.queues != (queueMeta{}) {
		b = m.log.append(b)
	}
	if m.boxes != (boxMeta{}) || m.queues != (queueMeta{}) {
		b = m.boxes.append(b)
	}
	if m.queues != (queueMeta{}) {
		b = m.queues.append(b)
	}
	return b
}

func decodeMeta(b []byte) (meta, error) {
	in := input{b: b}
	m := meta{in.uint64(), int64(in.uint64()), int64(in.uint64()), int64(in.uint64()), int64(in.uint64()), unknown, false, false, logMeta{}, boxMeta{}, queueMeta{}}
	if len(in.b) > 0 { // shards of before it was kept have none
		m.newest = uuid7{in.uint64(), in.uint64()}
		flags := in.byte()
		m.sealed, m.indexed = flags&metaSealed != 0, flags&metaIndexed != 0
	}
	if len(in.b) > 0 { // nor those that were never watched
		m.log.read(&in)
	}
	if len(in.b) > 0 { // nor those that never had a cell or a parcel
		m.boxes.read(&in)
	}
	if len(in.b) > 0 { // nor those that never sent a message to a queue
		m.queues.read(&in)
	}
	if in.short {
		return meta{}, errors.New("decode numbers of a shard: malformed")
	}
	return m, nil
}

// logMeta are the numbers of a shard's log. Its entries lie under the positions of their
// last changes, one for every batch that changed tasks.
type logMeta struct {
	watching  store.Watching
	last      int64 // position of the latest change
	forgotten int64 // up to here nothing is kept
}

func (m logMeta) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(m.watching.Retention))
	b = binary.BigEndian.AppendUint64(b, uint64(m.watching.Max))
	b = binary.BigEndian.AppendUint64(b, uint64(m.last))
	return binary.BigEndian.AppendUint64(b, uint64(m.forgotten))
}

func (m *logMeta) read(in *input) {
	m.watching.Retention = time.Duration(in.uint64())
	m.watching.Max = int(in.uint64())
	m.last, m.forgotten = int64(in.uint64()), int64(in.uint64())
}

// watch is what becomes of the numbers of a log that is kept in another way, or not any more.
func (m *logMeta) watch(w store.Watching) {
	m.watching = w
	if w.Retention == 0 {
		m.last++
		m.forgotten = m.last
	}
}

// boxMeta are the numbers of a shard's cells and of its boxes.
type boxMeta struct {
	cells     int64
	wakes     int64 // cells that wake
	in, taken int64 // numbers of the last parcel that the in-box got, and of the last that was taken
	out       int64 // number of the last parcel that the out-box got
	leaving   int64 // parcels in the out-box
}

// parcels is how many there are in both boxes.
func (m *boxMeta) parcels() int64 { return m.in - m.taken + m.leaving }

func (m *boxMeta) numbers() [6]*int64 {
	return [...]*int64{&m.cells, &m.wakes, &m.in, &m.taken, &m.out, &m.leaving}
}

func (m boxMeta) append(b []byte) []byte {
	for _, n := range m.numbers() {
		b = binary.AppendUvarint(b, uint64(*n))
	}
	return b
}

func (m *boxMeta) read(in *input) {
	for _, n := range m.numbers() {
		*n = int64(in.uvarint())
	}
}

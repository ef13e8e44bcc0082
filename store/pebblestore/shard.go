package pebblestore

import (
	"errors"
	"math"
	"sync"
	"sync/atomic"

	"github.com/ddq-io/ddq/store"
)

// shard is what is kept in memory of a shard: numbers, holds, and where its
// indexes begin. Its tasks are in the database only.
type shard struct {
	name   store.Shard
	number uint32 // of its keys

	// unsynced counts the calls whose changes can be read and are not synced yet.
	unsynced atomic.Int64

	mu     sync.Mutex // held while a call validates and applies its changes
	loaded bool       // guarded by mu, as is all below
	known  bool       // number is stored
	meta   meta
	owner  owner
	life   store.ShardLife
	holds  holds
	index  store.IndexState // a walk does not outlive the process

	doubtful bool // a sweep repaired an index: meta is to be counted again

	// No pending task is due before firstDue, and no done task is to be trimmed
	// before firstTrim. Reads begin there and not at the deleted keys before it.
	firstDue  store.Millis
	firstTrim store.Millis
}

// load reads what is kept in memory of a shard. It reads as many entries as there
// are holds. Called under mu.
func (sh *shard) load(d *directory) error {
	if sh.loaded {
		return nil
	}
	sh.known = true
	if err := d.read(appendPrefix(nil, sh.number, tableMeta), func(b []byte) (err error) {
		sh.meta, err = decodeMeta(b)
		return err
	}); err != nil {
		return err
	}
	if err := d.read(appendPrefix(nil, sh.number, tableOwner), func(b []byte) (err error) {
		sh.owner, err = decodeOwner(b)
		return err
	}); err != nil {
		return err
	}
	if err := sh.loadLife(d); err != nil {
		return err
	}
	if err := sh.loadIndex(d); err != nil {
		return err
	}
	held, err := readHolds(d, sh.number)
	if err != nil {
		return err
	}
	sh.holds = held
	sh.loaded = true
	return nil
}

func newShard(name store.Shard, number uint32) *shard {
	return &shard{name: name, number: number, holds: newHolds(), firstDue: math.MinInt64, firstTrim: math.MinInt64}
}

func decodeShardLife(b []byte) (store.ShardLife, error) {
	in := input{b: b}
	l := store.ShardLife{Topic: in.uint64(), Ended: in.byte() != 0}
	if in.short {
		return store.ShardLife{}, errors.New("decode life of a shard: malformed")
	}
	return l, nil
}

func (sh *shard) loadLife(d *directory) error {
	return d.read(appendPrefix(nil, sh.number, tableLife), func(b []byte) (err error) {
		sh.life, err = decodeShardLife(b)
		return err
	})
}

func (sh *shard) loadIndex(d *directory) error {
	if !sh.meta.indexed {
		return nil
	}
	return d.read(appendPrefix(nil, sh.number, tableIndexed), func(b []byte) error {
		sh.index.Ready = store.IndexSet(b)
		return nil
	})
}

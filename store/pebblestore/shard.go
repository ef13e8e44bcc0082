package pebblestore

import (
	"encoding/binary"
	"errors"
	"math"
	"sync"
	"sync/atomic"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/pebblestore/datadir"
)

// shard is what is kept in memory of a shard: numbers, holds, and where its
// indexes begin. Its tasks are in the database only.
type shard struct {
	name   store.Shard
	number uint32 // of its keys
	layout *layout

	// unsynced counts the calls whose changes can be read and are not synced yet.
	unsynced atomic.Int64

	mu      sync.Mutex // held while a call validates and applies its changes
	loaded  bool       // guarded by mu, as is all below
	known   bool       // number is stored
	dropped bool       // and nothing was written since
	meta    meta
	owner   owner
	life    store.ShardLife
	holds   holds
	index   store.IndexState // a walk does not outlive the process

	recents recents

	due *dueCounts // nil: nobody has asked for them of late

	doubtful bool // a sweep repaired an index: meta is to be counted again

	// No pending task is due before firstDue, and no done task is to be trimmed
	// before firstTrim. Reads begin there and not at the deleted keys before it.
	firstDue  store.Millis
	firstTrim store.Millis
	// Nor does a cell wake before firstWake, and no parcel of the out-box has a number up
	// to passedOut.
	firstWake store.Millis
	passedOut int64
	// No message of a queue, by what its keys begin with, has a lower number.
	queueHeads map[string]int64
}

// load reads what is kept in memory of a shard. It reads as many entries as there
// are holds. Called under mu.
func (sh *shard) load(d *datadir.Dir) error {
	if sh.loaded {
		return nil
	}
	sh.known = true
	if err := d.Read(appendPrefix(nil, sh.number, tableMeta), func(b []byte) (err error) {
		sh.meta, err = decodeMeta(b)
		return err
	}); err != nil {
		return err
	}
	if err := d.Read(appendPrefix(nil, sh.number, tableOwner), func(b []byte) (err error) {
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

func newShard(name store.Shard, number uint32, l *layout) *shard {
	return &shard{name: name, number: number, layout: l, holds: newHolds(), firstDue: math.MinInt64, firstTrim: math.MinInt64, firstWake: math.MinInt64}
}

func decodeShardLife(b []byte) (store.ShardLife, error) {
	in := input{b: b}
	l := store.ShardLife{Topic: in.uint64(), Ended: in.byte() != 0}
	if in.short {
		return store.ShardLife{}, errors.New("decode life of a shard: malformed")
	}
	return l, nil
}

func (sh *shard) loadLife(d *datadir.Dir) error {
	return d.Read(appendPrefix(nil, sh.number, tableLife), func(b []byte) (err error) {
		sh.life, err = decodeShardLife(b)
		return err
	})
}

func (sh *shard) loadIndex(d *datadir.Dir) error {
	if !sh.meta.indexed {
		return nil
	}
	return d.Read(appendPrefix(nil, sh.number, tableIndexed), func(b []byte) error {
		sh.index.Ready = store.IndexSet(b)
		return nil
	})
}

// doubt has the shard's numbers counted again: an index does not say what they say.
func (sh *shard) doubt() { sh.doubtful, sh.due = true, nil }

// stamp is that of an answer from what is in memory. Called under mu.
func (sh *shard) stamp() store.Stamp {
	return store.Stamp{Now: now(), Seq: sh.meta.seq, In: sh.meta.boxes.in}
}

// numbers returns what is in memory of a shard.
func (sh *shard) numbers(d *datadir.Dir) (store.Stats, error) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if err := sh.load(d); err != nil {
		return store.Stats{}, err
	}
	return store.Stats{
		Stamp:   sh.stamp(),
		Pending: sh.meta.pending,
		Running: int64(sh.holds.len()),
		Done:    sh.meta.done,
		Dead:    sh.meta.dead,
		Owner:   sh.owner.node,
		Epoch:   sh.owner.fence.Epoch,
		Index:   sh.index,
		Life:    sh.life,
		Logged:  sh.meta.log.last > sh.meta.log.forgotten,
		Cells:   sh.meta.boxes.cells,
		Parcels: sh.meta.boxes.parcels() + sh.meta.queues.waiting,
	}, nil
}

// firstPending is the key of the shard's first pending task, or one before it.
func (sh *shard) firstPending(d *datadir.Dir) ([]byte, error) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if err := sh.advance(d, math.MaxInt64); err != nil {
		return nil, err
	}
	return appendMillis(appendPrefix(nil, sh.number, tablePending), sh.firstDue), nil
}

// advance moves firstDue to the first task due up to and including to. Called
// under the shard's lock.
func (sh *shard) advance(d *datadir.Dir, to store.Millis) error {
	if sh.firstDue > to {
		return nil
	}
	first := to
	if to < math.MaxInt64 {
		first++
	}
	lower := appendMillis(appendPrefix(nil, sh.number, tablePending), sh.firstDue)
	err := d.Scan(lower, afterMillis(sh.number, tablePending, to), func(key, _ []byte) (bool, error) {
		first = millisAt(key[prefixLen:])
		return false, nil
	})
	if err == nil {
		sh.firstDue = first
	}
	return err
}

// readHolds reads the holds of a shard that are not over.
func readHolds(d *datadir.Dir, number uint32) (_ holds, err error) {
	hs := newHolds()
	tasks := lookup{dir: d, number: number}
	defer func() { err = errors.Join(err, tasks.close()) }()
	lower, upper := appendPrefix(nil, number, tableHolds), appendPrefix(nil, number, tableHolds+1)
	err = d.Scan(lower, upper, func(key, value []byte) (bool, error) {
		members, err := decodeGroup(value)
		if err != nil || len(key) != prefixLen+8 {
			d.Log.Error("unreadable holds: the sweep makes their tasks pending", "err", err)
			return true, nil
		}
		g := &group{number: binary.BigEndian.Uint64(key[prefixLen:])}
		for _, h := range members {
			if err := hs.restore(h, g, &tasks); err != nil {
				return false, err
			}
		}
		return true, nil
	})
	return hs, err
}

// restore adds a stored hold that is not over. Those of later groups come later,
// and take the place of what they extended.
func (hs *holds) restore(h *hold, g *group, tasks *lookup) error {
	e, f, err := tasks.find(h.id)
	if err != nil || f != readable || e.state != pending || e.stamp != h.stamp {
		return err
	}
	h.group, h.place = g, e.place()
	g.live++
	if old := hs.get(h.id); old != nil {
		old.group.live--
		hs.replace(h)
		return nil
	}
	hs.add(h)
	return nil
}

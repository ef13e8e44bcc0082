package pebblestore

import (
	"github.com/cockroachdb/pebble/v2"

	"github.com/ddq-io/ddq/store/pebblestore/datadir"
)

// lookup finds tasks of a shard by id, as they were when it first did. One iterator
// for all lookups of a call is cheaper than Pebble's Get for each, which besides
// does not use the filters of the lowest level: there each new id would cost a read
// of the disk.
type lookup struct {
	dir    *datadir.Dir
	number uint32
	it     *pebble.Iterator
	key    []byte
}

// find reads the task of an id. The entry's body, and of a broken one everything,
// is valid until the next find.
func (l *lookup) find(id string) (e entry, f found, err error) {
	if l.it == nil {
		l.it, err = l.dir.DB().NewIter(&pebble.IterOptions{UseL6Filters: true})
		if err != nil {
			return e, absent, l.dir.ReadError(err)
		}
	}
	l.key = appendIDKey(l.key[:0], l.number, tableTasks, id)
	if !l.it.SeekPrefixGE(l.key) {
		if err := l.it.Error(); err != nil {
			return e, absent, l.dir.ReadError(err)
		}
		return e, absent, nil
	}
	value, err := l.it.ValueAndErr()
	if err != nil {
		return e, absent, l.dir.ReadError(err)
	}
	if e, err = decodeEntry(value); err != nil {
		return entry{unreadable: true, body: value}, broken, nil
	}
	return e, readable, nil
}

// close forgets what the lookup saw: the next find sees the shard as it is then.
func (l *lookup) close() error {
	if l.it == nil {
		return nil
	}
	err := l.it.Close()
	l.it = nil
	if err != nil {
		return l.dir.ReadError(err)
	}
	return nil
}

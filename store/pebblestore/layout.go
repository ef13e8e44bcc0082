package pebblestore

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/ddq-io/ddq/store/pebblestore/datadir"
)

// The versions of the layout. A directory is marked with the one that programs must know
// to use it: with the second once there is a cell, a parcel or a task that tells a cell,
// whose end programs of before would not tell; with the third once there is a message in a queue or a receipt,
// which programs of before would not deliver, and would not look at.
const (
	layoutFirst  byte = 1
	layoutCells  byte = 2
	layoutQueues byte = 3
)

// layout is what a directory is marked with.
type layout struct {
	version atomic.Uint32 // rises
	mu      sync.Mutex    // held while a mark is written
}

func layoutKey() []byte { return appendPrefix(nil, 0, tableFormat) }

// read refuses a directory of another layout, and marks a new one.
func (l *layout) read(d *datadir.Dir) error {
	var found []byte
	if err := d.Read(layoutKey(), func(b []byte) error { found = append(found, b...); return nil }); err != nil {
		return err
	}
	switch {
	case found == nil:
		l.version.Store(uint32(layoutFirst))
		return d.Set(layoutKey(), []byte{layoutFirst})
	case len(found) != 1 || found[0] < layoutFirst || found[0] > layoutQueues:
		return fmt.Errorf("its layout has version %d, and this program knows versions %d to %d", found, layoutFirst, layoutQueues)
	}
	l.version.Store(uint32(found[0]))
	return nil
}

// mark adds the mark of a version to a batch, if neither it nor a later one is there. done is called once the batch is
// applied, or has failed: meanwhile nobody else adds a mark, which could be an earlier one and come later.
func (l *layout) mark(b *batch, version byte) (done func(applied bool), err error) {
	if l.version.Load() >= uint32(version) {
		return func(bool) {}, nil
	}
	l.mu.Lock()
	if l.version.Load() >= uint32(version) {
		l.mu.Unlock()
		return func(bool) {}, nil
	}
	return func(applied bool) {
		if applied {
			l.version.Store(uint32(version))
		}
		l.mu.Unlock()
	}, b.set(layoutKey(), []byte{version})
}

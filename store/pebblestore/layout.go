package pebblestore

import (
	"fmt"
	"sync/atomic"

	"github.com/ddq-io/ddq/store/pebblestore/datadir"
)

// The versions of the layout. A directory is marked with the one that programs must know
// to use it: with the second once there is a cell, a parcel or a task that tells a cell,
// whose end programs of before would not tell.
const (
	layoutFirst byte = 1
	layoutCells byte = 2
)

// layout is what a directory is marked with.
type layout struct{ cells atomic.Bool }

func layoutKey() []byte { return appendPrefix(nil, 0, tableFormat) }

// read refuses a directory of another layout, and marks a new one.
func (l *layout) read(d *datadir.Dir) error {
	var found []byte
	if err := d.Read(layoutKey(), func(b []byte) error { found = append(found, b...); return nil }); err != nil {
		return err
	}
	switch {
	case found == nil:
		return d.Set(layoutKey(), []byte{layoutFirst})
	case len(found) != 1 || found[0] != layoutFirst && found[0] != layoutCells:
		return fmt.Errorf("its layout has version %d, and this program knows versions %d and %d", found, layoutFirst, layoutCells)
	}
	l.cells.Store(found[0] == layoutCells)
	return nil
}

// mark adds the mark of the second version to a batch, if it is not there.
func (l *layout) mark(b *batch) error {
	if l.cells.Load() {
		return nil
	}
	return b.set(layoutKey(), []byte{layoutCells})
}

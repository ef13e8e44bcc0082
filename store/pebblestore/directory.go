package pebblestore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ddq-io/ddq/store"
)

// directory is the data directory while it is open: the database, and the disk under it
// that may fail. It knows keys and values, and nothing of what they mean. It owns what
// Pebble starts, and after a failure one goroutine that closes Pebble.
type directory struct {
	path    string
	log     *slog.Logger
	disk    *disk
	compact *compactions
	lock    *pebble.Lock
	db      *pebble.DB

	use      sync.RWMutex // held for reading by calls, for writing by whoever closes db
	closed   bool         // guarded by use: close was called
	dbClosed bool         // guarded by use
	failing  sync.WaitGroup
}

// openDirectory opens the directory of c, and has load read from it what is kept in memory.
// load is called before anything else can use the directory.
func openDirectory(c Config, files vfs.FS, log *slog.Logger, load func(*directory) error) (*directory, error) {
	d := &directory{path: c.Dir, log: log, compact: newCompactions()}
	d.disk = newDisk(files, c, d.fail)
	d.disk.onFull = d.noteFull

	lock, err := lockDir(c.Dir, files)
	if err != nil {
		return nil, err
	}
	d.lock = lock
	if err := d.openDB(c, load); err != nil {
		d.close() //nolint:errcheck // what kept it from opening is what is reported
		return nil, d.openError(err)
	}
	return d, nil
}

// openDB opens the database and has load read from it.
func (d *directory) openDB(c Config, load func(*directory) error) (err error) {
	d.use.Lock() // so that a failure meanwhile closes what is open afterwards
	defer d.use.Unlock()
	if err := checkManifest(c.Dir, d.disk); err != nil {
		return err
	}
	if d.db, err = pebble.Open(c.Dir, options(c, d.disk, d.lock, d.compact, d.log)); err != nil {
		return err
	}
	if err := load(d); err != nil {
		return err
	}
	d.compact.begin()
	return d.disk.failure()
}

// openError says why the directory cannot be opened.
func (d *directory) openError(err error) error {
	if failure := d.disk.failure(); failure != nil {
		err = failure // what came before Pebble's own error, and caused it
	}
	if noSpace(err) {
		return fmt.Errorf("open data directory %s: %w: %w", d.path, store.ErrFull, err)
	}
	return fmt.Errorf("open data directory %s: %w", d.path, err)
}

// fail is called once, when the disk froze, by the call or the background work
// that found out. It ends Pebble's background work once all calls have left.
func (d *directory) fail(cause error) {
	d.log.Error("data directory failed and is not written any more", "dir", d.path, "err", cause)
	d.failing.Add(1)
	go func() {
		defer d.failing.Done()
		d.use.Lock()
		defer d.use.Unlock()
		d.closeDB() //nolint:errcheck // the failure is what is reported
	}()
}

// noteFull is called, between enter and leave, when the disk became nearly full or is not
// any more. What waits in memory is written to tables then: their logs may give back
// space, and nothing else would make them while no task is added.
func (d *directory) noteFull(full bool) {
	if !full {
		d.log.Info("data directory has room again", "dir", d.path)
		return
	}
	d.log.Warn("disk is nearly full, no tasks are added", "dir", d.path, "free_bytes_needed", d.disk.minFree)
	if d.disk.flushing.Load() {
		return // tables find no room, and this would wait for them
	}
	if _, err := d.db.AsyncFlush(); err != nil {
		d.log.Warn("tables not written ahead of time", "err", err)
	}
}

// close waits for running calls and ends background work. It may be called twice.
func (d *directory) close() error {
	d.use.Lock()
	d.closed = true
	err := d.closeDB()
	d.use.Unlock()
	d.failing.Wait()
	if failure := d.disk.failure(); failure != nil {
		return d.failed(store.ErrUnavailable)
	}
	return err
}

// closeDB is called under use.
func (d *directory) closeDB() error {
	if d.dbClosed {
		return nil
	}
	d.dbClosed = true
	d.disk.stop()
	var err error
	if d.db != nil {
		err = d.db.Close()
	}
	if err = errors.Join(err, d.lock.Close()); err != nil {
		return fmt.Errorf("close data directory %s: %w", d.path, err)
	}
	return nil
}

// enter begins a call; leave ends it. Between them the database is open.
func (d *directory) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	d.use.RLock()
	err := d.usable()
	if err != nil {
		d.use.RUnlock()
	}
	return err
}

func (d *directory) leave() { d.use.RUnlock() }

func (d *directory) usable() error {
	switch {
	case d.closed:
		return store.ErrClosed
	case d.disk.failure() != nil:
		return d.failed(store.ErrUnavailable)
	}
	return nil
}

// failed wraps what froze the disk as kind.
func (d *directory) failed(kind error) error {
	return fmt.Errorf("%w: data directory %s: %w", kind, d.path, d.disk.failure())
}

// readError says that the database could not be read.
func (d *directory) readError(err error) error {
	return fmt.Errorf("%w: data directory %s: %w", store.ErrUnavailable, d.path, err)
}

// read calls f with the value of a key, if there is one.
func (d *directory) read(key []byte, f func([]byte) error) error {
	value, closer, err := d.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil
	}
	if err != nil {
		return d.readError(err)
	}
	defer closer.Close() //nolint:errcheck // it reads nothing
	if err := f(value); err != nil {
		return d.readError(err)
	}
	return nil
}

// scan calls f for the keys from lower up to upper while it returns true. Key and
// value are valid during the call only.
func (d *directory) scan(lower, upper []byte, f func(key, value []byte) (bool, error)) (err error) {
	it, err := d.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return d.readError(err)
	}
	defer func() {
		if closeErr := it.Close(); err == nil && closeErr != nil {
			err = d.readError(closeErr)
		}
	}()
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return d.readError(err)
		}
		if more, err := f(it.Key(), value); err != nil || !more {
			return err
		}
	}
	return nil
}

// outcome is the error of a synced write.
func (d *directory) outcome() error {
	if d.disk.failure() != nil {
		return d.failed(store.ErrUnknown)
	}
	return nil
}

func (d *directory) fullError() error {
	return fmt.Errorf("%w: data directory %s needs %d bytes of free space", store.ErrFull, d.path, d.disk.minFree)
}

// apply makes a batch visible. It is synced once await has returned.
func (d *directory) apply(b *pebble.Batch) error {
	d.disk.changed(b.Len(), int(b.Count()))
	if err := d.db.ApplyNoSyncWait(b, pebble.Sync); err != nil {
		d.disk.freeze(err) // what Pebble did is not known
	}
	return d.outcome() // the sync may never come
}

// await returns when an applied batch is synced, or the disk has failed.
func (d *directory) await(b *pebble.Batch) {
	if err := b.SyncWait(); err != nil {
		d.disk.freeze(err)
	}
}

// commitNoSync commits a batch that is synced with the next one that is, and closes it.
func (d *directory) commitNoSync(b *pebble.Batch) error {
	d.disk.changed(b.Len(), int(b.Count()))
	if err := b.Commit(pebble.NoSync); err != nil {
		d.disk.freeze(err)
		return d.outcome()
	}
	return b.Close()
}

// sync returns once everything that could be read is synced.
func (d *directory) sync() error {
	b := d.db.NewBatch()
	if err := b.LogData(nil, nil); err != nil {
		return d.readError(err)
	}
	if err := b.Commit(pebble.Sync); err != nil {
		d.disk.freeze(err)
	}
	if d.disk.failure() != nil {
		return d.failed(store.ErrUnavailable)
	}
	return b.Close()
}

package datadir

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

// Dir is the data directory while it is open: the database, and the disk under it
// that may fail. It knows keys and values, and nothing of what they mean. It owns what
// Pebble starts, and after a failure one goroutine that closes Pebble.
type Dir struct {
	Log *slog.Logger // what cannot be read is told there

	path    string
	disk    *disk
	compact *compactions
	lock    *pebble.Lock
	db      *pebble.DB

	use      sync.RWMutex // held for reading by calls, for writing by whoever closes db
	closed   bool         // guarded by use: close was called
	dbClosed bool         // guarded by use
	failing  sync.WaitGroup
}

// Open opens the directory of c, and has load read from it what is kept in memory.
// load is called before anything else can use the directory.
func Open(c Config, files vfs.FS, log *slog.Logger, load func(*Dir) error) (*Dir, error) {
	c = c.withDefaults()
	d := &Dir{path: c.Dir, Log: log, compact: newCompactions()}
	d.disk = newDisk(files, c, d.fail)
	d.disk.onFull = d.noteFull

	lock, err := lockDir(c.Dir, files)
	if err != nil {
		return nil, err
	}
	d.lock = lock
	if err := d.openDB(c, load); err != nil {
		d.Close() //nolint:errcheck // what kept it from opening is what is reported
		return nil, d.openError(err)
	}
	return d, nil
}

// openDB opens the database and has load read from it.
func (d *Dir) openDB(c Config, load func(*Dir) error) (err error) {
	d.use.Lock() // so that a failure meanwhile closes what is open afterwards
	defer d.use.Unlock()
	oldest, err := checkManifest(c.Dir, d.disk)
	if err != nil {
		return err
	}
	slots, synced, err := readSynced(c.Dir, oldest, d.disk, d.Log)
	if err != nil {
		return err
	}
	last, err := checkLogs(c.Dir, oldest, synced, d.disk, d.Log)
	if err != nil {
		return err
	}
	if d.disk.logs, err = openSynced(d.disk, slots); err != nil {
		return err
	}
	if d.db, err = pebble.Open(c.Dir, options(c, d.disk, d.lock, d.compact, d.Log)); err != nil {
		return d.disk.inFile(err, last)
	}
	if err := load(d); err != nil {
		return err
	}
	d.compact.begin()
	return d.disk.failure()
}

// inFile says which file Pebble could not read, which it does not say of each.
func (d *disk) inFile(err error, last logEnd) error {
	name := d.read.Load()
	switch {
	case name == nil:
		return err
	case d.FS.PathBase(*name) == last.name:
		return fmt.Errorf("%w: %w", last.damage("Pebble does not take that for its end"), err)
	}
	return fmt.Errorf("%s, or what is read with it: %w", d.FS.PathBase(*name), err)
}

// openError says why the directory cannot be opened.
func (d *Dir) openError(err error) error {
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
func (d *Dir) fail(cause error) {
	d.Log.Error("data directory failed and is not written any more", "dir", d.path, "err", cause)
	d.failing.Add(1)
	go func() {
		defer d.failing.Done()
		d.use.Lock()
		defer d.use.Unlock()
		d.closeDB() //nolint:errcheck // the failure is what is reported
	}()
}

// noteFull is called, between Enter and Leave, when the disk became nearly full or is not
// any more. What waits in memory is written to tables then: their logs may give back
// space, and nothing else would make them while no task is added.
func (d *Dir) noteFull(full bool) {
	if !full {
		d.Log.Info("data directory has room again", "dir", d.path)
		return
	}
	d.Log.Warn("disk is nearly full, no tasks are added", "dir", d.path, "free_bytes_needed", d.disk.minFree)
	if d.disk.flushing.Load() {
		return // tables find no room, and this would wait for them
	}
	if _, err := d.db.AsyncFlush(); err != nil {
		d.Log.Warn("tables not written ahead of time", "err", err)
	}
}

// Close waits for running calls and ends background work. It may be called twice.
func (d *Dir) Close() error {
	d.use.Lock()
	d.closed = true
	err := d.closeDB()
	d.use.Unlock()
	d.failing.Wait()
	if failed := d.Failed(); failed != nil {
		return failed
	}
	return err
}

// closeDB is called under use.
func (d *Dir) closeDB() error {
	if d.dbClosed {
		return nil
	}
	d.dbClosed = true
	d.disk.stop()
	var err error
	if d.db != nil {
		err = d.db.Close()
	}
	if d.disk.logs != nil {
		err = errors.Join(err, d.disk.logs.close())
	}
	if err = errors.Join(err, d.lock.Close()); err != nil {
		return fmt.Errorf("close data directory %s: %w", d.path, err)
	}
	return nil
}

// Path is the name of the directory.
func (d *Dir) Path() string { return d.path }

// DB is the database, for reads and for making batches. What changes it goes through Dir,
// which knows when the disk has failed.
func (d *Dir) DB() *pebble.DB { return d.db }

// Room reports whether there is space to add tasks.
func (d *Dir) Room() bool { return d.disk.room() }

// Look looks at the free space at once. Room does so by itself every now and then.
func (d *Dir) Look() { d.disk.look() }

// Brimming reports whether there is no room on the disk for changes, and soon none in
// memory.
func (d *Dir) Brimming() bool { return d.disk.brimming() }

// Enter begins a call; Leave ends it. Between them the database is open.
func (d *Dir) Enter(ctx context.Context) error {
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

// Leave ends a call.
func (d *Dir) Leave() { d.use.RUnlock() }

func (d *Dir) usable() error {
	switch {
	case d.closed:
		return store.ErrClosed
	case d.disk.failure() != nil:
		return d.FailedAs(store.ErrUnavailable)
	}
	return nil
}

// Failed returns what froze the directory, or nil.
func (d *Dir) Failed() error {
	if d.disk.failure() == nil {
		return nil
	}
	return d.FailedAs(store.ErrUnavailable)
}

// FailedAs wraps what froze the disk as kind, and as store.ErrFailed.
func (d *Dir) FailedAs(kind error) error {
	return fmt.Errorf("%w: %w: data directory %s: %w", kind, store.ErrFailed, d.path, d.disk.failure())
}

// ReadError says that the database could not be read. Of a damaged file, which froze the directory, it has
// the name.
func (d *Dir) ReadError(err error) error {
	if d.disk.failure() != nil {
		return d.FailedAs(store.ErrUnavailable)
	}
	return fmt.Errorf("%w: data directory %s: %w", store.ErrUnavailable, d.path, err)
}

// Read calls f with the value of a key, if there is one.
func (d *Dir) Read(key []byte, f func([]byte) error) error {
	value, closer, err := d.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil
	}
	if err != nil {
		return d.ReadError(err)
	}
	defer closer.Close() //nolint:errcheck // it reads nothing
	if err := f(value); err != nil {
		return d.ReadError(err)
	}
	return nil
}

// Scan calls f for the keys from lower up to upper while it returns true. Key and
// value are valid during the call only.
func (d *Dir) Scan(lower, upper []byte, f func(key, value []byte) (bool, error)) error {
	v, err := d.View(lower, upper)
	if err != nil {
		return err
	}
	return v.Walk(f)
}

// View is a range of keys as it was when it was made. Whoever made it walks it, once.
type View struct {
	d  *Dir
	it *pebble.Iterator
}

// View returns the keys from lower up to upper as they are now.
func (d *Dir) View(lower, upper []byte) (View, error) {
	it, err := d.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return View{}, d.ReadError(err)
	}
	return View{d, it}, nil
}

// Walk calls f for the keys of the view while it returns true, and gives the view up. Key
// and value are valid during the call only.
func (v View) Walk(f func(key, value []byte) (bool, error)) (err error) {
	defer func() {
		if closeErr := v.it.Close(); err == nil && closeErr != nil {
			err = v.d.ReadError(closeErr)
		}
	}()
	for ok := v.it.First(); ok; ok = v.it.Next() {
		value, err := v.it.ValueAndErr()
		if err != nil {
			return v.d.ReadError(err)
		}
		if more, err := f(v.it.Key(), value); err != nil || !more {
			return err
		}
	}
	return nil
}

// Snapshot is the directory as it was when it was made. Whoever made it closes it.
type Snapshot struct {
	d *Dir
	s *pebble.Snapshot
}

// Snapshot returns the directory as it is now.
func (d *Dir) Snapshot() Snapshot { return Snapshot{d, d.db.NewSnapshot()} }

// Scan is Dir.Scan of a snapshot.
func (s Snapshot) Scan(lower, upper []byte, f func(key, value []byte) (bool, error)) error {
	it, err := s.s.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return s.d.ReadError(err)
	}
	return View{s.d, it}.Walk(f)
}

// Close gives a snapshot up.
func (s Snapshot) Close() { s.s.Close() } //nolint:errcheck // it always returns nil

// outcome is the error of a synced write.
func (d *Dir) outcome() error {
	if d.disk.failure() != nil {
		return d.FailedAs(store.ErrUnknown)
	}
	return nil
}

// FullError says that there is no room.
func (d *Dir) FullError() error {
	return fmt.Errorf("%w: data directory %s needs %d bytes of free space", store.ErrFull, d.path, d.disk.minFree)
}

// Set sets a key, and returns when that is synced.
func (d *Dir) Set(key, value []byte) error {
	return d.synced(d.db.Set(key, value, pebble.Sync))
}

// Delete deletes a key, and returns when that is synced.
func (d *Dir) Delete(key []byte) error {
	return d.synced(d.db.Delete(key, pebble.Sync))
}

// Commit commits a batch, and returns when that is synced.
func (d *Dir) Commit(b *pebble.Batch) error {
	d.disk.changed(b.Len(), int(b.Count()))
	return d.synced(b.Commit(pebble.Sync))
}

func (d *Dir) synced(err error) error {
	if err != nil {
		d.disk.freeze(err)
	}
	return d.outcome()
}

// Apply makes a batch visible. It is synced once Await has returned.
func (d *Dir) Apply(b *pebble.Batch) error {
	d.disk.changed(b.Len(), int(b.Count()))
	if err := d.db.ApplyNoSyncWait(b, pebble.Sync); err != nil {
		d.disk.freeze(err) // what Pebble did is not known
	}
	return d.outcome() // the sync may never come
}

// Await returns when an applied batch is synced, or the disk has failed.
func (d *Dir) Await(b *pebble.Batch) {
	if err := b.SyncWait(); err != nil {
		d.disk.freeze(err)
	}
}

// CommitNoSync commits a batch that is synced with the next one that is, and closes it.
func (d *Dir) CommitNoSync(b *pebble.Batch) error {
	d.disk.changed(b.Len(), int(b.Count()))
	if err := b.Commit(pebble.NoSync); err != nil {
		d.disk.freeze(err)
		return d.outcome()
	}
	return b.Close()
}

// Sync returns once everything that could be read is synced.
func (d *Dir) Sync() error {
	b := d.db.NewBatch()
	if err := b.LogData(nil, nil); err != nil {
		return d.ReadError(err)
	}
	if err := b.Commit(pebble.Sync); err != nil {
		d.disk.freeze(err)
	}
	if d.disk.failure() != nil {
		return d.FailedAs(store.ErrUnavailable)
	}
	return b.Close()
}

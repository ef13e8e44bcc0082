package datadir

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"

	"github.com/ddq-io/ddq/store"
)

// disk is the file system under Pebble. It lets everything through until a write,
// a sync, or anything else that changes the directory fails. From then on it is
// frozen: nothing changes the directory any more, and Pebble is told that all is
// well. Pebble has no answer to a log that cannot be written but to end the
// process; a frozen disk spares it the question. Whoever waited for a sync must
// therefore look at failure after it.
//
// Tables that find the disk full are the exception: that error is Pebble's to see.
// It drops the table and writes it again later, since the log has all of it. And a
// file that cannot be opened since the process or the machine has no descriptor left
// is opened again for a while: connections take descriptors, and give them back.
//
// It owns no goroutine.
type disk struct {
	vfs.FS
	dir     string
	minFree uint64
	onFail  func(error) // called once, in the failing call
	onFull  func(bool)  // called when the disk is nearly full, and when it is not any more

	logs *syncedLogs            // nil until the logs that were there are checked
	read atomic.Pointer[string] // the file that was opened last to be read

	err  atomic.Pointer[error]
	once sync.Once

	lookedAt atomic.Int64 // when free space was looked at last, in ms since opened
	opened   time.Time
	full     atomic.Bool // there was less than minFree then

	// Tables that found no room are written again until they do.
	flushing   atomic.Bool  // such a table is one of recent changes
	compacting atomic.Bool  // such a table is a rewritten one
	stalled    atomic.Bool  // a call waits for a flush
	unflushed  atomic.Int64 // about how many bytes changed since the last flush
	maxChanges int64        // of unflushed, while flushing fails

	stopped chan struct{} // closed by stop
}

// compactionWrites is what Pebble calls its writes of rewritten tables.
const compactionWrites vfs.DiskWriteCategory = "pebble-compaction"

const (
	lookEvery  = 100 * time.Millisecond // at free space
	retryAfter = 500 * time.Millisecond // of a table that found no room

	openAgain    = 20 * time.Millisecond // a file for which there was no descriptor
	openChangeIn = 30 * time.Second      // such a file, before its failure freezes the disk
	openReadIn   = time.Second           // before a read fails
)

func newDisk(fs vfs.FS, c Config, onFail func(error)) *disk {
	return &disk{
		FS: fs, dir: c.Dir, minFree: uint64(c.MinFree), maxChanges: 2 * int64(c.MemTable),
		onFail: onFail, onFull: func(bool) {}, opened: time.Now(), stopped: make(chan struct{}),
	}
}

// failure returns what froze the disk, or nil.
func (d *disk) failure() error {
	if err := d.err.Load(); err != nil {
		return *err
	}
	return nil
}

// freeze makes err the failure of the disk, unless it has one.
func (d *disk) freeze(err error) {
	d.once.Do(func() {
		d.err.Store(&err)
		d.onFail(err)
	})
}

// stop makes background work give up: a table that is being written is dropped, and
// written again when the directory is opened next. It is called once.
func (d *disk) stop() { close(d.stopped) }

var errStopped = errors.New("the store is being closed")

func (d *disk) isStopped() bool {
	select {
	case <-d.stopped:
		return true
	default:
		return false
	}
}

// change runs an operation that changes the directory, or pretends to.
func (d *disk) change(name string, category vfs.DiskWriteCategory, op func() error) error {
	if d.failure() != nil {
		return nil
	}
	if isTable(name) && d.isStopped() {
		return errStopped
	}
	err := op()
	if err == nil {
		return nil
	}
	if isTable(name) && noSpace(err) {
		d.crowd(category == compactionWrites)
		d.wait(retryAfter) // Pebble would try again at once, for ever
		return err
	}
	d.freeze(err)
	return nil
}

func (d *disk) wait(pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-d.stopped:
	}
}

// openSoon opens a file, and tries again for some time while there is no descriptor for it.
func (d *disk) openSoon(within time.Duration, op func() (vfs.File, error)) (vfs.File, error) {
	for end := time.Now().Add(within); ; d.wait(openAgain) {
		f, err := op()
		if err == nil {
			return f, nil
		}
		if !noDescriptor(err) || d.isStopped() || !time.Now().Before(end) {
			return nil, err
		}
	}
}

func noDescriptor(err error) bool {
	return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE)
}

func isTable(name string) bool { return strings.HasSuffix(name, ".sst") }

func noSpace(err error) bool {
	return vfs.IsNoSpaceError(err) || errors.Is(err, unix.EDQUOT)
}

// room reports whether there is space to add tasks.
func (d *disk) room() bool {
	now := time.Since(d.opened).Milliseconds() + 1
	last := d.lookedAt.Load()
	if last == 0 || now-last >= lookEvery.Milliseconds() {
		if d.lookedAt.CompareAndSwap(last, now) {
			d.look()
		}
	}
	return !d.full.Load() && !d.flushing.Load() && !d.compacting.Load()
}

// changed counts what was written to the log, and will be flushed to a table.
func (d *disk) changed(bytes, keys int) {
	const perKey = 100 // about what a key takes in memory besides its bytes
	d.unflushed.Add(int64(bytes + perKey*keys))
}

// crowd notes that a table found no room.
func (d *disk) crowd(compaction bool) {
	if compaction {
		d.compacting.Store(true)
	} else {
		d.flushing.Store(true)
	}
}

// flushed notes how a flush ended. When one finds no room while a call waits for it,
// there is no knowing for how long: the store fails rather than keep callers waiting.
func (d *disk) flushed(err error) {
	switch {
	case err == nil:
		d.flushing.Store(false)
		d.unflushed.Store(0)
	case noSpace(err) && d.stalled.Load():
		d.freeze(err)
	}
}

// compacted notes how a compaction ended.
func (d *disk) compacted(err error) {
	if err == nil {
		d.compacting.Store(false)
	}
}

// brimming reports whether there is no room on the disk for changes, and soon none
// in memory: then Pebble would keep the next call waiting for as long as that lasts.
func (d *disk) brimming() bool { return d.flushing.Load() && d.unflushed.Load() > d.maxChanges }

func (d *disk) look() {
	usage, err := d.FS.GetDiskUsage(d.dir)
	if err != nil {
		return // not known: the writes will tell
	}
	if full := usage.AvailBytes < d.minFree; d.full.Swap(full) != full {
		d.onFull(full)
	}
}

// logsAhead is how many logs there may be before the first flush: a new store begins
// with a small memtable, doubles it, and changes the log with each.
const logsAhead = 8

// spare reports whether a log may take the space that it will need ahead of time. That
// makes writes faster, and must not be what fills a small disk: the logs of a new store
// would take logsAhead times as much as all of its tasks.
func (d *disk) spare(length int64) bool {
	usage, err := d.FS.GetDiskUsage(d.dir)
	return err == nil && usage.AvailBytes >= d.minFree+logsAhead*uint64(length)
}

// The operations that change the directory.

func (d *disk) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return d.open(name, category, func() (vfs.File, error) { return d.FS.Create(name, category) })
}

func (d *disk) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return d.open(name, category, func() (vfs.File, error) { return d.FS.OpenReadWrite(name, category, opts...) })
}

func (d *disk) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	d.gone(oldname)
	return d.open(newname, category, func() (vfs.File, error) {
		f, err := d.FS.ReuseForWrite(oldname, newname, category)
		if errors.Is(err, os.ErrNotExist) { // it has its new name since an attempt that found no descriptor
			return d.FS.OpenReadWrite(newname, category)
		}
		return f, err
	})
}

func (d *disk) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	d.read.Store(&name)
	return d.openSoon(openReadIn, func() (vfs.File, error) { return d.FS.Open(name, opts...) })
}

func (d *disk) OpenDir(name string) (vfs.File, error) {
	f, err := d.openSoon(openReadIn, func() (vfs.File, error) { return d.FS.OpenDir(name) })
	if err != nil {
		return nil, err
	}
	return &file{File: f, disk: d, name: name}, nil
}

// open opens a file for writing. Its File is nil when the disk is frozen.
func (d *disk) open(name string, category vfs.DiskWriteCategory, op func() (vfs.File, error)) (vfs.File, error) {
	f := &file{disk: d, name: name, category: category}
	err := d.change(name, category, func() (err error) {
		f.File, err = d.openSoon(openChangeIn, op)
		return err
	})
	if err != nil {
		return nil, err
	}
	if f.File == nil {
		f.File = vfs.NewMemFile(nil) // where reads of a file that is not there go
	}
	if log, ok := d.logOf(name); ok {
		f.mark = d.logs.take(log)
	}
	return f, nil
}

// logOf returns the number of a log of the directory, if name is one.
func (d *disk) logOf(name string) (log uint64, ok bool) {
	if log, ok = logNumber(d.FS.PathBase(name)); !ok || d.logs == nil || d.FS.PathDir(name) != d.dir {
		return 0, false
	}
	return log, true
}

// gone notes that there is no file of that name any more.
func (d *disk) gone(name string) {
	if log, ok := d.logOf(name); ok {
		d.logs.free(log)
	}
}

func (d *disk) Link(oldname, newname string) error {
	return d.change(newname, "", func() error { return d.FS.Link(oldname, newname) })
}

func (d *disk) Rename(oldname, newname string) error {
	return d.change(newname, "", func() error { return d.FS.Rename(oldname, newname) })
}

func (d *disk) MkdirAll(dir string, perm os.FileMode) error {
	return d.change(dir, "", func() error { return d.FS.MkdirAll(dir, perm) })
}

// Remove and RemoveAll may fail without harm: a file too many is found again.

func (d *disk) Remove(name string) error {
	if d.failure() != nil {
		return nil
	}
	d.gone(name)
	return d.FS.Remove(name)
}

func (d *disk) RemoveAll(name string) error {
	if d.failure() != nil {
		return nil
	}
	return d.FS.RemoveAll(name)
}

func (d *disk) Unwrap() vfs.FS { return d.FS }

// file is a file of a disk that is open for writing.
type file struct {
	vfs.File
	disk     *disk
	name     string
	category vfs.DiskWriteCategory
	mark     *logMark // nil of what is no log
}

func (f *file) change(op func() error) error { return f.disk.change(f.name, f.category, op) }

func (f *file) Write(p []byte) (n int, err error) {
	n = len(p)
	err = f.change(func() (err error) { n, err = f.File.Write(p); return err })
	if err == nil {
		n = len(p) // also when frozen
	}
	if f.mark != nil {
		f.mark.written += int64(n)
	}
	return n, err
}

func (f *file) WriteAt(p []byte, offset int64) (n int, err error) {
	n = len(p)
	err = f.change(func() (err error) { n, err = f.File.WriteAt(p, offset); return err })
	if err == nil {
		n = len(p)
	}
	return n, err
}

// Preallocate does without when space is short. The writes that follow take what they need.
func (f *file) Preallocate(offset, length int64) error {
	if !f.disk.spare(length) {
		return nil
	}
	return f.change(func() error { return f.File.Preallocate(offset, length) })
}

func (f *file) Sync() error { return f.synced(f.File.Sync) }

func (f *file) SyncData() error { return f.synced(f.File.SyncData) }

// synced runs a sync, and notes how far a log is synced before anybody is told of it. A log that has no name any more is
// on no disk once it is closed: somebody deleted it.
func (f *file) synced(op func() error) error {
	return f.change(func() error {
		if err := op(); err != nil || f.mark == nil {
			return err
		}
		if nameless(f.File) {
			return fmt.Errorf("%s: %w", f.disk.FS.PathBase(f.name), store.ErrDeleted)
		}
		return f.mark.synced()
	})
}

// nameless reports whether a file of the system is in no directory any more.
func nameless(f vfs.File) bool {
	fd := f.Fd()
	if fd == vfs.InvalidFd {
		return false
	}
	var s unix.Stat_t
	return unix.Fstat(int(fd), &s) == nil && s.Nlink == 0
}

func (f *file) SyncTo(length int64) (full bool, err error) {
	err = f.change(func() (err error) { full, err = f.File.SyncTo(length); return err })
	return full, err
}

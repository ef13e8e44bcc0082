package pebblestore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ddq-io/ddq/store"
)

// Store is a store.Store in a directory of this machine. It owns what Pebble
// starts, and after a failure one goroutine that closes Pebble.
type Store struct {
	dir  string
	log  *slog.Logger
	disk *disk
	boot boot
	lock *pebble.Lock
	db   *pebble.DB

	use      sync.RWMutex // held for reading by calls, for writing by whoever closes db
	closed   bool         // guarded by use: Close was called
	dbClosed bool         // guarded by use
	failing  sync.WaitGroup

	mu       sync.RWMutex
	shards   map[store.Shard]*shard // guarded by mu
	lastID   uint32                 // guarded by mu: the highest number of a shard
	sessions sessions
	topics   sync.Mutex // one change of a topic at a time
	limits   limits
}

var _ store.Store = (*Store)(nil)

// Open opens the store in c.Dir, creating it when there is none. It returns
// store.ErrLocked, naming the directory, when another process uses it.
func Open(c Config, log *slog.Logger) (*Store, error) {
	dir, err := makeDir(c.Dir)
	if err != nil {
		return nil, fmt.Errorf("open data directory %q: %w", c.Dir, err)
	}
	c.Dir = dir
	return open(c, vfs.Default, log)
}

// makeDir returns the one absolute name of dir, by which it is locked. When it has to
// be created, it is durable on return.
func makeDir(dir string) (string, error) {
	if dir == "" {
		return "", errors.New("no directory given")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if err := mkdirAll(dir); err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(dir)
}

func mkdirAll(dir string) error {
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parent := filepath.Dir(dir)
	if err := mkdirAll(parent); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(parent)
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func open(c Config, files vfs.FS, log *slog.Logger) (*Store, error) {
	c = c.withDefaults()
	s := &Store{dir: c.Dir, log: log, shards: make(map[store.Shard]*shard)}
	s.sessions.byNode = make(map[string]session)
	rand.Read(s.boot[:]) //nolint:errcheck // never fails
	s.disk = newDisk(files, c, s.fail)
	s.disk.onFull = s.noteFull

	lock, err := lockDir(c.Dir, files)
	if err != nil {
		return nil, err
	}
	s.lock = lock
	if err := s.openDB(c); err != nil {
		s.Close() //nolint:errcheck // what kept it from opening is what is reported
		return nil, s.openError(err)
	}
	return s, nil
}

// openDB opens the database and reads what is kept in memory.
func (s *Store) openDB(c Config) (err error) {
	s.use.Lock() // so that a failure meanwhile closes what is open afterwards
	defer s.use.Unlock()
	if err := checkManifest(c.Dir, s.disk); err != nil {
		return err
	}
	compact := newCompactions()
	if s.db, err = pebble.Open(c.Dir, options(c, s.disk, s.lock, compact, s.log)); err != nil {
		return err
	}
	if err := errors.Join(s.readCatalog(), s.readLimits()); err != nil {
		return err
	}
	compact.begin()
	return s.disk.failure()
}

func lockDir(dir string, files vfs.FS) (*pebble.Lock, error) {
	lock, err := pebble.LockDirectory(dir, files)
	if err == nil {
		return lock, nil
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		return nil, fmt.Errorf("open data directory %s: %w", dir, err)
	}
	return nil, fmt.Errorf("%w: %s", store.ErrLocked, dir)
}

// openError says why the directory cannot be opened.
func (s *Store) openError(err error) error {
	if failure := s.disk.failure(); failure != nil {
		err = failure // what came before Pebble's own error, and caused it
	}
	if noSpace(err) {
		return fmt.Errorf("open data directory %s: %w: %w", s.dir, store.ErrFull, err)
	}
	return fmt.Errorf("open data directory %s: %w", s.dir, err)
}

// fail is called once, when the disk froze, by the call or the background work
// that found out. It ends Pebble's background work once all calls have left.
func (s *Store) fail(cause error) {
	s.log.Error("data directory failed and is not written any more", "dir", s.dir, "err", cause)
	s.failing.Add(1)
	go func() {
		defer s.failing.Done()
		s.use.Lock()
		defer s.use.Unlock()
		s.closeDB() //nolint:errcheck // the failure is what is reported
	}()
}

// noteFull is called, between enter and leave, when the disk became nearly full or is not
// any more. What waits in memory is written to tables then: their logs may give back
// space, and nothing else would make them while no task is added.
func (s *Store) noteFull(full bool) {
	if !full {
		s.log.Info("data directory has room again", "dir", s.dir)
		return
	}
	s.log.Warn("disk is nearly full, no tasks are added", "dir", s.dir, "free_bytes_needed", s.disk.minFree)
	if s.disk.flushing.Load() {
		return // tables find no room, and this would wait for them
	}
	if _, err := s.db.AsyncFlush(); err != nil {
		s.log.Warn("tables not written ahead of time", "err", err)
	}
}

// Close waits for running calls and ends background work. It may be called twice.
func (s *Store) Close() error {
	s.use.Lock()
	s.closed = true
	err := s.closeDB()
	s.use.Unlock()
	s.failing.Wait()
	if failure := s.disk.failure(); failure != nil {
		return s.failed(store.ErrUnavailable)
	}
	return err
}

// closeDB is called under use.
func (s *Store) closeDB() error {
	if s.dbClosed {
		return nil
	}
	s.dbClosed = true
	s.disk.stop()
	var err error
	if s.db != nil {
		err = s.db.Close()
	}
	if err = errors.Join(err, s.lock.Close()); err != nil {
		return fmt.Errorf("close data directory %s: %w", s.dir, err)
	}
	return nil
}

// enter begins a call; leave ends it. Between them the database is open.
func (s *Store) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.use.RLock()
	err := s.usable()
	if err != nil {
		s.use.RUnlock()
	}
	return err
}

func (s *Store) leave() { s.use.RUnlock() }

func (s *Store) usable() error {
	switch {
	case s.closed:
		return store.ErrClosed
	case s.disk.failure() != nil:
		return s.failed(store.ErrUnavailable)
	}
	return nil
}

// Failed returns what froze the directory, or nil. The store answers nothing until it
// is opened anew.
func (s *Store) Failed() error {
	if s.disk.failure() == nil {
		return nil
	}
	return s.failed(store.ErrUnavailable)
}

// failed wraps what froze the disk as kind.
func (s *Store) failed(kind error) error {
	return fmt.Errorf("%w: data directory %s: %w", kind, s.dir, s.disk.failure())
}

// readError says that the database could not be read.
func (s *Store) readError(err error) error {
	return fmt.Errorf("%w: data directory %s: %w", store.ErrUnavailable, s.dir, err)
}

// Info returns what is true of every store of this kind: each answer is synced.
func (s *Store) Info(ctx context.Context) (store.Info, error) {
	if err := s.enter(ctx); err != nil {
		return store.Info{}, err
	}
	defer s.leave()
	info := store.Info{Name: "embedded", Durability: "synced"}
	if !s.disk.room() {
		info.Warnings = append(info.Warnings, fmt.Sprintf("disk of %s is nearly full: no tasks are added", s.dir))
	}
	if mode, err := os.Stat(s.dir); err == nil && mode.Mode().Perm()&0o077 != 0 {
		info.Warnings = append(info.Warnings, fmt.Sprintf("data directory %s is open to other users: chmod 700 it", s.dir))
	}
	return info, nil
}

// Clock returns the clock of this process.
func (s *Store) Clock(ctx context.Context) (time.Time, error) {
	if err := s.enter(ctx); err != nil {
		return time.Time{}, err
	}
	defer s.leave()
	return now(), nil
}

func now() time.Time { return time.UnixMicro(time.Now().UnixMicro()).UTC() }

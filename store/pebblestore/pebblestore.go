package pebblestore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/life"
	"github.com/ddq-io/ddq/store/pebblestore/datadir"
)

// Store is a store.Store in a directory of this machine. It has a type for each role. It owns
// one goroutine, which counts pending tasks by due time where somebody asks for that.
type Store struct {
	*base
	taskWriter
	shardOwner
	taskReader
	retention
	catalog
	limits
	logs
	index
	registry
	cellKeeper
	rewriter
}

type (
	taskWriter struct{ *base }
	retention  struct{ *base }
	logs       struct{ *base }
	index      struct{ *base }
)

// base is what the roles share.
type base struct {
	dir    *datadir.Dir
	shards shards
	walker *dueWalker

	onInBox func(s store.Shard, in int64) // see store.Early; nil: nobody asked
}

var (
	_ store.Store    = (*Store)(nil)
	_ store.Registry = (*Store)(nil)
	_ store.Cells    = (*Store)(nil)
	_ store.Rewriter = (*Store)(nil)
	_ store.Early    = (*Store)(nil)
)

// Open opens the store in c.Dir, creating it when there is none. It returns
// store.ErrLocked, naming the directory, when another process uses it.
func Open(c Config, log *slog.Logger) (*Store, error) {
	dir, err := datadir.Make(c.Dir)
	if err != nil {
		return nil, fmt.Errorf("open data directory %q: %w", c.Dir, err)
	}
	c.Dir = dir
	return open(c, datadir.Files(), log)
}

func open(c Config, files vfs.FS, log *slog.Logger) (*Store, error) {
	b := new(base)
	s := &Store{
		base:       b,
		taskWriter: taskWriter{b},
		shardOwner: shardOwner{base: b, sessions: sessions{byNode: make(map[string]life.Session)}},
		taskReader: taskReader{base: b},
		retention:  retention{b},
		catalog:    catalog{base: b},
		limits:     limits{base: b},
		logs:       logs{b},
		index:      index{b},
		registry:   registry{base: b, count: make(map[string]int)},
		cellKeeper: cellKeeper{b},
		rewriter:   rewriter{b},
	}
	rand.Read(s.boot[:]) //nolint:errcheck // never fails
	d, err := datadir.Open(c, files, log, s.load)
	if err != nil {
		return nil, err
	}
	s.dir = d
	s.walker = startDueWalker(b)
	return s, nil
}

// load reads what is kept in memory.
func (s *Store) load(d *datadir.Dir) error {
	if err := s.shards.layout.read(d); err != nil {
		return err
	}
	if err := errors.Join(s.shards.read(d), s.limits.read(d)); err != nil {
		return err
	}
	return readPermits(d, &s.shards, s.limits.table)
}

// Close waits for running calls and ends background work. It may be called twice.
func (s *Store) Close() error {
	s.walker.close()
	return s.dir.Close()
}

// Failed returns what froze the directory, or nil. The store answers nothing until it
// is opened anew.
func (s *Store) Failed() error { return s.dir.Failed() }

// OnInBox implements store.Early.
func (s *Store) OnInBox(f func(s store.Shard, in int64)) { s.onInBox = f }

// Info returns what is true of every store of this kind: each answer is synced.
func (s *Store) Info(ctx context.Context) (store.Info, error) {
	if err := s.dir.Enter(ctx); err != nil {
		return store.Info{}, err
	}
	defer s.dir.Leave()
	info := store.Info{Name: "embedded", Durability: "synced"}
	if !s.dir.Room() {
		info.Warnings = append(info.Warnings, fmt.Sprintf("disk of %s is nearly full: no tasks are added", s.dir.Path()))
	}
	if mode, err := os.Stat(s.dir.Path()); err == nil && mode.Mode().Perm()&0o077 != 0 {
		info.Warnings = append(info.Warnings, fmt.Sprintf("data directory %s is open to other users: chmod 700 it", s.dir.Path()))
	}
	return info, nil
}

// Clock returns the clock of this process.
func (s *Store) Clock(ctx context.Context) (time.Time, error) {
	if err := s.dir.Enter(ctx); err != nil {
		return time.Time{}, err
	}
	defer s.dir.Leave()
	return now(), nil
}

// change runs a transaction at the shard, and returns when what it did is synced.
func (s *base) change(ctx context.Context, name store.Shard, a access, do func(*transaction) error) (store.Stamp, error) {
	if err := s.dir.Enter(ctx); err != nil {
		return store.Stamp{}, err
	}
	defer s.dir.Leave()
	if a.grows && !a.full && !s.dir.Room() {
		return store.Stamp{}, s.dir.FullError()
	}
	t := begin(s.dir, s.shards.get(name, a.grows || a.owned))
	stamp, err := t.run(name.Life, a, do)
	if err == nil {
		t.tell(s, stamp)
	}
	return stamp, t.end(err)
}

// glance runs a transaction that only reads the shard, and may see what is not synced yet.
func (s *base) glance(ctx context.Context, name store.Shard, do func(*transaction) error) error {
	if err := s.dir.Enter(ctx); err != nil {
		return err
	}
	defer s.dir.Leave()
	t := begin(s.dir, s.shards.get(name, false))
	_, err := t.run(name.Life, access{}, do)
	if s.dir.Failed() != nil {
		return t.abandon(false)
	}
	t.recycle()
	return err
}

// changeEach runs a transaction that does something for each of n items, in turn, and returns
// their results.
func changeEach[R any](ctx context.Context, s *base, name store.Shard, a access, n int, do func(t *transaction, i int) (R, error)) (store.Stamp, []R, error) {
	results := make([]R, n)
	stamp, err := s.change(ctx, name, a, func(t *transaction) (err error) {
		for i := range results {
			if results[i], err = do(t, i); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return store.Stamp{}, nil, err
	}
	return stamp, results, nil
}

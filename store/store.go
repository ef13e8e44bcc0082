package store

import (
	"context"
	"time"
)

// Store keeps tasks. It has a role for everything that is done with them, and whoever
// needs one takes that role and not the whole.
//
// All methods are safe for concurrent use. Slices passed in are not kept, and those
// returned belong to the caller; a batch may have any size, an empty one does nothing.
// Results have one entry per item, in order, unless a method says otherwise.
//
// Unless a method says otherwise its errors are ErrUnavailable, ErrUnknown,
// ErrFull, ErrFenced for owner calls, ErrClosed, and the context's.
type Store interface {
	Writer
	Owner
	Reader
	Retention
	Catalog
	Limits
	Taker
	Log
	Index

	// Info says what an acknowledgement is worth and what is wrong with the store.
	Info(ctx context.Context) (Info, error)
	// Clock returns the store's clock.
	Clock(ctx context.Context) (time.Time, error)
	// Close ends background work and waits for it. It may be called twice.
	Close() error
}

// Stamp is what every reply about a shard carries.
type Stamp struct {
	Now time.Time // the store's clock, to the microsecond
	Seq int64     // number of calls so far that made tasks of the shard pending
	In  int64     // number of the last parcel that the in-box got; 0: none yet

	// Server tells the server that answered from others: it is another number once the
	// server was restarted, or another took over. Then what was answered before may be
	// lost. Claim, Counts, Stats and Wakes say it; 0: not known, or all is in one process.
	Server uint64
}

// Info describes a store.
type Info struct {
	Name       string // embedded, memory, redis-everysec, redis-always, redis-no-fsync, redis-volatile
	Durability string // fast, replicated, synced, none
	Warnings   []string

	// ManyClocks says that shards may lie on machines whose clocks differ: a stamp
	// counts for its shard only, and Clock for none. It does not change.
	ManyClocks bool

	// Servers changes whenever a server of the store is found to be another one than before,
	// see Stamp.Server. To know it asks the store nothing.
	Servers uint64
}

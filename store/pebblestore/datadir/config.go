package datadir

import "time"

// Config says where the database lies and what memory it may use. Only Dir is required.
type Config struct {
	// Dir is the data directory. It is created with mode 0700 when absent, and one
	// process may use it at a time.
	Dir string

	// MemTable is how many bytes of recent changes are kept in memory before they
	// are written out in order. Up to four of them exist at a time. Larger ones
	// let more tasks come and go without touching a table at all, and make a
	// restart slower, as that much log is read again. Defaults to 64 MiB.
	MemTable int

	// Cache is how many bytes of tables are kept in memory. Defaults to 64 MiB.
	Cache int

	// MinFree is how many bytes must be free on the disk for tasks to be added:
	// Add and HoldNew answer ErrFull below it, so that there is room to settle
	// what is held and to rewrite tables. Defaults to 256 MiB.
	MinFree int

	// OpenFiles is about how many files are open at a time. Fewer cost opening tables again.
	// No fewer than 74 are used. Defaults to 1000.
	OpenFiles int

	// SyncInterval is the shortest time between two syncs of the log. Longer ones
	// put more calls into one sync, at the price of that latency. Defaults to 0:
	// sync as soon as the last one is over.
	SyncInterval time.Duration
}

func (c Config) withDefaults() Config {
	if c.MemTable <= 0 {
		c.MemTable = 64 << 20
	}
	if c.Cache <= 0 {
		c.Cache = 64 << 20
	}
	if c.OpenFiles <= 0 {
		c.OpenFiles = 1000
	}
	if c.MinFree <= 0 {
		c.MinFree = 256 << 20
	}
	return c
}

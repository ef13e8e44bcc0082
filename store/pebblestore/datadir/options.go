package datadir

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
)

// options are those of Pebble. Values that are not explained here were measured:
// see the benchmarks.
func options(c Config, d *disk, lock *pebble.Lock, compact *compactions, log *slog.Logger) *pebble.Options {
	o := &pebble.Options{
		FS:                          d,
		Lock:                        lock,
		FormatMajorVersion:          pebble.FormatWALSyncChunks,           // tells a torn end of the log from damage within
		CacheSize:                   int64(c.Cache) + 2*int64(c.MemTable), // Pebble takes those of the memtables off
		MemTableSize:                uint64(c.MemTable),
		MemTableStopWritesThreshold: 4,
		L0CompactionThreshold:       4,
		L0StopWritesThreshold:       32,
		LBaseMaxBytes:               256 << 20,
		CompactionConcurrencyRange:  func() (int, int) { return compactors, compactors },
		MaxOpenFiles:                c.OpenFiles,
		Logger:                      logger{log, d},
		EventListener:               listener(d, log),
	}
	if c.SyncInterval > 0 {
		o.WALMinSyncInterval = func() time.Duration { return c.SyncInterval }
	}
	for i := range o.Levels {
		o.Levels[i].BlockSize = 16 << 10
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10) // most ids that are looked up to be added are new
	}
	o.Experimental.CompactionScheduler = compact
	o.TargetFileSizes[0] = 16 << 20
	o.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return pebble.DBCompressionFastest })
	return o
}

func listener(d *disk, log *slog.Logger) *pebble.EventListener {
	return &pebble.EventListener{
		BackgroundError: func(err error) {
			if d.failure() == nil && !d.isStopped() {
				log.Warn("background work of the data directory failed", "err", err)
			}
		},
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			d.freeze(fmt.Errorf("damaged file %s, bring the directory back from a copy: %w", info.Path, info.Details))
		},
		FlushEnd:      func(info pebble.FlushInfo) { d.flushed(info.Err) },
		CompactionEnd: func(info pebble.CompactionInfo) { d.compacted(info.Err) },
		WriteStallEnd: func() { d.stalled.Store(false) },
		WriteStallBegin: func(info pebble.WriteStallBeginInfo) {
			d.stalled.Store(true)
			log.Warn("writes wait for the disk to catch up", "reason", info.Reason)
		},
	}
}

// logger hands Pebble's messages to slog. A fatal one freezes the disk and lets
// the process live.
type logger struct {
	log  *slog.Logger
	disk *disk
}

func (l logger) Infof(format string, args ...any) {
	if l.log.Enabled(context.Background(), slog.LevelDebug) {
		l.log.Debug("pebble", "text", fmt.Sprintf(format, args...))
	}
}

func (l logger) Errorf(format string, args ...any) {
	if l.disk.failure() == nil && !l.disk.isStopped() {
		l.log.Error("pebble", "text", fmt.Sprintf(format, args...))
	}
}

func (l logger) Fatalf(format string, args ...any) {
	l.disk.freeze(fmt.Errorf(format, args...))
}

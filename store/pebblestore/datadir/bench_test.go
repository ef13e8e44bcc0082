package datadir

import (
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// BenchmarkLogSync writes and syncs 4 KiB of a log at a time, and notes how far it is synced. It reports the
// medians of both together and of the note, and the share of the notes in all of the time.
func BenchmarkLogSync(b *testing.B) {
	dir := b.TempDir()
	d := newDisk(vfs.Default, Config{Dir: dir}.withDefaults(), func(err error) { b.Error(err) })
	logs, err := openSynced(d, nil)
	if err != nil {
		b.Fatal(err)
	}
	d.logs = logs
	opened, err := d.Create(d.FS.PathJoin(dir, logName(1)), "")
	if err != nil {
		b.Fatal(err)
	}
	f, mark := opened.(*file), opened.(*file).mark
	f.mark = nil // noted below, to be measured by itself
	block := make([]byte, 4<<10)
	var syncs, notes []time.Duration
	for b.Loop() {
		if _, err := f.Write(block); err != nil {
			b.Fatal(err)
		}
		mark.written += int64(len(block))
		start := time.Now()
		if err := f.SyncData(); err != nil {
			b.Fatal(err)
		}
		synced := time.Now()
		if err := mark.synced(); err != nil {
			b.Fatal(err)
		}
		syncs, notes = append(syncs, time.Since(start)), append(notes, time.Since(synced))
	}
	b.ReportMetric(100*float64(sum(notes))/float64(sum(syncs)), "note-%")
	b.ReportMetric(median(syncs), "sync-us")
	b.ReportMetric(median(notes), "note-us")
	if err := f.Close(); err != nil {
		b.Error(err)
	}
	if err := logs.close(); err != nil {
		b.Error(err)
	}
}

func median(d []time.Duration) (us float64) {
	slices.Sort(d)
	return float64(d[len(d)/2].Nanoseconds()) / 1e3
}

func sum(d []time.Duration) (total time.Duration) {
	for _, d := range d {
		total += d
	}
	return total
}

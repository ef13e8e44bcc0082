package datadir

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// TestLogsTakeNoSpaceAheadOnASmallDisk counts what Pebble's logs ask for beyond what
// they hold.
func TestLogsTakeNoSpaceAheadOnASmallDisk(t *testing.T) {
	for avail, want := range map[uint64]int{1 << 40: 1, 700 << 20: 0} {
		inner, taken := vfs.NewMem(), 0
		inner.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: avail})
		fs := errorfs.Wrap(inner, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == errorfs.OpFilePreallocate {
				taken++
			}
			return nil
		}))
		d := newDisk(fs, Config{}.withDefaults(), func(err error) { t.Error(err) })
		f, err := d.Create("000001.log", "pebble-wal")
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Preallocate(0, 70<<20); err != nil || taken != want {
			t.Errorf("with %d MiB free, space was taken ahead %d times, want %d: %v", avail>>20, taken, want, err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

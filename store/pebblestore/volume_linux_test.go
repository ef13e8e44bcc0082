package pebblestore

import (
	"fmt"
	"testing"

	"golang.org/x/sys/unix"
)

// smallVolume mounts a file system of that size, for which the test has to be root.
func smallVolume(t *testing.T, size int) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
		t.Skipf("mount: %v", err)
	}
	t.Cleanup(func() {
		// Detached: Pebble leaves a table open whose compaction was cut short by Close.
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return dir
}

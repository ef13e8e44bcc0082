package datadir

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestManifestThatIsCutOffIsOpened is what a crash leaves behind while a record is being
// written: it ends anywhere, perhaps in zeros.
func TestManifestThatIsCutOffIsOpened(t *testing.T) {
	whole := filledManifest(t)
	for n := range whole {
		for _, tail := range []string{"", strings.Repeat("\x00", 600)} {
			if at, damaged := damagedAt([]byte(whole[:n] + tail)); damaged {
				t.Errorf("cut off at byte %d, with %d zeros behind it, it is damaged at byte %d", n, len(tail), at)
			}
		}
	}
}

// filledManifest returns the manifest of a directory that was closed, with keys in tables.
func filledManifest(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	d, err := Open(Config{Dir: dir}, vfs.Default, slog.New(slog.DiscardHandler), func(*Dir) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"a", "b", "c"} {
		if err := d.Set([]byte(key), nil); err != nil {
			t.Fatal(err)
		}
		if err := d.DB().Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(dir, "MANIFEST-*"))
	if err != nil || len(names) != 1 {
		t.Fatalf("manifests %v: %v", names, err)
	}
	manifest, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	return string(manifest)
}

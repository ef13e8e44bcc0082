package pebblestore

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// filledDir returns a directory that was closed, with tasks in tables, and its files.
func filledDir(t *testing.T) (dir string, files map[string]string) {
	t.Helper()
	dir = t.TempDir()
	s, err := Open(Config{Dir: dir}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		add(t, s, crashShards[0], fmt.Sprint(i))
		if err := s.dir.DB().Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dir, filesOf(t, dir)
}

func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string]string)
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(name)] = string(b)
	}
	return files
}

func write(t *testing.T, dir, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func manifestOf(t *testing.T, files map[string]string) string {
	t.Helper()
	for name := range files {
		if strings.HasPrefix(name, "MANIFEST-") {
			return name
		}
	}
	t.Fatalf("there is no manifest among %v", slices.Collect(maps.Keys(files)))
	return ""
}

// TestManifestWithAFlippedBitIsRefused flips every bit of a manifest. Some of them made
// Pebble forget tables, and delete them.
func TestManifestWithAFlippedBitIsRefused(t *testing.T) {
	dir, files := filledDir(t)
	name := manifestOf(t, files)
	for i := range files[name] {
		for bit := range 8 {
			flipped := []byte(files[name])
			flipped[i] ^= 1 << bit
			files := maps.Clone(files)
			files[name] = string(flipped)
			write(t, dir, name, files[name])
			if s, err := Open(Config{Dir: dir}, quiet); err == nil {
				s.Close() //nolint:errcheck // it was opened wrongly
				t.Fatalf("opened with bit %d of byte %d of %d flipped", bit, i, len(flipped))
			} else if !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), dir) {
				t.Fatalf("the error does not name the file: %v", err)
			}
			if !maps.Equal(filesOf(t, dir), files) {
				t.Fatalf("opening with bit %d of byte %d flipped changed the directory", bit, i)
			}
		}
	}
	write(t, dir, name, files[name])
	verifyTasks(t, dir, 3)
}

func TestTablesWithoutAManifestAreRefused(t *testing.T) {
	dir, files := filledDir(t)
	for name := range files {
		if strings.HasPrefix(name, "marker.manifest") {
			delete(files, name)
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := Open(Config{Dir: dir}, quiet); err == nil || !strings.Contains(err.Error(), ".sst") {
		t.Errorf("opening tables without a manifest answered %v", err)
	}
	if !maps.Equal(filesOf(t, dir), files) {
		t.Error("opening changed the directory")
	}
}

// verifyTasks checks how many tasks there are in a directory.
func verifyTasks(t *testing.T, dir string, want int64) {
	t.Helper()
	counts, err := openStore(t, Config{Dir: dir}).Counts(t.Context(), crashShards[:1])
	if err != nil || counts[0].Pending != want {
		t.Errorf("%d tasks are there, want %d: %v", counts[0].Pending, want, err)
	}
}

package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ddq-io/ddq/store"
)

// Make returns the one absolute name of dir, by which it is locked. When it has to be
// created, it is durable on return.
func Make(dir string) (string, error) {
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

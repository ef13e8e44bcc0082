package datadir

import (
	"errors"
	"io"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const ownerMode = 0o600

// Files returns the file system of this machine, on which only the owner of a store may open its files.
// The directory keeps others out where the store made it, and need not where somebody else did.
func Files() vfs.FS { return ownerOnly{vfs.Default} }

// ownerOnly closes files to other users when they are made.
type ownerOnly struct{ vfs.FS }

func (fs ownerOnly) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.Create(name, category)
	return closed(name, f, err)
}

func (fs ownerOnly) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := fs.FS.OpenReadWrite(name, category, opts...)
	return closed(name, f, err)
}

func (fs ownerOnly) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.ReuseForWrite(oldname, newname, category)
	return closed(newname, f, err)
}

func (fs ownerOnly) Lock(name string) (io.Closer, error) {
	lock, err := fs.FS.Lock(name)
	return closed(name, lock, err)
}

func (fs ownerOnly) MkdirAll(dir string, perm os.FileMode) error {
	return fs.FS.MkdirAll(dir, perm&0o700)
}

func (fs ownerOnly) Unwrap() vfs.FS { return fs.FS }

// closed is f, which nobody but its owner can open any more.
func closed[F io.Closer](name string, f F, err error) (F, error) {
	if err != nil {
		return f, err
	}
	if err := os.Chmod(name, ownerMode); err != nil {
		var none F
		return none, errors.Join(err, f.Close())
	}
	return f, nil
}

package auth

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// WriteNew writes the text into a file of its own, which only its owner can read. The file
// is whole or not there, also for others that write it at the same moment: the first one
// makes it, and for the rest the error is fs.ErrExist.
func (s Secret) WriteNew(name string) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".secret-*") // of mode 0600
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, s.Reveal())
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Link(f.Name(), name)
	}
	return errors.Join(err, os.Remove(f.Name()))
}

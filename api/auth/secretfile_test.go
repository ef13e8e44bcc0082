package auth

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// TestOneWriterMakesASecretFile: nodes that share a folder start at the same moment.
func TestOneWriterMakesASecretFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "root-token")
	var writers sync.WaitGroup
	outcomes := make(chan error, 8)
	for range cap(outcomes) {
		writers.Go(func() {
			_, secret, _ := NewToken()
			outcomes <- secret.WriteNew(name)
		})
	}
	writers.Wait()
	made := 0
	for range cap(outcomes) {
		switch err := <-outcomes; {
		case err == nil:
			made++
		case !errors.Is(err, fs.ErrExist):
			t.Error(err)
		}
	}
	if made != 1 {
		t.Errorf("%d made the file", made)
	}
	info, err := os.Stat(name)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("%v, %v are left", left, err)
	}
}

package pebblestore

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/ddq-io/ddq/store"
)

// TestDeletedDataIsTold deletes the data directory, or the log in it, of a store that is open. What is written after that
// goes nowhere, so nothing is acknowledged any more.
func TestDeletedDataIsTold(t *testing.T) {
	for name, remove := range map[string]func(dir string) error{
		"directory": os.RemoveAll,
		"log": func(dir string) error {
			logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
			for _, log := range logs {
				err = errors.Join(err, os.Remove(log))
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, shard := filepath.Join(t.TempDir(), "data"), crashShards[0]
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			s, err := Open(Config{Dir: dir}, quiet)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if _, _, err := s.Add(t.Context(), shard, []*store.Task{{ID: "a", Due: 1}}); err != nil {
				t.Fatal(err)
			}
			if err := remove(dir); err != nil {
				t.Fatal(err)
			}
			if _, _, err := s.Add(t.Context(), shard, []*store.Task{{ID: "b", Due: 1}}); !errors.Is(err, store.ErrUnknown) || !errors.Is(err, store.ErrDeleted) {
				t.Errorf("the first task behind that: %v", err)
			}
			if _, _, err := s.Add(t.Context(), shard, []*store.Task{{ID: "c", Due: 1}}); !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, store.ErrDeleted) {
				t.Errorf("the second one: %v", err)
			}
			if err := s.Failed(); !errors.Is(err, store.ErrDeleted) {
				t.Errorf("the store says %v", err)
			}
		})
	}
}

package ledger

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Extension is how the files of a ledger end.
const Extension = ".ledger"

// ReadAll reads the events of each client that left a file in dir.
func ReadAll(dir string) ([][]Event, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*"+Extension))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("no *%s file in %s", Extension, dir)
	}
	files := make([][]Event, len(paths))
	for i, path := range paths {
		if files[i], err = ReadFile(path); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return files, nil
}

// ReadFile reads the events of one client. A client that was killed, or a machine
// that stopped, may have left half a line at the end, which did not happen.
func ReadFile(path string) ([]Event, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	client := strings.TrimSuffix(filepath.Base(path), Extension)
	var events []Event
	lines := bufio.NewReaderSize(f, 1<<16)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return events, nil
		}
		if err != nil {
			return nil, err
		}
		var e Event
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("line %d: %w", len(events)+1, err)
		}
		e.Client = client
		events = append(events, e)
	}
}

// Cursors returns the last cursor of each watch that a client was, by name; an empty one
// of a watch that has to begin anew. A client without a ledger was none.
func Cursors(dir, client string) (map[string]string, error) {
	events, err := ReadFile(filepath.Join(dir, client+Extension))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	cursors := map[string]string{}
	for _, e := range events {
		switch e.Kind {
		case Watching, Told:
			cursors[e.Watch] = cmp.Or(e.Cursor, cursors[e.Watch])
		case Expired:
			cursors[e.Watch] = ""
		}
	}
	return cursors, nil
}

package cli

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestPagesNameCommandsThatThereAre: a text of a page that begins with ddq is a command, with its flags.
func TestPagesNameCommandsThatThereAre(t *testing.T) {
	root := rootCommand(newCLI(Streams{}))
	found := 0
	for _, text := range textsOf(t, "../../api/ui") {
		args := strings.Fields(text)
		if len(args) < 2 || args[0] != "ddq" || strings.HasPrefix(args[1], "%") {
			continue
		}
		found++
		cmd, rest, err := root.Find(args[1:])
		if err != nil || cmd == root || cmd.HasSubCommands() && len(rest) > 0 {
			t.Errorf("there is no command %q: %v", text, err)
			continue
		}
		for _, arg := range rest {
			if name, ok := strings.CutPrefix(arg, "--"); ok && cmd.Flag(name) == nil {
				t.Errorf("%q: there is no --%s", text, name)
			}
		}
	}
	if found < 5 {
		t.Errorf("found %d commands in the pages", found)
	}
}

// textsOf are the strings in the Go files of a folder, without tests.
func textsOf(t *testing.T, folder string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var s scanner.Scanner
		files := token.NewFileSet()
		s.Init(files.AddFile(path, -1, len(source)), source, nil, 0)
		for {
			_, tok, lit := s.Scan()
			switch tok {
			case token.EOF:
				return nil
			case token.STRING:
				text, err := strconv.Unquote(lit)
				if err != nil {
					return err
				}
				all = append(all, text)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

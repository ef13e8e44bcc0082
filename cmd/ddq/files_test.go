package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// openFiles are where files are made that others may read.
var openFiles = map[string]string{
	"api/auth/certs/issue.go": "certificates are shown to everybody; keys are made with 0600 there",
}

// makers are the functions that make a file or a directory, and which argument is its mode; -1: there is
// none, and the system's is 0666.
var makers = map[string]int{"os.Create": -1, "os.OpenFile": 2, "os.WriteFile": 2, "os.Mkdir": 1, "os.MkdirAll": 1}

// TestWhatIsMadeIsForItsOwnerOnly walks the source of the server, the commands and the libraries: whatever
// they make has a mode for its owner alone, and none has a fixed name in a folder of everybody.
func TestWhatIsMadeIsForItsOwnerOnly(t *testing.T) {
	root, made := filepath.Join("..", ".."), 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		at, _ := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != root || slices.Contains([]string{"bench", "tools", "deploy", "pgtest", "storetest", "redistest"}, d.Name())):
			return filepath.SkipDir
		case filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BasicLit:
				for _, shared := range []string{"/tmp", "/var/tmp", "/dev/shm"} {
					if text, err := strconv.Unquote(n.Value); n.Kind == token.STRING && err == nil && (text == shared || strings.HasPrefix(text, shared+"/")) {
						t.Errorf("%s: %s is a folder of everybody", at, n.Value)
					}
				}
			case *ast.CallExpr:
				name := dotted(n.Fun)
				if name == "os.TempDir" {
					t.Errorf("%s: os.MkdirTemp makes a folder of a name that nobody else has", at)
				}
				if mode, makes := makers[name]; makes {
					made++
					if openFiles[filepath.ToSlash(at)] == "" && (mode < 0 || !ownerOnly(n.Args[mode])) {
						t.Errorf("%s: %s makes what other users can read", at, name)
					}
				}
			}
			return true
		})
		return nil
	})
	if err != nil || made < 6 {
		t.Errorf("%d calls make files, %v", made, err)
	}
}

// dotted is a name such as os.Create.
func dotted(e ast.Expr) string {
	if s, ok := e.(*ast.SelectorExpr); ok {
		if of, ok := s.X.(*ast.Ident); ok {
			return of.Name + "." + s.Sel.Name
		}
	}
	return ""
}

// ownerOnly reports whether a mode is a number that lets nobody else in.
func ownerOnly(e ast.Expr) bool {
	lit, ok := e.(*ast.BasicLit)
	if !ok {
		return false
	}
	mode, err := strconv.ParseUint(lit.Value, 0, 32)
	return err == nil && mode&0o077 == 0
}

package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What has grown over one of these wants to be two things.
const (
	mostLines   = 5000 // of a package, without its tests and what is generated
	mostFields  = 25   // of a struct
	mostMethods = 40   // of a type
)

// largeOnPurpose are those that are one thing all the same.
var largeOnPurpose = map[string]string{
	"bench/ledger/checker": "one history, and the rules that look at it",

	"store/pebblestore": "one store, whose parts share its keys",
	"store/redisstore":  "one store, and its scripts",
	"store/storetest":   "the suite that holds for all stores",

	"store/storetest.fixture": "the cases of that suite",
	"store/storetest.pair":    "the cases for two stores",

	"api/client.Schedule": "mirrors the wire",
	"api/client.Snapshot": "mirrors the wire",
	"bench/ledger.Event":  "the record of ledgers",
	"bench/result.Line":   "a row of results",
}

// sizes are those of the packages, structs and types of the repository.
type sizes struct{ lines, fields, methods map[string]int }

func TestNothingGrowsOverItsBound(t *testing.T) {
	s := sizes{make(map[string]int), make(map[string]int), make(map[string]int)}
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && strings.HasPrefix(d.Name(), "."):
			return filepath.SkipDir
		case filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		return s.read(path, filepath.ToSlash(dir))
	})
	if err != nil {
		t.Fatal(err)
	}
	over := make(map[string]bool)
	for _, b := range []struct {
		what string
		most int
		all  map[string]int
	}{{"lines", mostLines, s.lines}, {"fields", mostFields, s.fields}, {"methods", mostMethods, s.methods}} {
		if len(b.all) == 0 {
			t.Errorf("nothing has %s", b.what)
		}
		for name, n := range b.all {
			over[name] = over[name] || n > b.most
			if n > b.most && largeOnPurpose[name] == "" {
				t.Errorf("%s has %d %s; at most %d are allowed", name, n, b.what, b.most)
			}
		}
	}
	for name := range largeOnPurpose {
		if !over[name] {
			t.Errorf("%s is not large any more", name)
		}
	}
}

// read adds what is in a file that nobody generated.
func (s *sizes) read(path, dir string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	f, err := parser.ParseFile(token.NewFileSet(), path, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil || ast.IsGenerated(f) {
		return err
	}
	s.lines[dir] += bytes.Count(text, []byte{'\n'})
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if t, ok := spec.(*ast.TypeSpec); ok {
					if of, ok := t.Type.(*ast.StructType); ok {
						s.fields[dir+"."+t.Name.Name] = countOf(of.Fields)
					}
				}
			}
		case *ast.FuncDecl:
			if d.Recv != nil {
				s.methods[dir+"."+receiver(d.Recv.List[0].Type)]++
			}
		}
	}
	return nil
}

// countOf counts an embedded field as one, whatever it brings.
func countOf(fields *ast.FieldList) (n int) {
	for _, f := range fields.List {
		n += max(1, len(f.Names))
	}
	return n
}

// receiver is the name of the type of a method.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

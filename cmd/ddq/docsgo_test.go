//go:build linux

package main

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// given is what a Go block that is no program may use as if it were there.
const given = `package snippet

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/ddqtest"
	"github.com/ddq-io/ddq/api/worker"
)

var (
	ctx                 context.Context
	c                   *client.Client
	body, query, stored []byte
	receipt             []byte
	refund, ship        func(results ...[]byte) error
	links               func(page []byte) [][]byte
	midnight            time.Time
	seen                client.Snapshot
	retry               error
	handler             worker.Handler
	order               client.Workflow
	steps               worker.Steps
	alert               func(id string, why client.DeadReason)
)
`

func TestGoInTheDocumentsCompiles(t *testing.T) {
	fset := token.NewFileSet()
	packages := exported(t)
	config := types.Config{Importer: importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(packages[path])
	})}
	blocks := 0
	for i := range pages {
		p := &pages[i]
		_, all, _ := p.read(t)
		for _, b := range all {
			if b.lang != "go" {
				continue
			}
			blocks++
			file, err := parseBlock(fset, fmt.Sprintf("%s:%d", p.file, b.line), b.text)
			if err != nil {
				t.Error(err)
				continue
			}
			config.Error = func(err error) {
				if wrong, ok := err.(types.Error); !ok || !wrong.Soft { // a block may leave to its reader what it declares
					t.Error(err)
				}
			}
			_, _ = config.Check("snippet", fset, []*ast.File{file}, nil) // the errors are heard of one by one
		}
	}
	if blocks < 10 {
		t.Errorf("%d Go blocks were found", blocks)
	}
}

// parseBlock reads a block as what it is: a program, declarations, or statements of a
// function that returns an error.
func parseBlock(fset *token.FileSet, name, text string) (*ast.File, error) {
	if strings.HasPrefix(text, "package ") {
		return parser.ParseFile(fset, "", "//line "+name+"\n"+text, parser.SkipObjectResolution)
	}
	text = "//line " + name + "\n" + text // errors are at the lines of the page
	if file, err := parser.ParseFile(fset, "", given+text, parser.SkipObjectResolution); err == nil {
		return file, nil
	}
	return parser.ParseFile(fset, "", given+"func _() error {\n"+text+"\nreturn nil\n}\n", parser.SkipObjectResolution)
}

// exported is where the compiler keeps what packages export, by path.
func exported(t *testing.T) map[string]string {
	t.Helper()
	list := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}",
		"github.com/ddq-io/ddq/api/client", "github.com/ddq-io/ddq/api/client/envelope", "github.com/ddq-io/ddq/api/ddqtest", "github.com/ddq-io/ddq/api/worker", "testing", "log", "os/signal")
	list.Env = append(os.Environ(), "CGO_ENABLED=0") // as make compiles what is not for the race detector
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	at := make(map[string]string)
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		at[path] = file
	}
	return at
}

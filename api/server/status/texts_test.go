package status

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestTextsOfErrors lists every error that the API can answer with, as the source has it: its reason, and its
// text or what that is made of. The list is read when it changes: go test -rewrite writes it.
func TestTextsOfErrors(t *testing.T) {
	datadriven.RunTest(t, "testdata/errors.txt", func(t *testing.T, _ *datadriven.TestData) string {
		texts := textsOf(t, "../../../actors", "../../../api")
		if len(texts) < 300 {
			t.Errorf("there are %d", len(texts))
		}
		return strings.Join(texts, "\n") + "\n"
	})
}

// TestErrorsShowNothingOfTheServer: no text has a path of a file, an address of the network, or where in the
// source something happened.
func TestErrorsShowNothingOfTheServer(t *testing.T) {
	for _, bad := range []string{`X "open /etc/ddq/key: no"`, `X "dial 10.0.0.1:6379"`, `X "dial [::1]:6379"`, `X "shard.go:12: broken"`, `X "goroutine 7 [running]"`, `X "%+v of %v"`, `X debug.Stack()`} {
		if !showsServer(bad) {
			t.Errorf("%s is not found", bad)
		}
	}
	for _, text := range textsOf(t, "../../../actors", "../../../api") {
		if showsServer(text) {
			t.Error(text)
		}
	}
}

var serverMarks = regexp.MustCompile(`(^|[\s"'(:])/(etc|var|run|home|root|tmp|usr|proc|data)\b|\b\d{1,3}(\.\d{1,3}){3}\b|\[[0-9a-f:]*::[0-9a-f:]*\]|\.go:|goroutine|%\+v|%#v|debug\.Stack|runtime\.`)

func showsServer(text string) bool { return serverMarks.MatchString(text) }

// textsOf lists the errors in the source of folders, sorted, each once.
func textsOf(t *testing.T, folders ...string) (all []string) {
	t.Helper()
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && slices.Contains(elsewhere, d.Name()):
				return filepath.SkipDir
			case filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			files := token.NewFileSet()
			parsed, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(parsed, func(n ast.Node) bool {
				if text := (source{files}).errorOf(n); text != "" {
					all = append(all, text)
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// elsewhere are folders whose errors no server answers with: those of clients, and what is generated.
var elsewhere = []string{"client", "worker", "outbox", "connect", "ddqtest", "ddqv1", "sdk", "browser", "node_modules"}

// source is where an error is written.
type source struct{ files *token.FileSet }

// errorOf is the reason and the text of an error that is made here; empty: none is.
func (s source) errorOf(n ast.Node) string {
	switch n := n.(type) {
	case *ast.CompositeLit:
		return s.literal(n)
	case *ast.CallExpr:
		return s.call(n)
	}
	return ""
}

// literal is of a value with a reason, and a message or, over HTTP, a detail.
func (s source) literal(n *ast.CompositeLit) string {
	fields := make(map[string]ast.Expr)
	for _, element := range n.Elts {
		if pair, ok := element.(*ast.KeyValueExpr); ok {
			fields[s.print(pair.Key)] = pair.Value
		}
	}
	text, ok := fields["Message"]
	if !ok {
		text = fields["Detail"]
	}
	if fields["Reason"] == nil || text == nil {
		return ""
	}
	return s.said(fields["Reason"], text)
}

var reasonForm = regexp.MustCompile(`^[A-Z][A-Z0-9]*(_[A-Z0-9]+)+$`)

// call is of a function that is given a reason and, last but for what is put into it, a text.
func (s source) call(n *ast.CallExpr) string {
	at := slices.IndexFunc(n.Args, func(e ast.Expr) bool { return reasonForm.MatchString(unquoted(e)) })
	if at < 0 {
		return ""
	}
	for _, arg := range n.Args[at+1:] {
		if text := unquoted(arg); strings.Contains(text, " ") {
			return s.said(n.Args[at], arg)
		}
	}
	if at == len(n.Args)-1 {
		return ""
	}
	return s.said(n.Args[at], n.Args[len(n.Args)-1])
}

// said is one line: a reason, and a text or the expression that makes it.
func (s source) said(reason, text ast.Expr) string {
	if call, ok := text.(*ast.CallExpr); ok && s.print(call.Fun) == "fmt.Sprintf" {
		text = call.Args[0]
	}
	name := unquoted(reason)
	if name == "" {
		name = s.print(reason)
	}
	return name + " " + s.print(text)
}

func (s source) print(n ast.Node) string {
	var b strings.Builder
	if err := printer.Fprint(&b, s.files, n); err != nil {
		return fmt.Sprint(err)
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// unquoted is the text of a literal; empty: e is none.
func unquoted(e ast.Expr) string {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return ""
	}
	text, _ := strconv.Unquote(lit.Value)
	return text
}

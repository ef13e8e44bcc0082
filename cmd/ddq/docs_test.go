//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
)

// Every command in the documents is run, and every Go block compiled, as they stand: a
// page that fails when it is pasted fails here. What cannot run says why in this table.
var pages = []page{
	{
		file: "README.md",
		notRun: map[string]string{
			"make run":   "needs the repository; `ddq server` is run further down",
			"make demo":  "needs the repository; TestDemoStopsByItself runs it",
			"make build": "the test has built ddq, and put it on the PATH",
			"go get":     "needs the network",
		},
		background: []string{"ddq server\n", "ddq server --store redis://", "ddq work --topic mail --exec 'echo \"sending", "redis-server --port 6379"},
		endAt:      []string{"On Redis", "Three nodes"},
		shows:      []string{"version 2", "task long of topic report: cancelled", "all 300 are done"},
	},
	{
		file:    "docs/policies.md",
		section: true, // each stands by itself
		notRun: map[string]string{
			"ddq bench edits --tasks 100000": "takes minutes; TestStorm edits fewer",
		},
		shows: []string{"open\npay in 10\npay out 5\n", "has the key", "was replaced", "task long of topic reports: cancelled", "path, tenant (ready)", "  done ", "handler timed out after 1s"},
	},
	{
		file:       "docs/schedules.md",
		background: []string{"ddq server --store memory"},
		shows: []string{"created: version 1, next", "2035-03-25T03:00:00+02:00", "2035-12-25T08:00:00.000Z       excluded", "handled", "every 10m from the end of a run", "triggered before, task",
			"backfill october of 10 runs", "2 schedules differ, 0 do not", "2 schedules changed", "Nothing differs: 2 schedules"},
	},
	{file: "docs/workflows.md", section: true, shows: []string{"start.blog.second", "fetched start.blog.second"}},
	{file: "docs/operating.md", section: true},
	{file: "docs/migrating.md", section: true},
	{file: "docs/security.md", section: true, shows: []string{"enqueue,work:mail*", "that are no text", "for nobody else", "enqueued before"}},
	{file: "docs/rest.md", section: true, shows: []string{`"deliveries":[`, `"deduplicated":true`, "KEY_TAKEN", "the key has another request",
		"says: send the mail", `{"done":true,"stored":1000,"failed":0}`, `{"done":true,"next_page_token":""}`, "event: change"}},
	{
		file: "deploy/README.md",
		notRun: map[string]string{
			"docker build":            "needs Docker; deploy/check reads the Dockerfile",
			"export DDQ_GOSSIP_KEY":   "needs Docker; deploy/check reads the compose file",
			"cp deploy/k8s/secret":    "needs Kubernetes; deploy/check reads the manifests",
			"install -m 0755 bin/ddq": "needs systemd; deploy/check reads the unit",
		},
	},
}

// leftOut are the documents that are not run, and why.
var leftOut = map[string]string{
	"docs/architecture.md": "has drawings, and no commands",
	"docs/licenses.md":     "is a table, and has no commands",
	"docs/outbox.md":       "its commands need a PostgreSQL and the program of api/outbox, whose tests run them",
	"docs/sdks.md":         "its programs are run by the tests of api/sdk",
	"docs/ui.md":           "is of a page in a browser, and has no commands",
	"docs/tracing.md":      "its command needs a collector",
	"docs/verifying.md":    "its commands need a release and the key that it was signed with",
	"docs/faults.md":       "its commands take minutes to hours, and some need root: make faults, soak and sim are what they are",
}

func TestEveryDocumentIsRunOrSaysWhyNot(t *testing.T) {
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d documents, %v", len(files), err)
	}
	for _, file := range files {
		name := "docs/" + filepath.Base(file)
		listed := slices.ContainsFunc(pages, func(p page) bool { return p.file == name })
		if _, left := leftOut[name]; listed == left {
			t.Errorf("%s has to be in one of pages and leftOut", name)
		}
	}
}

// page is a document and how it is run.
type page struct {
	file       string
	section    bool              // each section has a server of its own, and an empty directory
	notRun     map[string]string // reasons, by how blocks begin
	background []string          // how blocks begin whose last command goes on while the others run
	endAt      []string          // headings at which what is in the background ends
	shows      []string          // what the commands have to show, here and there
}

// block is a code block of a page.
type block struct {
	lang string
	line int // of its first line in the page, from 1
	text string
}

// read returns the code blocks and headings of a page, with their lines.
func (p *page) read(t *testing.T) (source string, blocks []block, headings map[string]int) {
	t.Helper()
	src, err := os.ReadFile(filepath.Join("../..", p.file))
	if err != nil {
		t.Fatal(err)
	}
	headings = make(map[string]int)
	lineAt := func(offset int) int { return bytes.Count(src[:offset], []byte("\n")) + 1 }
	doc := goldmark.DefaultParser().Parse(text.NewReader(src))
	err = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering || n.Type() != ast.TypeBlock || n.Lines().Len() == 0 {
			return ast.WalkContinue, nil
		}
		line := lineAt(n.Lines().At(0).Start)
		switch n := n.(type) {
		case *ast.Heading:
			if n.Level == 2 {
				headings[string(n.Lines().Value(src))] = line
			}
		case *ast.FencedCodeBlock:
			blocks = append(blocks, block{string(n.Language(src)), line, string(n.Lines().Value(src))})
		case *ast.CodeBlock:
			t.Errorf("%s:%d: a code block without fences: say whether it is sh, go or text", p.file, line)
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(src), blocks, headings
}

func TestCommandsInTheDocumentsRun(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	if out, err := exec.Command("unshare", "-rn", "--pid", "--fork", "--kill-child", "ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
		t.Skipf("the documents name ports, so this needs a network of its own: unshare: %v: %s", err, out)
	}
	if _, err := buildOnce(); err != nil {
		t.Fatal(err)
	}
	for i := range pages {
		p := &pages[i]
		t.Run(p.file, func(t *testing.T) {
			t.Parallel()
			p.run(t)
		})
	}
}

// run runs the commands of a page: all in one session, or each section in one of its own.
func (p *page) run(t *testing.T) {
	source, blocks, headings := p.read(t)
	last := strings.Count(source, "\n") + 1
	starts := []int{1}
	if p.section {
		for _, line := range headings {
			starts = append(starts, line)
		}
		slices.Sort(starts)
	}
	used := make(map[string]bool)
	scripts := make([][]string, len(starts))
	for i, start := range starts {
		end := last
		if i+1 < len(starts) {
			end = starts[i+1] - 1
		}
		scripts[i] = p.script(t, blocks, headings, start, end, used)
	}
	for begin := range p.notRun {
		if !used[begin] {
			t.Errorf("no block begins with %q any more", begin)
		}
	}
	outputs := make([]string, len(scripts))
	t.Run("sections", func(t *testing.T) {
		for i, script := range scripts {
			if len(strings.Join(script, "")) == 0 {
				continue // no commands
			}
			t.Run(fmt.Sprint("line", starts[i]), func(t *testing.T) {
				t.Parallel()
				outputs[i] = p.session(t, source, script)
			})
		}
	})
	all := strings.Join(outputs, "")
	for _, want := range p.shows {
		if !strings.Contains(all, want) {
			t.Errorf("%s: no command shows %q", p.file, want)
		}
	}
}

// script is the commands between two lines of a page, each on the line that it has there.
func (p *page) script(t *testing.T, blocks []block, headings map[string]int, from, to int, used map[string]bool) []string {
	t.Helper()
	lines := make([]string, to+1) // by line, from 1
	for _, b := range blocks {
		if b.lang != "sh" || b.line < from || b.line > to || p.left(b, used) {
			continue
		}
		copy(lines[b.line:], strings.Split(strings.TrimSuffix(b.text, "\n"), "\n"))
		if slices.ContainsFunc(p.background, func(begin string) bool { return strings.HasPrefix(b.text, begin) }) {
			lines[b.line+strings.Count(b.text, "\n")-1] += " & await"
		}
	}
	for _, heading := range p.endAt {
		if headings[heading] == 0 {
			t.Fatalf("%s has no heading %q", p.file, heading)
		}
		lines[headings[heading]] = "enough"
	}
	return lines[1:]
}

// left reports whether a block is left out, for a reason.
func (p *page) left(b block, used map[string]bool) bool {
	for begin := range p.notRun {
		if strings.HasPrefix(b.text, begin) {
			used[begin] = true
			return true
		}
	}
	return false
}

// prelude is what a session begins with. Jobs have groups of their own, as at a terminal;
// what fails is written down with its line; and what goes on in the background is waited
// for until its server answers.
const prelude = `
unset BASH_ENV
set -m
ip link set lo up
await() { for _ in $(seq 200); do ddq topic list >/dev/null 2>&1 && return; sleep 0.05; done; return 1; }
enough() { for pid in $(jobs -p); do kill -- -"$pid" 2>/dev/null; done; wait 2>/dev/null; }
trap 'echo "$? $LINENO $BASH_COMMAND" >&3' ERR
`

// session runs a script in an empty directory, with a network and processes of its own,
// and returns what it printed.
func (p *page) session(t *testing.T, source string, script []string) string {
	dir := t.TempDir()
	home := filepath.Join(dir, "session")
	bin, work := filepath.Join(home, "bin"), filepath.Join(dir, "work")
	ddq, err := buildOnce()
	if err != nil {
		t.Fatal(err)
	}
	begin := prelude
	if p.section {
		begin += "ddq server 2>server.log & await\n"
	}
	if err := errors.Join(os.MkdirAll(bin, 0o700), os.Mkdir(work, 0o700), os.Symlink(ddq, filepath.Join(bin, "ddq")),
		os.WriteFile(filepath.Join(home, "prelude"), []byte(begin), 0o600),
		os.WriteFile(filepath.Join(home, "script"), []byte(strings.Join(script, "\n")+"\nenough\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	failures, err := os.Create(filepath.Join(home, "failures"))
	if err != nil {
		t.Fatal(err)
	}
	defer failures.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "unshare", "-rn", "--pid", "--fork", "--kill-child", "bash", filepath.Join(home, "script"))
	cmd.Dir = work
	cmd.Env = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + home, "BASH_ENV=" + filepath.Join(home, "prelude")}
	cmd.ExtraFiles = []*os.File{failures}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s: the session ended with %v", p.file, err)
	}
	p.judge(t, source, filepath.Join(home, "failures"))
	if t.Failed() {
		t.Logf("printed:\n%s", out[max(0, len(out)-8000):])
	}
	return string(out)
}

// judge compares what failed with what the page says of it: a command fails when its
// comment says that it is refused, and no other does.
func (p *page) judge(t *testing.T, source, failures string) {
	failed, err := os.ReadFile(failures)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(source, "\n")
	for f := range strings.Lines(string(failed)) {
		var code, line int
		if _, err := fmt.Sscan(f, &code, &line); err != nil || line < 1 || line > len(lines) {
			t.Fatalf("%q: %v", f, err)
		}
		if !strings.Contains(lines[line-1], "# refused") {
			t.Errorf("%s:%d: exit code %d: %s", p.file, line, code, lines[line-1])
		}
	}
}

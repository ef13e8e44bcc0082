//go:build linux

package sdk_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// program is a code block of a page, in the language of an SDK.
type program struct {
	lang   string // js or python
	text   string
	prints string // what it says that it prints; it is not run when that is empty
}

var (
	fenced = regexp.MustCompile("(?ms)^```(js|python)\n(.*?)^```$")
	prints = regexp.MustCompile(`(?://|#) prints: (.*)`)
)

func programs(t *testing.T, page string) []program {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var all []program
	for _, found := range fenced.FindAllStringSubmatch(string(text), -1) {
		p := program{lang: found[1], text: found[2]}
		if says := prints.FindStringSubmatch(p.text); says != nil {
			p.prints = says[1]
		}
		all = append(all, p)
	}
	if len(all) == 0 {
		t.Fatalf("%s has no programs", page)
	}
	return all
}

// testPages runs the programs of the documents as they stand, but for the address of the server.
func testPages(t *testing.T, s *server, languages []language) {
	for _, page := range []string{"../../README.md", "../../docs/sdks.md", "typescript/README.md", "python/README.md"} {
		for i, p := range programs(t, page) {
			t.Run(fmt.Sprintf("%s/%d-%s", strings.ReplaceAll(page, "../", ""), i+1, p.lang), func(t *testing.T) {
				t.Parallel()
				l := languages[map[string]int{"js": 0, "python": 1}[p.lang]]
				// Beside the driver, where Node finds the package.
				file := filepath.Join(filepath.Dir(l.driver[len(l.driver)-1]), strings.ReplaceAll(t.Name(), "/", "-")+map[string]string{"js": ".mjs", "python": ".py"}[p.lang])
				if err := os.WriteFile(file, []byte(strings.ReplaceAll(p.text, "http://127.0.0.1:8080", s.url())), 0o600); err != nil {
					t.Fatal(err)
				}
				if p.prints == "" {
					parse(t, l, file)
					return
				}
				p.run(t, append(l.driver[:len(l.driver)-1:len(l.driver)-1], file))
			})
		}
	}
}

func parse(t *testing.T, l language, file string) {
	t.Helper()
	if l.name == "python" {
		run(t, "", l.driver[0], "-m", "py_compile", file)
		return
	}
	run(t, "", l.driver[0], "--check", file)
}

// run ends the program with Ctrl-C when it has printed what it says, and wants it to end well.
func (p *program) run(t *testing.T, command []string) {
	t.Helper()
	var out said
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	give := time.After(patience)
	for look := time.NewTicker(10 * time.Millisecond); ; {
		select {
		case err := <-ended:
			look.Stop()
			if err != nil || !strings.Contains(out.String(), p.prints) {
				t.Fatalf("%v, want it to print %q:\n%s", err, p.prints, &out)
			}
			return
		case <-look.C:
			if strings.Contains(out.String(), p.prints) && strings.Contains(p.text, "run()") {
				_ = cmd.Process.Signal(syscall.SIGINT) // it may have ended
				look.Stop()
			}
		case <-give:
			_ = cmd.Process.Kill() // it may have ended
			t.Fatalf("it goes on:\n%s", &out)
		}
	}
}

// said is what a program says, while it says it.
type said struct {
	mu  sync.Mutex
	buf bytes.Buffer // guarded by mu
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(b)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}

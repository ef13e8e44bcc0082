package browser

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// binary is the server under test, made by TestMain.
var binary string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if binary = os.Getenv("DDQ_TEST_BIN"); binary != "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "ddq-browser-*")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "ddq")
	build := exec.Command("go", "build", "-o", binary, "./cmd/ddq")
	build.Dir, build.Stderr = "../../..", os.Stderr
	if err := build.Run(); err != nil {
		return 1 // the compiler has said why
	}
	return m.Run()
}

// server is one of its own process.
type server struct {
	*testing.T
	addr string // of its gRPC port
	base string
	root string // its root token; empty: nobody is asked
	stop func() // may be called twice
	pid  int    // of its process

	operation string // id of the one of the fixtures
}

var (
	saysUI = regexp.MustCompile(` addr=([^ ]+) .*ui=(http://[^ ]+)/ui/`)
	isOpen = regexp.MustCompile(`msg=serving`)
)

func start(t *testing.T, args ...string) *server {
	t.Helper()
	cmd := exec.Command(binary, append([]string{"server", "--store", "memory", "--grpc-addr", "127.0.0.1:0", "--http-addr", "127.0.0.1:0", "--shutdown-grace", "1s"}, args...)...)
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop := sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	t.Cleanup(stop)
	said, lines := "", bufio.NewScanner(errs)
	for lines.Scan() {
		said += lines.Text() + "\n"
		if found := saysUI.FindStringSubmatch(lines.Text()); found != nil && isOpen.MatchString(lines.Text()) {
			go func() { // whatever it says else must not fill the pipe
				for lines.Scan() {
				}
			}()
			return &server{T: t, addr: found[1], base: found[2], stop: stop, pid: cmd.Process.Pid}
		}
	}
	t.Fatalf("the server said no address:\n%s", said)
	return nil
}

// call makes a call of the API, and returns the answer.
func (s *server) call(method, path string, body map[string]any) map[string]any {
	s.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		s.Fatal(err)
	}
	request, err := http.NewRequestWithContext(s.Context(), method, s.base+path, bytes.NewReader(text))
	if err != nil {
		s.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	if s.root != "" {
		request.Header.Set("Authorization", "Bearer "+s.root)
	}
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		s.Fatal(err)
	}
	defer reply.Body.Close()
	answer := map[string]any{}
	if err := json.NewDecoder(reply.Body).Decode(&answer); err != nil || reply.StatusCode >= 300 {
		s.Fatalf("%s %s: %s %v %v", method, path, reply.Status, answer, err)
	}
	return answer
}

// kill takes a task of a topic, and gives it up for good.
func (s *server) kill(topic, worker, why string) {
	s.Helper()
	held := s.call("POST", "/v1/topics/"+topic+":retrieve", map[string]any{"worker": worker, "max_tasks": 1, "wait_ms": "30000"})
	deliveries, _ := held["deliveries"].([]any)
	if len(deliveries) != 1 {
		s.Fatalf("nothing was delivered: %v", held)
	}
	d, _ := deliveries[0].(map[string]any)
	task, _ := d["task"].(map[string]any)
	s.call("POST", fmt.Sprintf("/v1/topics/%s/tasks/%s:nack", topic, url.PathEscape(fmt.Sprint(task["id"]))), map[string]any{"hold_token": d["hold_token"], "error": why, "permanent": true})
}

// browser is one, with all that it complained about.
type browser struct {
	*testing.T
	ctx  context.Context
	base string

	mu    sync.Mutex
	wrong []string // guarded by mu
}

// open starts a browser that can reach nothing but this machine.
func open(t *testing.T, base string) *browser {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(installed(t)),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"),
		chromedp.Flag("font-render-hinting", "none"),
		chromedp.Flag("lang", "en"),
	)
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, closed := chromedp.NewContext(ctx)
	t.Cleanup(closed)
	b := &browser{T: t, ctx: ctx, base: base}
	if err := chromedp.Listen(ctx, b.listen); err != nil {
		t.Fatal(err)
	}
	return b
}

// installed is the browser of this machine. Without one the tests fail: they are not left out.
func installed(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("there is no chromium: tools/deps.sh tests installs it")
	return ""
}

// listen notes what pages must not do: say something on the console, which is also where
// violations of the policy are, ask another host, or open a dialog.
func (b *browser) listen(event any) {
	switch e := event.(type) {
	case *cdplog.EventEntryAdded:
		if !strings.Contains(e.Entry.Text, "the server responded with a status of") {
			b.complain("log: " + e.Entry.Text)
		}
	case *runtime.EventConsoleAPICalled:
		b.complain(fmt.Sprintf("console: %s", e.Type))
	case *runtime.EventExceptionThrown:
		b.complain("exception: " + e.ExceptionDetails.Text)
	case *network.EventRequestWillBeSent:
		if !strings.HasPrefix(e.Request.URL, b.base+"/") && !strings.HasPrefix(e.Request.URL, "data:") { // such as the sign in a field of a time, which is the browser's
			b.complain("request: " + e.Request.URL)
		}
	case *page.EventJavascriptDialogOpening:
		b.complain("dialog: " + e.Message)
		go func() { _, _ = chromedp.Call(b.ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{}) }()
	}
}

func (b *browser) complain(what string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wrong = append(b.wrong, what)
}

// quiet fails if a page did what it must not.
func (b *browser) quiet() {
	b.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, what := range b.wrong {
		b.Error(what)
	}
	b.wrong = nil
}

func (b *browser) do(actions ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.Fatal(err)
	}
}

// look opens a page in a window of a width, dark or light.
func (b *browser) look(path string, width int64, scheme string) {
	b.Helper()
	_, err := chromedp.Call(b.ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: 900, DeviceScaleFactor: 1, Mobile: width < 600})
	if err != nil {
		b.Fatal(err)
	}
	_, err = chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
	if err != nil {
		b.Fatal(err)
	}
	b.do(chromedp.Navigate(b.base + path))
}

// eval returns what an expression is on the page.
func eval[T any](b *browser, expression string, options ...chromedp.EvaluateOption) T {
	b.Helper()
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression, options...))
	if err != nil {
		b.Fatal(err)
	}
	return value
}

package ui_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/net/html"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui"
	"github.com/ddq-io/ddq/cmd/node"
)

// rig is a server with its pages.
type rig struct {
	*testing.T
	base   string
	client *client.Client
	plain  http.Client // it follows no redirect
}

// rootVariable is where tests with a login have the root token.
const rootVariable = "DDQ_UI_TEST_ROOT"

func start(t *testing.T, args ...string) *rig {
	t.Helper()
	var cfg node.Config
	flags := pflag.NewFlagSet("node", pflag.ContinueOnError)
	cfg.Flags(flags)
	if err := flags.Parse(append([]string{"--store", "memory", "--grpc-addr", "127.0.0.1:0", "--http-addr", "127.0.0.1:0", "--shutdown-grace", "1s"}, args...)); err != nil {
		t.Fatal(err)
	}
	n, err := node.Start(t.Context(), &cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Stop(); err != nil {
			t.Error(err)
		}
	})
	c, err := client.Dial(n.GRPCAddr(), client.Config{Token: os.Getenv(rootVariable)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &rig{t, "http://" + n.HTTPAddr(), c, http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// get returns a page, parsed, and fails unless it is answered with a code.
func (r *rig) get(code int, path string) (*html.Node, string) {
	r.Helper()
	reply, err := http.Get(r.base + path)
	if err != nil {
		r.Fatal(err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil || reply.StatusCode != code {
		r.Fatalf("%s: %s, %v\n%s", path, reply.Status, err, text)
	}
	if csp := reply.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") {
		r.Errorf("%s: policy %q", path, csp)
	}
	page, err := html.Parse(strings.NewReader(string(text)))
	if err != nil {
		r.Fatalf("%s: %v", path, err)
	}
	return page, string(text)
}

// elements are those of a page, in order.
func elements(page *html.Node) (all []*html.Node) {
	for n := range page.Descendants() {
		if n.Type == html.ElementNode {
			all = append(all, n)
		}
	}
	return all
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// check holds a page against what every page keeps to.
func (r *rig) check(path string, page *html.Node) (links []string) {
	r.Helper()
	ids, headings := map[string]bool{}, 0
	for _, n := range elements(page) {
		if id := attr(n, "id"); id != "" {
			if ids[id] {
				r.Errorf("%s: id %s twice", path, id)
			}
			ids[id] = true
		}
		for _, a := range n.Attr {
			if strings.HasPrefix(a.Key, "on") || a.Key == "style" {
				r.Errorf("%s: <%s %s=%q>", path, n.Data, a.Key, a.Val)
			}
			if leads := a.Key == "href" || a.Key == "src" || a.Key == "action" || a.Key == "formaction"; leads && !strings.HasPrefix(a.Val, ui.Prefix) && a.Val != "#main" {
				r.Errorf("%s: <%s %s=%q> leads elsewhere", path, n.Data, a.Key, a.Val)
			}
		}
		switch n.Data {
		case "h1":
			headings++
		case "style":
			r.Errorf("%s: style in the page", path)
		case "script":
			if attr(n, "src") == "" {
				r.Errorf("%s: script in the page", path)
			}
		case "input", "select", "textarea":
			if attr(n, "type") != "hidden" && n.Parent.Data != "label" {
				r.Errorf("%s: %s without a label", path, n.Data)
			}
		case "form":
			if attr(n, "method") == "" {
				r.Errorf("%s: form without a method", path)
			}
		case "a":
			links = append(links, attr(n, "href"))
		}
	}
	if headings != 1 {
		r.Errorf("%s: %d headings of the first rank", path, headings)
	}
	return links
}

// walk looks at every page that links lead to.
func (r *rig) walk() (seen []string) {
	r.Helper()
	for next := []string{ui.Prefix}; len(next) > 0; next = next[1:] {
		path, _, _ := strings.Cut(next[0], "#")
		if path == "" || slices.Contains(seen, path) || strings.HasPrefix(path, ui.Prefix+"payload?") { // a file
			continue
		}
		seen = append(seen, path)
		page, _ := r.get(http.StatusOK, path)
		next = append(next, r.check(path, page)...)
	}
	return seen
}

func (r *rig) enqueue(tasks ...client.Task) {
	r.Helper()
	for _, t := range tasks {
		if _, err := r.client.Enqueue(r.Context(), t); err != nil {
			r.Fatal(err)
		}
	}
}

func TestAnEmptyServerSaysHowToBegin(t *testing.T) {
	r := start(t)
	if _, text := r.get(http.StatusOK, "/"); !strings.Contains(text, "ddq enqueue") {
		t.Error(text)
	}
	if n := len(r.walk()); n != 13 {
		t.Errorf("%d pages", n)
	}
}

// TestANewcomerSeesWhatIsThere: the topic, what is due in the next minute, and a task's life.
func TestANewcomerSeesWhatIsThere(t *testing.T) {
	r := start(t)
	r.enqueue(
		client.Task{Topic: "mail", ID: "soon", Delay: 30 * time.Second, Payload: []byte(`{"to":"ann"}`)},
		client.Task{Topic: "mail", ID: "later", Delay: 48 * time.Hour},
		client.Task{Topic: "sms", ID: "bad", MaxRetries: new(0)},
	)
	daily := fmt.Sprintf("30 %d * * *", time.Now().UTC().Add(15*time.Hour).Hour()) // in 12 hours there, whenever this is played
	if _, err := r.client.PutSchedule(r.Context(), client.Schedule{Topic: "mail", Name: "daily", Cron: []string{daily}, Zone: "Africa/Nairobi"}); err != nil {
		t.Fatal(err)
	}
	kill(r, "sms", "smtp said no")
	seen := r.walk()
	for _, want := range []string{"/ui/topic?name=mail", "/ui/task?id=soon&topic=mail", "/ui/dead?topic=sms", "/ui/task?id=bad&topic=sms", "/ui/schedules?topic=mail"} {
		if !slices.Contains(seen, want) {
			t.Errorf("no link leads to %s", want)
		}
	}
	page, text := r.get(http.StatusOK, ui.Prefix)
	for picture, want := range map[string]int{"Due in the next minute, by second": 1, "Due in the next hour, by minute": 1, "Due in the next 48 hours, by hour": 3} {
		if n := columns(page, picture); n != want {
			t.Errorf("%q has %d columns, want %d", picture, n, want)
		}
	}
	for _, want := range []string{"1 later", "2 of these are planned", "Due this week, by hour (UTC)"} {
		if !strings.Contains(text, want) {
			t.Errorf("the overview does not say %q:\n%s", want, text)
		}
	}
	if _, text := r.get(http.StatusOK, "/ui/task?topic=mail&id=soon"); !strings.Contains(text, "&#34;to&#34;: &#34;ann&#34;") {
		t.Errorf("the payload is not shown as JSON: %s", text)
	}
	_, text = r.get(http.StatusOK, "/ui/task?topic=sms&id=bad")
	for _, want := range []string{"enqueued", "attempt 1", "failed", "smtp said no", "dead", "tester on "} {
		if !strings.Contains(text, want) {
			t.Errorf("its story says nothing of %q", want)
		}
	}
	if _, text := r.get(http.StatusOK, "/ui/schedules"); !strings.Contains(text, daily) || !strings.Contains(text, "Africa/Nairobi") {
		t.Error(text)
	}
	if _, text := r.get(http.StatusOK, "/ui/tasks?topic=mail&id=so"); !strings.Contains(text, ">soon<") || strings.Contains(text, ">later<") {
		t.Error(text)
	}
}

// columns is how many a picture has.
func columns(page *html.Node, picture string) (n int) {
	for _, svg := range elements(page) {
		if svg.Data != "svg" || !strings.HasPrefix(attr(svg, "aria-label"), picture) {
			continue
		}
		for c := range svg.Descendants() {
			if c.Data == "rect" && attr(c, "class") == "" {
				n++
			}
		}
	}
	return n
}

// kill takes the task of a topic that is due, and gives it up.
func kill(r *rig, topic, why string) {
	r.Helper()
	queue := ddqv1.NewDelayQueueServiceClient(r.client.Conn())
	held, err := queue.Retrieve(r.Context(), &ddqv1.RetrieveRequest{Topic: topic, Worker: "tester", MaxTasks: 1, WaitMs: 10_000})
	if err != nil || len(held.Deliveries) != 1 {
		r.Fatal(held, err)
	}
	d := held.Deliveries[0]
	if _, err := queue.Nack(r.Context(), &ddqv1.NackRequest{Topic: topic, Nack: &ddqv1.Nack{TaskId: d.Task.Id, HoldToken: d.HoldToken, Error: why}}); err != nil {
		r.Fatal(err)
	}
}

// hostile are texts that pages must show as what they are.
var hostile = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `'><svg onload=alert(1)>`, `javascript:alert(1)`, `</pre></main><h1>x</h1>`, `{{.}}`, `{{template "body"}}`,
	"\u202etxt.exe", strings.Repeat("x", 5000), "&lt;b&gt;", "a\u0000b", "<!--", "]]>", `\x3cscript\x3e`, "😀", "</script><script>",
}

// long is a text without a space that is as long as a payload may be, and unbroken.
var long = strings.Repeat("x", 1<<20)

// mostOfPage is how many bytes a page has at most: texts that others wrote are cut, and of a payload and of a result
// 64 KiB are shown, as bytes in hexadecimal digits.
const mostOfPage = 768 << 10

func TestHostileTextsAreText(t *testing.T) {
	r := start(t)
	r.enqueue(client.Task{Topic: "mail", ID: "long", Delay: time.Hour, Payload: []byte(long)}, client.Task{Topic: "mail", ID: "nul", Delay: time.Hour, Payload: []byte(strings.Repeat("\u0000", 1<<20))},
		client.Task{Topic: "mail", ID: "deep", Delay: time.Hour, Payload: []byte(strings.Repeat("[", 5000) + strings.Repeat("]", 5000))},
		client.Task{Topic: "sms", ID: "bad", MaxRetries: new(0)})
	kill(r, "sms", "a\u0000b"+long)
	for i, text := range hostile {
		r.enqueue(client.Task{
			Topic: "mail", ID: "t" + string(rune('a'+i)), Delay: time.Hour, Payload: []byte(text),
			Attributes: map[string]string{"k": strings.ReplaceAll(text[:min(len(text), 200)], "\u0000", "")},
		})
	}
	for _, path := range r.walk() {
		page, text := r.get(http.StatusOK, path)
		for _, n := range elements(page) {
			if n.Data == "img" || n.Data == "script" && attr(n, "src") != "/ui/static/ui.js" {
				t.Errorf("%s: <%s> of a text", path, n.Data)
			}
		}
		if len(text) > mostOfPage || strings.Contains(text, "\u0000") {
			t.Errorf("%s: %d bytes, or one that is no text", path, len(text))
		}
	}
	for _, text := range hostile {
		for _, path := range []string{"/ui/topic?name=", "/ui/tasks?topic=", "/ui/tasks?topic=mail&state=", "/ui/tasks?topic=mail&page=", "/ui/task?topic=mail&id=", "/ui/schedules?page=", "/ui/?page="} {
			reply, err := http.Get(r.base + path + url.QueryEscape(text))
			if err != nil {
				t.Fatal(err)
			}
			page, err := html.Parse(reply.Body)
			reply.Body.Close()
			first := reply.StatusCode == http.StatusOK && strings.HasSuffix(path, "page=") // of the list
			if err != nil || reply.StatusCode != http.StatusBadRequest && reply.StatusCode != http.StatusNotFound && !first {
				t.Errorf("%s%.30q: %s, %v", path, text, reply.Status, err)
				continue
			}
			r.check(path, page)
		}
	}
}

// What a page loads is there: its style, its script and its icon.
func TestFilesOfPagesAreThere(t *testing.T) {
	r := start(t)
	page, _ := r.get(http.StatusOK, "/ui/")
	var files []string
	for _, n := range elements(page) {
		switch n.Data {
		case "link":
			files = append(files, attr(n, "href"))
		case "script":
			files = append(files, attr(n, "src"))
		}
	}
	if len(files) != 3 {
		t.Errorf("files %q", files)
	}
	for _, path := range files {
		reply, err := http.Get(r.base + path)
		if err != nil {
			t.Fatal(err)
		}
		reply.Body.Close()
		if reply.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", path, reply.Status)
		}
	}
}

func TestPagesThatAreNone(t *testing.T) {
	r := start(t)
	for path, code := range map[string]int{
		"/ui/none": http.StatusNotFound, "/ui/topic": http.StatusBadRequest, "/ui/topic?name=none": http.StatusNotFound, "/ui/task": http.StatusBadRequest,
		"/ui/task?topic=mail&id=none": http.StatusNotFound, "/ui/tasks?topic=mail&state=lost": http.StatusBadRequest, "/ui/static/none": http.StatusNotFound,
	} {
		reply, err := http.Get(r.base + path)
		if err != nil {
			t.Fatal(err)
		}
		reply.Body.Close()
		if reply.StatusCode != code {
			t.Errorf("%s: %s, want %d", path, reply.Status, code)
		}
	}
	post, err := http.Post(r.base+"/ui/", "text/plain", nil)
	if err != nil {
		t.Fatal(err)
	}
	post.Body.Close()
	if post.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: %s", post.Status)
	}
}

func TestWorkersAreShown(t *testing.T) {
	r := start(t)
	r.enqueue(client.Task{Topic: "mail", ID: "later", Delay: time.Hour})
	stream, err := ddqv1.NewDelayQueueServiceClient(r.client.Conn()).Subscribe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&ddqv1.SubscribeRequest{Hello: &ddqv1.Hello{Topic: "mail", Worker: hostile[0], MaxInFlight: 7}}); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/ui/workers", "/ui/workers?topic=mail"} {
		page, text := r.get(http.StatusOK, path)
		r.check(path, page)
		if !strings.Contains(text, html.EscapeString(hostile[0])) || !strings.Contains(text, "grpc-go/") {
			t.Errorf("%s does not show the worker:\n%s", path, text)
		}
	}
	r.get(http.StatusNotFound, "/ui/workers?topic=sms")
}

package ui_test

import (
	"bufio"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/ddq-io/ddq/api/client"
)

const elsewhere = "/tools/ddq"

// follow looks at every address that pages name, from one on, and returns them.
func follow(t *testing.T, visitor *http.Client, base, first string) (seen []string) {
	t.Helper()
	for next := []string{first}; len(next) > 0; next = next[1:] {
		at, _, _ := strings.Cut(next[0], "#")
		if at == "" || slices.Contains(seen, at) {
			continue
		}
		seen = append(seen, at)
		reply, err := visitor.Get(base + at)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(reply.Body)
		reply.Body.Close()
		if err != nil || reply.StatusCode != http.StatusOK {
			t.Errorf("%s: %s, %v", at, reply.Status, err)
			continue
		}
		if !strings.HasPrefix(reply.Header.Get("Content-Type"), "text/html") {
			continue
		}
		page, err := html.Parse(strings.NewReader(string(body)))
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range elements(page) {
			for _, a := range n.Attr {
				switch a.Key {
				case "href", "src":
					next = append(next, a.Val)
				case "action", "formaction", "data-live":
				default:
					continue
				}
				if !strings.HasPrefix(a.Val, elsewhere+"/") && a.Val != "#main" {
					t.Errorf("%s: <%s %s=%q> leads out of the pages", at, n.Data, a.Key, a.Val)
				}
			}
		}
	}
	return seen
}

// TestPagesUnderAnotherPrefix: links, files, the login and its cookie, what forms lead to, and streams are under it.
func TestPagesUnderAnotherPrefix(t *testing.T) {
	r, root := startAsking(t, "--ui-prefix", elsewhere)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	visitor := &http.Client{Jar: jar}
	reply, err := visitor.Get(r.base + "/")
	if err != nil {
		t.Fatal(err)
	}
	asked, _ := io.ReadAll(reply.Body)
	reply.Body.Close()
	if reply.Request.URL.Path != elsewhere+"/" || reply.StatusCode != http.StatusUnauthorized || !strings.Contains(string(asked), `action="`+elsewhere+`/login"`) {
		t.Fatalf("the root leads to %s: %s\n%s", reply.Request.URL, reply.Status, asked)
	}
	next := regexp.MustCompile(`name="next" value="([^"]*)"`).FindStringSubmatch(string(asked))[1]
	post := func(path string, form url.Values) *http.Response {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.base+path, strings.NewReader(form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		request.Header.Set("Sec-Fetch-Site", "same-origin")
		reply, err := visitor.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		reply.Body.Close()
		return reply
	}
	if reply := post(elsewhere+"/login", url.Values{"token": {root}, "next": {next}}); reply.StatusCode != http.StatusOK || reply.Request.URL.Path != elsewhere+"/" {
		t.Fatalf("the login leads to %s: %s", reply.Request.URL, reply.Status)
	}
	at := func(path string) *url.URL { u, _ := url.Parse(r.base + path); return u }
	if in, out := jar.Cookies(at(elsewhere+"/tasks")), jar.Cookies(at("/v1/topics")); len(in) != 1 || len(out) != 0 {
		t.Errorf("%d cookies are sent to pages, and %d to others", len(in), len(out))
	}
	if reply := post(elsewhere+"/topic/create", url.Values{"name": {"mail"}}); reply.StatusCode != http.StatusOK || reply.Request.URL.Path != elsewhere+"/topic" {
		t.Errorf("an action leads to %s: %s", reply.Request.URL, reply.Status)
	}
	sly := `" href="/ui/x`
	r.enqueue(client.Task{Topic: "mail", ID: "soon", Delay: time.Hour, Payload: []byte(sly), Attributes: map[string]string{"where": ` href="/ui/x" action="/ui/x`}})
	seen := follow(t, visitor, r.base, elsewhere+"/")
	for _, want := range []string{"/static/ui.css", "/static/ui.js", "/static/ddq.svg", "/topic?name=mail", "/task?id=soon&topic=mail", "/settings", "/nodes"} {
		if !slices.Contains(seen, elsewhere+want) {
			t.Errorf("no link leads to %s:\n%s", want, strings.Join(seen, "\n"))
		}
	}
	reply, err = visitor.Get(r.base + elsewhere + "/task?topic=mail&id=soon")
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(reply.Body)
	reply.Body.Close()
	for _, want := range []string{html.EscapeString(sly), html.EscapeString(` href="/ui/x" action="/ui/x`)} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s is not shown as it is:\n%s", want, text)
		}
	}
	reply, err = visitor.Get(r.base + elsewhere + "/live?of=" + url.QueryEscape("topic?name=mail"))
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	for lines := bufio.NewScanner(reply.Body); ; {
		if !lines.Scan() {
			t.Fatal("no part of the stream has a link under the prefix")
		}
		if strings.Contains(lines.Text(), `"/ui/`) {
			t.Errorf("%s", lines.Text())
		}
		if strings.Contains(lines.Text(), `href="`+elsewhere+`/tasks`) {
			break
		}
	}
	for path, code := range map[string]int{"/ui/": http.StatusNotFound, "/ui/static/ui.css": http.StatusNotFound, elsewhere + "//settings": http.StatusNotFound, elsewhere + "/x/../settings": http.StatusNotFound} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.base, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.URL.Path = path
		reply, err := visitor.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		reply.Body.Close()
		if reply.StatusCode != code {
			t.Errorf("%s: %s, want %d", path, reply.Status, code)
		}
	}
	if reply := post(elsewhere+"/logout", nil); reply.Request.URL.Path != elsewhere+"/login" || len(jar.Cookies(at(elsewhere+"/"))) != 0 {
		t.Errorf("a logout leads to %s with %d cookies", reply.Request.URL, len(jar.Cookies(at(elsewhere+"/"))))
	}
}

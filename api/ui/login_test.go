package ui_test

import (
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/ddq-io/ddq/api/auth"
	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// startAsking is a server whose callers have to say who they are, and its root token.
func startAsking(t *testing.T, args ...string) (*rig, string) {
	t.Helper()
	_, root, _ := auth.NewToken()
	t.Setenv(rootVariable, root.Reveal())
	return start(t, append([]string{"--auth", "token", "--root-token", "env:" + rootVariable}, args...)...), root.Reveal()
}

// token makes one that may do what a grant says.
func (r *rig) token(name, grant string) (id, secret string) {
	r.Helper()
	g, err := auth.ParseGrant(grant)
	if err != nil {
		r.Fatal(err)
	}
	made, err := ddqv1.NewAccessServiceClient(r.client.Conn()).CreateToken(r.Context(), &ddqv1.CreateTokenRequest{
		Name: name, Grants: []*ddqv1.Grant{{Verbs: g.Verbs.Names(), Namespace: g.Namespace, Topics: string(g.Topics)}},
	})
	if err != nil {
		r.Fatal(err)
	}
	return made.Token.Id, made.Secret
}

// send asks with a cookie, if there is one, and returns the answer and its text.
func (r *rig) send(method, path string, form url.Values, cookie *http.Cookie, headers ...string) (*http.Response, string) {
	r.Helper()
	request, err := http.NewRequestWithContext(r.Context(), method, r.base+path, strings.NewReader(form.Encode()))
	if err != nil {
		r.Fatal(err)
	}
	if method == http.MethodPost {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	if cookie != nil {
		request.AddCookie(cookie)
	}
	reply, err := r.plain.Do(request)
	if err != nil {
		r.Fatal(err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		r.Fatal(err)
	}
	return reply, string(text)
}

// login returns the cookie of a login with a token.
func (r *rig) login(token string) *http.Cookie {
	r.Helper()
	reply, text := r.send(http.MethodPost, "/ui/login", url.Values{"token": {token}, "next": {"/ui/nodes"}}, nil)
	if reply.StatusCode != http.StatusSeeOther || reply.Header.Get("Location") != "/ui/nodes" || len(reply.Cookies()) != 1 {
		r.Fatalf("%s %v\n%s", reply.Status, reply.Header, text)
	}
	return reply.Cookies()[0]
}

// want fails unless an answer has a code.
func (r *rig) want(code int, method, path string, form url.Values, cookie *http.Cookie, headers ...string) string {
	r.Helper()
	reply, text := r.send(method, path, form, cookie, headers...)
	if reply.StatusCode != code {
		r.Fatalf("%s %s: %s, want %d\n%s", method, path, reply.Status, code, text)
	}
	return text
}

func TestALoginBeginsWithATokenAndEndsWithIt(t *testing.T) {
	r, root := startAsking(t)
	id, secret := r.token("ann", "operator")
	if text := r.want(http.StatusUnauthorized, http.MethodGet, "/ui/tasks?topic=mail", nil, nil); !strings.Contains(text, `name="next" value="/ui/tasks?topic=mail"`) {
		t.Errorf("whoever is not known is not asked: %s", text)
	}
	cookie := r.login(secret)
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Path != "/ui/" || strings.Contains(cookie.Value, secret[4:]) {
		t.Errorf("cookie %v", cookie)
	}
	if text := r.want(http.StatusOK, http.MethodGet, "/ui/", nil, cookie); !strings.Contains(text, "ann") || !strings.Contains(text, "Log out") {
		t.Errorf("the page does not say who looks: %s", text)
	}
	again := r.login(secret)
	if again.Value == cookie.Value {
		t.Error("two logins have one key")
	}
	r.want(http.StatusSeeOther, http.MethodPost, "/ui/logout", nil, again)
	r.want(http.StatusUnauthorized, http.MethodGet, "/ui/", nil, again)
	r.want(http.StatusOK, http.MethodGet, "/ui/", nil, cookie)

	if _, err := ddqv1.NewAccessServiceClient(r.client.Conn()).RevokeToken(t.Context(), &ddqv1.RevokeTokenRequest{Id: id}); err != nil {
		t.Fatal(err)
	}
	r.want(http.StatusUnauthorized, http.MethodGet, "/ui/", nil, cookie)
	r.want(http.StatusUnauthorized, http.MethodGet, "/ui/", nil, &http.Cookie{Name: "ddq", Value: secret}) // a token is no key
	r.want(http.StatusOK, http.MethodGet, "/ui/settings", nil, r.login(root))
}

// TestALoginEndsOnce: browsers that log out with one key at the same time all get an answer, and the key counts no more.
func TestALoginEndsOnce(t *testing.T) {
	r, root := startAsking(t)
	cookie := r.login(root)
	replies := make(chan string, 16)
	var all sync.WaitGroup
	for range cap(replies) {
		all.Go(func() {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.base+"/ui/logout", nil)
			if err != nil {
				replies <- err.Error()
				return
			}
			request.AddCookie(cookie)
			reply, err := r.plain.Do(request)
			if err != nil {
				replies <- err.Error()
				return
			}
			reply.Body.Close()
			replies <- reply.Status
		})
	}
	all.Wait()
	close(replies)
	for reply := range replies {
		if reply != "303 See Other" {
			t.Errorf("one that logs out is answered %s", reply)
		}
	}
	r.want(http.StatusUnauthorized, http.MethodGet, "/ui/", nil, cookie)
	r.want(http.StatusSeeOther, http.MethodPost, "/ui/logout", nil, cookie)
	r.want(http.StatusUnauthorized, http.MethodGet, "/ui/", nil, cookie)
}

// TestAFormThatCameTooLateIsKept until its sender has logged in, and sent by them once more.
func TestAFormThatCameTooLateIsKept(t *testing.T) {
	r, root := startAsking(t)
	r.enqueue(client.Task{Topic: "mail", ID: "a", Delay: time.Hour, Payload: []byte("one")})
	cookie := r.login(root)
	form := url.Values{"topic": {"mail"}, "id": {"a"}, "payload": {"two\r\n<b>"}, "max_retries": {"3"}, "priority": {"4"}}
	r.want(http.StatusSeeOther, http.MethodPost, "/ui/logout", nil, cookie)

	ask := func(text, action string) url.Values {
		t.Helper()
		page, err := html.Parse(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		r.check(action, page)
		for _, n := range elements(page) {
			if n.Data == "form" && attr(n, "action") == action {
				return fields(n)
			}
		}
		t.Fatalf("no form for %s:\n%s", action, text)
		return nil
	}
	login := ask(r.want(http.StatusUnauthorized, http.MethodPost, "/ui/task/edit", form, cookie), "/ui/login")
	login.Set("token", "ddq_wrong")
	login = ask(r.want(http.StatusUnauthorized, http.MethodPost, "/ui/login", login, nil), "/ui/login")
	login.Set("token", root)
	reply, text := r.send(http.MethodPost, "/ui/login", login, nil)
	if len(reply.Cookies()) != 1 || string(r.find("mail", "a").Payload) != "one" {
		t.Fatalf("%s\n%s", reply.Status, text)
	}
	r.want(http.StatusSeeOther, http.MethodPost, "/ui/task/edit", ask(text, "/ui/task/edit"), reply.Cookies()[0])
	if got := r.find("mail", "a"); string(got.Payload) != "two\n<b>" || got.Priority != 4 {
		t.Errorf("%v", got)
	}

	form.Set("payload", strings.Repeat("x", 65<<10))
	if text := r.want(http.StatusUnauthorized, http.MethodPost, "/ui/task/edit", form, nil); strings.Contains(text, `name="form"`) || !strings.Contains(text, "Nothing was done") {
		t.Error("a form that is too large is kept")
	}
	for _, path := range []string{"https://example.com/", "/metrics", "/ui/x?y=z", "//example.com"} {
		reply, _ := r.send(http.MethodPost, "/ui/login", url.Values{"token": {root}, "path": {path}, "form": {"a=b"}}, nil)
		if to := reply.Header.Get("Location"); reply.StatusCode != http.StatusSeeOther || to != "/ui/" {
			t.Errorf("a form for %q is kept: %s, %s", path, reply.Status, to)
		}
	}
}

func TestALoginLeadsNowhereElse(t *testing.T) {
	r, root := startAsking(t)
	for _, next := range []string{"https://example.com/", "//example.com", "/ui/\\example.com", "/metrics", "/ui/../metrics", "/ui/../../evil", "/ui/%2e%2e/metrics", "/uix", ""} {
		reply, _ := r.send(http.MethodPost, "/ui/login", url.Values{"token": {root}, "next": {next}}, nil)
		if to := reply.Header.Get("Location"); to != "/ui/" {
			t.Errorf("%q leads to %q", next, to)
		}
	}
}

// TestWrongTokensKeepNobodyOut: this machine's own are not counted, and a right one is taken in any case.
func TestWrongTokensKeepNobodyOut(t *testing.T) {
	r, root := startAsking(t)
	for range 20 {
		r.want(http.StatusUnauthorized, http.MethodPost, "/ui/login", url.Values{"token": {"ddq_x"}}, nil)
	}
	r.login(root)
}

// TestPagesOfOtherOriginsDoNothing: neither with a cookie nor where nobody is asked, and not those
// that may call the API either.
func TestPagesOfOtherOriginsDoNothing(t *testing.T) {
	r := start(t, "--cors-origin", "https://app.example.com")
	r.enqueue(client.Task{Topic: "mail", ID: "a", Delay: time.Hour})
	form := url.Values{"topic": {"mail"}, "id": {"a"}}
	for _, headers := range [][]string{
		{"Origin", "https://evil.example.com"}, {"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "null"},
		{"Origin", "https://app.example.com"}, {"Origin", "https://app.example.com", "Sec-Fetch-Site", "cross-site"},
	} {
		r.want(http.StatusForbidden, http.MethodPost, "/ui/task/delete", form, nil, headers...)
	}
	r.want(http.StatusOK, http.MethodGet, "/ui/task?topic=mail&id=a", nil, nil)
	r.want(http.StatusSeeOther, http.MethodPost, "/ui/task/delete", form, nil, "Origin", r.base)
	r.want(http.StatusNotFound, http.MethodGet, "/ui/task/delete?topic=mail&id=a", nil, nil)
}

// TestWhatAViewerPostsByHandIsWrittenDown, and not done.
func TestWhatAViewerPostsByHandIsWrittenDown(t *testing.T) {
	file := filepath.Join(t.TempDir(), "audit")
	r, _ := startAsking(t, "--audit-log", file)
	r.enqueue(client.Task{Topic: "mail", ID: "a", Delay: time.Hour})
	_, secret := r.token("ann", "viewer:mail")
	r.want(http.StatusForbidden, http.MethodPost, "/ui/topic/pause", url.Values{"name": {"mail"}, "delivery": {"1"}}, r.login(secret))
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "PauseTopic") && strings.Contains(line, "refused") {
			return
		}
	}
	t.Errorf("nothing is written down of it:\n%s", text)
}

// TestARoleSaysWhatIsThere: what a visitor may not do is not offered, and refused all the same.
func TestARoleSaysWhatIsThere(t *testing.T) {
	r, _ := startAsking(t)
	r.enqueue(client.Task{Topic: "mail", ID: "a", Delay: time.Hour, Payload: []byte("secret of ann")}, client.Task{Topic: "sms", ID: "b", Delay: time.Hour})
	_, secret := r.token("viewer", "viewer:mail")
	viewer := r.login(secret)
	_, secret = r.token("operator", "operator")
	operator := r.login(secret)
	_, secret = r.token("producer", "viewer,payload,producer:mail")
	producer := r.login(secret)

	if text := r.want(http.StatusOK, http.MethodGet, "/ui/", nil, viewer); strings.Contains(text, "sms") || !strings.Contains(text, "mail") {
		t.Error("the topics are not those that were granted")
	}
	r.want(http.StatusForbidden, http.MethodGet, "/ui/topic?name=sms", nil, viewer)
	if text := r.want(http.StatusOK, http.MethodGet, "/ui/task?topic=mail&id=a", nil, viewer); strings.Contains(text, "secret of ann") {
		t.Error("a viewer sees the payload")
	}
	if text := r.want(http.StatusOK, http.MethodGet, "/ui/task?topic=mail&id=a", nil, producer); !strings.Contains(text, "secret of ann") || !strings.Contains(text, "/ui/task/promote") {
		t.Error("a producer cannot see and run its task")
	}
	for _, path := range []string{"/ui/", "/ui/task?topic=mail&id=a", "/ui/topic?name=mail", "/ui/nodes", "/ui/settings", "/ui/shards", "/ui/dead?topic=mail", "/ui/changes?topic=mail", "/ui/operations?topic=mail", "/ui/tasks?topic=mail&id=a"} {
		text := r.want(http.StatusOK, http.MethodGet, path, nil, viewer)
		if n := strings.Count(text, `method="post"`); n != 1 { // that of the logout
			t.Errorf("%s: a viewer is offered %d actions\n%s", path, n-1, text)
		}
	}
	if text := r.want(http.StatusOK, http.MethodGet, "/ui/topic?name=mail", nil, operator); !strings.Contains(text, "/ui/topic/pause") || strings.Contains(text, "/ui/topic/delete") {
		t.Error("an operator pauses topics and deletes none")
	}
	for path, form := range map[string]url.Values{
		"/ui/task/delete":    {"topic": {"mail"}, "id": {"a"}},
		"/ui/topic/pause":    {"name": {"mail"}, "delivery": {"1"}},
		"/ui/topic/delete":   {"name": {"mail"}, "sure": {"mail"}, "force": {"1"}},
		"/ui/node/drain":     {"name": {"x"}},
		"/ui/dead/requeue":   {"topic": {"mail"}, "which": {"all"}},
		"/ui/tasks/delete":   {"topic": {"mail"}, "id": {"a"}, "sure": {"mail"}, "count": {"1"}},
		"/ui/changes/keep":   {"topic": {"mail"}},
		"/ui/operation/stop": {"topic": {"mail"}, "id": {"x"}},
		"/ui/tokens/create":  {"name": {"x"}, "grants": {"root"}, "days": {"1"}},
	} {
		r.want(http.StatusForbidden, http.MethodPost, path, form, viewer)
	}
	r.want(http.StatusUnauthorized, http.MethodPost, "/ui/task/delete", url.Values{"topic": {"mail"}, "id": {"a"}}, nil)
}

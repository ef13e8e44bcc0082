package rest

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/ddq-io/ddq/api/access"
	"github.com/ddq-io/ddq/api/auth"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/store/memstore"
)

// newAskingRig serves callers that say who they are, and returns the header of who may do all.
func newAskingRig(t *testing.T, routes ...testRoute) (r *rig, root string) {
	t.Helper()
	_, secret, _ := auth.NewToken()
	st := memstore.New()
	who, err := access.New(access.Config{On: true, Root: secret, Node: "node", Failures: 1}, st, slog.New(slog.DiscardHandler))
	must(t, err)
	who.Start(t.Context())
	t.Cleanup(who.Stop)
	s, port, url := serve(t, st, Config{}, who, routes...)
	return &rig{T: t, url: url, server: s, port: port}, bearer(secret.Reveal())
}

// Where callers have to say who they are, every route asks: those that are transcoded, those
// that are written by hand, and those beside the API.
func TestEveryRouteAsksWhoCalls(t *testing.T) {
	r, as := newAskingRig(t,
		testRoute{"/metrics", Rule{Call: ddqv1.AdminService_DescribeServer_FullMethodName}, http.NotFound},
		testRoute{"/healthz", Rule{Public: true}, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }},
	)
	for _, c := range []struct {
		method, path, body string
		status             int
	}{
		{"POST", "/v1/topics/t/tasks", `{"delay":"60s"}`, 202},
		{"POST", "/v1/topics/t/tasks:raw?delay=60s", "x", 202},
		{"POST", "/v1/topics/t:take", "", 204},
		{"GET", "/v1/topics/t/tasks:export", "", 200},
		{"GET", "/v1/server", "", 200},
		{"GET", "/v1/whoami", "", 200},
		{"GET", "/v1/tokens", "", 200},
		{"GET", "/metrics", "", 404},
	} {
		refused := r.do(c.method, c.path, c.body)
		refused.problem(401, "NO_CREDENTIALS")
		if refused.header.Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("%s: got %v", c.path, refused.header)
		}
		r.do(c.method, c.path, c.body, as).want(c.status)
	}
	lines := "Content-Type: " + linesType
	if got := r.do("POST", "/v1/topics/t/tasks:import", `{"delay":"60s"}`, lines, as).want(200).body; !strings.Contains(got, `"stored":1`) {
		t.Errorf("got %s", got)
	}
	r.do("GET", "/healthz", "").want(200)
	r.do("GET", "/v1/openapi.json", "").want(200)
}

// What is too much is 429, with the time to come back: failures of an address, and calls of a token.
func TestTooManyCallsAreTold(t *testing.T) {
	r, root := newAskingRig(t)
	get := func(addr, header string) *httptest.ResponseRecorder {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/v1/topics", http.NoBody)
		request.RemoteAddr = addr
		name, value, _ := strings.Cut(header, ": ")
		request.Header.Set(name, value)
		w := httptest.NewRecorder()
		r.port.ServeHTTP(w, request)
		return w
	}
	tooMany := func(addr, header, reason string) {
		t.Helper()
		for range 1000 {
			w := get(addr, header)
			if w.Code != http.StatusTooManyRequests {
				continue
			}
			if w.Header().Get("Retry-After") != "1" || !strings.Contains(w.Body.String(), reason) {
				t.Errorf("got %v %s", w.Header(), w.Body)
			}
			return
		}
		t.Errorf("never %s", reason)
	}
	tooMany("192.0.2.1:5000", "Authorization: Bearer x", "TOO_MANY_FAILURES")
	if w := get("192.0.2.1:5000", root); w.Code != http.StatusOK {
		t.Errorf("who is known, from that address: %d %s", w.Code, w.Body)
	}
	if w := get("192.0.2.2:5000", "Authorization: Bearer x"); w.Code != http.StatusUnauthorized {
		t.Errorf("another address: %d %s", w.Code, w.Body)
	}
	slow := makeToken(r, "/v1/tokens", `{"name":"x","calls_per_second":1,"grants":[{"verbs":["viewer"],"topics":"mail"}]}`, root)
	tooMany("192.0.2.1:5000", bearer(slow.Secret), "RATE_LIMITED")
}

// A token sends no more bytes of payloads in a second than it may, whichever way.
func TestTooManyBytesAreTold(t *testing.T) {
	r, root := newAskingRig(t)
	made := makeToken(r, "/v1/tokens", `{"name":"x","bytes_per_second":1,"grants":[{"verbs":["producer"],"topics":"mail"}]}`, root)
	as := bearer(made.Secret)
	if got := r.do("GET", "/v1/whoami", "", as).want(200).body; !strings.Contains(got, `"bytes_per_second":1`) {
		t.Errorf("who it is: %s", got)
	}
	hour := strings.Repeat("x", 3600)
	r.do("POST", "/v1/topics/mail/tasks:raw?delay=60s", hour, as).want(202)
	for path, body := range map[string]string{"tasks:raw": "x", "tasks": `{"payload":"eA=="}`} {
		got := r.do("POST", "/v1/topics/mail/"+path, body, as)
		got.problem(429, "RATE_LIMITED")
		if wait, err := strconv.Atoi(got.header.Get("Retry-After")); err != nil || wait < 3500 || wait > 3600 {
			t.Errorf("%s: %v", path, got.header)
		}
	}
	r.do("POST", "/v1/topics/mail/tasks", `{"delay":"60s"}`, as).want(202) // it brings nothing
}

func TestNamespaces(t *testing.T) {
	r, root := newAskingRig(t)
	r.do("POST", "/v1/namespaces", `{"name":"acme"}`, root).want(201)
	r.do("GET", "/v1/namespaces/acme", "", root).want(200)
	r.do("DELETE", "/v1/namespaces/acme", "", root).want(204)
	r.do("DELETE", "/v1/namespaces/acme", "", root).want(404)
}

package rest

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/upkeep"
	"github.com/ddq-io/ddq/api/access"
	"github.com/ddq-io/ddq/api/server"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/operations"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
)

// rig is a server on a port of its own, with an in-memory store.
type rig struct {
	*testing.T
	url    string
	server *server.Server
	port   *Port
}

func newRig(t *testing.T, config Config, routes ...testRoute) *rig {
	t.Helper()
	s, port, url := serve(t, memstore.New(), config, nil, routes...)
	return &rig{T: t, url: url, server: s, port: port}
}

// testRoute is a path beside the API. A port that listens is anybody's who knows its number, so all are
// added before.
type testRoute struct {
	at   string
	rule Rule
	http.HandlerFunc
}

// serve starts a server with an HTTP port on a store.
func serve(t testing.TB, st store.Store, config Config, who *access.Access, routes ...testRoute) (s *server.Server, port *Port, url string) {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	node := actors.New(actors.Config{}, st, quiet, nil)
	up := upkeep.New(node)
	cases := service.New(node, up.IndexNow)
	must(t, node.Start(t.Context()))
	up.Start()
	registry, _ := st.(store.Registry)
	long := operations.New(registry, "node", node.Clock().Millis, quiet)
	s = server.New(server.Config{Access: who, Operations: long}, cases, quiet, nil)
	config.Authorize = s.Authorize
	port, err := NewPort(config, quiet)
	must(t, err)
	must(t, port.ServeAPI(s.Channel()))
	for _, r := range routes {
		must(t, port.Route(r.at, r.rule, r))
	}
	port.Open()
	web := httptest.NewUnstartedServer(port)
	web.Config.MaxHeaderBytes = 16 << 10
	web.Start()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		must(t, s.Stop(ctx))
		web.Close()
		long.Stop()
		must(t, node.Stop(ctx))
		must(t, st.Close())
	})
	return s, port, web.URL
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// reply is an answer, read.
type reply struct {
	*testing.T
	status int
	header http.Header
	body   string
}

// do makes a request. Headers are "Name: value".
func (r *rig) do(method, path, body string, headers ...string) reply {
	r.Helper()
	var from io.Reader
	if body != "" {
		from = strings.NewReader(body)
	}
	request, err := http.NewRequestWithContext(r.Context(), method, r.url+path, from)
	must(r, err)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	if strings.Contains(path, "tasks:raw") {
		request.Header.Set("Content-Type", "application/octet-stream")
	}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		if name == "Host" {
			request.Host = value
			continue
		}
		if name == "Content-Type" {
			request.Header.Del(name)
		}
		request.Header.Add(name, value)
	}
	answer, err := http.DefaultTransport.RoundTrip(request)
	must(r, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	must(r, err)
	described(r.T, request, body, answer, text)
	return reply{r.T, answer.StatusCode, answer.Header, string(text)}
}

// want fails unless the status is as told, and returns the body.
func (r reply) want(status int) reply {
	r.Helper()
	if r.status != status {
		r.Fatalf("got %d: %s", r.status, r.body)
	}
	return r
}

// problem fails unless the answer is a problem with this status and reason.
func (r reply) problem(status int, reason string) problem {
	r.Helper()
	var p problem
	if err := json.Unmarshal([]byte(r.body), &p); err != nil || r.header.Get("Content-Type") != "application/problem+json" {
		r.Errorf("got %d, no problem: %q", r.status, r.body)
		return p
	}
	if r.status != status || p.Status != status || p.Reason != reason || p.Code == "" || p.Detail == "" || p.Type != typePrefix+reason || p.RequestID == "" || p.Title == "" {
		r.Errorf("got %d %s, want %d %s: %s", r.status, p.Reason, status, reason, r.body)
	}
	return p
}

// field is a value of the body, by its path.
func (r reply) field(path string) any {
	r.Helper()
	var v any
	if err := json.Unmarshal([]byte(r.body), &v); err != nil {
		r.Fatalf("%v: %s", err, r.body)
	}
	for name := range strings.SplitSeq(path, ".") {
		object, _ := v.(map[string]any)
		v = object[name]
	}
	return v
}

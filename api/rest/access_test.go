package rest

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/ddq-io/ddq/api/access"
	"github.com/ddq-io/ddq/api/auth"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/store/memstore"
)

// Where callers have to say who they are, every route asks: those that are transcoded, those
// that are written by hand, and those beside the API.
func TestEveryRouteAsksWhoCalls(t *testing.T) {
	_, root, _ := auth.NewToken()
	st := memstore.New()
	who, err := access.New(access.Config{On: true, Root: root, Node: "node"}, st, slog.New(slog.DiscardHandler))
	must(t, err)
	who.Start(t.Context())
	t.Cleanup(who.Stop)
	s, port, url := serve(t, st, Config{}, who)
	r := &rig{T: t, url: url, server: s, port: port}
	must(t, port.Route("/metrics", Rule{Call: ddqv1.AdminService_DescribeServer_FullMethodName}, http.NotFoundHandler()))
	must(t, port.Route("/healthz", Rule{Public: true}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })))
	as := "Authorization: Bearer " + root.Reveal()
	for _, c := range []struct {
		method, path, body string
		status             int
	}{
		{"POST", "/v1/topics/t/tasks", `{"delay":"60s"}`, 202},
		{"POST", "/v1/topics/t/tasks:raw?delay=60s", "x", 202},
		{"POST", "/v1/topics/t:take", "", 204},
		{"GET", "/v1/topics/t/tasks:export", "", 200},
		{"GET", "/v1/server", "", 200},
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

package node

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/rest"
)

func TestGraphIsComplete(t *testing.T) {
	n := &Node{cfg: &Config{Store: Memory, GRPCAddr: "127.0.0.1:0", HTTPAddr: Off}}
	if err := fx.ValidateApp(n.options(t.Context(), slog.New(slog.DiscardHandler))); err != nil {
		t.Fatal(err)
	}
}

func TestNodeServesUntilItStops(t *testing.T) {
	cfg := &Config{Store: Memory, GRPCAddr: "127.0.0.1:0", HTTPAddr: "127.0.0.1:0", ShutdownGrace: 10 * time.Second}
	n, err := Start(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.Dial(n.GRPCAddr(), client.Config{MaxElapsed: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if nodes, err := c.Nodes(t.Context()); err != nil || len(nodes) != 1 || nodes[0].Addr != n.GRPCAddr() {
		t.Errorf("nodes %+v, %v; it listens at %s", nodes, err, n.GRPCAddr())
	}
	if status, err := c.Server(t.Context()); err != nil || status.Store != "memory" || n.Ready() != nil || n.HTTPAddr() == "" {
		t.Errorf("%+v, %v; ready %v, probes at %q", status, err, n.Ready(), n.HTTPAddr())
	}
	if err := n.Stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
	if _, err := c.Server(t.Context()); err == nil || n.Ready() == nil {
		t.Errorf("after the stop the server answers %v, ready is %v", err, n.Ready())
	}
}

// Who polls /readyz and then dials must not be refused.
func TestNodeIsNotReadyBeforeItsPortIsOpen(t *testing.T) {
	n := &Node{cfg: &Config{Store: Memory, GRPCAddr: "127.0.0.1:0", HTTPAddr: Off}, failed: make(chan error, 3)}
	if err := n.cfg.Check(); err != nil {
		t.Fatal(err)
	}
	if err := fx.New(n.options(t.Context(), slog.New(slog.DiscardHandler))).Err(); err != nil {
		t.Fatal(err)
	}
	if err := n.sys.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer n.sys.Stop(t.Context())
	w := httptest.NewRecorder()
	probe(t, w, n, "/readyz")
	if w.Code != http.StatusServiceUnavailable || n.sys.Ready() != nil {
		t.Errorf("/readyz answers %d %q while the runtime says %v and the port is closed", w.Code, w.Body, n.sys.Ready())
	}
	n.open.Store(true)
	if err := n.Ready(); err != nil {
		t.Errorf("with the port open: %v", err)
	}
}

func TestStartRefusesWhatCannotWork(t *testing.T) {
	_, err := Start(t.Context(), &Config{Store: "etcd://x"}, slog.New(slog.DiscardHandler))
	if !errors.As(err, new(ConfigError)) {
		t.Errorf("err = %v, want a ConfigError", err)
	}
}

type fakeHealth struct{ notReady, failed error }

func (h *fakeHealth) Ready() error  { return h.notReady }
func (h *fakeHealth) Failed() error { return h.failed }

func TestProbesSayWhyNot(t *testing.T) {
	errAway, broken := errors.New("store away"), errors.New("broken")
	for _, tc := range []struct {
		path string
		fakeHealth
		code int
		body string
	}{
		{"/readyz", fakeHealth{}, http.StatusOK, "ready"},
		{"/readyz", fakeHealth{notReady: errAway}, http.StatusServiceUnavailable, errAway.Error()},
		{"/healthz", fakeHealth{notReady: errAway}, http.StatusOK, "ok"},
		{"/healthz", fakeHealth{notReady: errAway, failed: broken}, http.StatusServiceUnavailable, broken.Error()},
		{"/debug/pprof/", fakeHealth{}, http.StatusNotFound, "NO_ROUTE"},
	} {
		w := httptest.NewRecorder()
		probe(t, w, &tc.fakeHealth, tc.path)
		if w.Code != tc.code || !strings.Contains(w.Body.String(), tc.body) {
			t.Errorf("%s of %+v: %d %q, want %d %q", tc.path, tc.fakeHealth, w.Code, w.Body, tc.code, tc.body)
		}
	}
}

func probe(t *testing.T, w http.ResponseWriter, h health, path string) {
	t.Helper()
	port, err := newPort(&Config{}, slog.New(slog.DiscardHandler), h, prometheus.NewRegistry(), nil)
	if err != nil {
		t.Fatal(err)
	}
	port.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost"+path, nil))
}

// TestHandlersThatPanicAreCounted, and who asked is answered.
func TestHandlersThatPanicAreCounted(t *testing.T) {
	reg := prometheus.NewRegistry()
	port, err := newPort(&Config{}, slog.New(slog.DiscardHandler), &fakeHealth{}, reg, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := port.Route("/broken", rest.Rule{Public: true}, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("broken") })); err != nil {
		t.Fatal(err)
	}
	get := func(path string) string {
		w := httptest.NewRecorder()
		port.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost"+path, nil))
		return w.Body.String()
	}
	for _, want := range []string{"ddq_http_panics_total 0\n", "ddq_http_panics_total 1\n", "ddq_http_panics_total 2\n"} {
		if text := get("/metrics"); !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
		if text := get("/broken"); !strings.Contains(text, "INTERNAL") {
			t.Errorf("answered: %q", text)
		}
	}
}

func TestHTTPPortServesWhatIsSaid(t *testing.T) {
	for _, tc := range []struct {
		serve        []string
		api, metrics int
	}{
		{nil, http.StatusOK, http.StatusOK},
		{[]string{"api"}, http.StatusOK, http.StatusNotFound},
		{[]string{"metrics"}, http.StatusNotFound, http.StatusOK},
	} {
		cfg := &Config{Store: Memory, GRPCAddr: "127.0.0.1:0", HTTPAddr: "127.0.0.1:0", HTTPServe: tc.serve}
		n, err := Start(t.Context(), cfg, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		for path, want := range map[string]int{"/v1/server": tc.api, "/metrics": tc.metrics, "/healthz": http.StatusOK, "/readyz": http.StatusOK} {
			answer, err := http.Get("http://" + n.HTTPAddr() + path)
			if err != nil {
				t.Fatal(err)
			}
			answer.Body.Close()
			if answer.StatusCode != want {
				t.Errorf("serving %v, %s is %d", tc.serve, path, answer.StatusCode)
			}
		}
		if err := n.Stop(); err != nil {
			t.Error(err)
		}
	}
}

func TestHTTPSettingsAreChecked(t *testing.T) {
	for _, cfg := range []Config{
		{HTTPServe: []string{"pages"}},
		{CORSOrigins: []string{"*"}},
		{CORSOrigins: []string{"null"}},
		{CORSOrigins: []string{"http://app.example"}},
	} {
		cfg.Store, cfg.GRPCAddr, cfg.HTTPAddr = Memory, "127.0.0.1:0", "127.0.0.1:0"
		var wrong ConfigError
		if err := cfg.Check(); !errors.As(err, &wrong) {
			t.Errorf("%v and %v are taken: %v", cfg.HTTPServe, cfg.CORSOrigins, err)
		}
	}
}

func TestThePrefixOfPagesIsChecked(t *testing.T) {
	for prefix, taken := range map[string]bool{
		"": true, "/ui": true, "/ddq": true, "/tools/ddq": true, "/v1x": true, "/a-b_c.d~e": true,
		"ddq": false, "/": false, "/ddq/": false, "//ddq": false, "/a/../b": false, "/./a": false, "/a b": false, `/a"b`: false, "/a<b": false, "/a{b}": false, "/a?b": false, "/a#b": false, "/a%2fb": false, "/ä": false,
		"/v1": false, "/v1/ui": false, "/metrics": false, "/healthz": false, "/readyz/ui": false,
	} {
		cfg := Config{Store: Memory, GRPCAddr: "127.0.0.1:0", HTTPAddr: "127.0.0.1:0", UIPrefix: prefix}
		err := cfg.Check()
		switch {
		case taken && err != nil:
			t.Errorf("%q: %v", prefix, err)
		case !taken && (!errors.As(err, new(ConfigError)) || !strings.Contains(err.Error(), "--ui-prefix")):
			t.Errorf("%q is taken: %v", prefix, err)
		}
	}
}

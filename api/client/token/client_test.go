package token

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// endpoint is an issuer that gives out tokens over HTTPS.
type endpoint struct {
	*httptest.Server
	about  map[string]any // what it says of itself
	answer map[string]any
	status int
	form   string // of the last request for a token
}

func newEndpoint(t *testing.T) *endpoint {
	t.Helper()
	e := &endpoint{answer: map[string]any{"access_token": "abc", "token_type": "bearer", "expires_in": 600}, status: http.StatusOK}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /realm/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(e.about) })
	mux.HandleFunc("GET /elsewhere", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/realm/token", http.StatusTemporaryRedirect)
	})
	mux.HandleFunc("POST /elsewhere", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/realm/token", http.StatusTemporaryRedirect)
	})
	mux.HandleFunc("POST /realm/token", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		e.form = string(body)
		if id, secret, ok := r.BasicAuth(); !ok || id != "a%3Ab" || secret != "p%26q" {
			w.WriteHeader(http.StatusUnauthorized)
			_ = json.NewEncoder(w).Encode(map[string]string{"error": "invalid_client"})
			return
		}
		w.WriteHeader(e.status)
		_ = json.NewEncoder(w).Encode(e.answer)
	})
	e.Server = httptest.NewTLSServer(mux)
	t.Cleanup(e.Close)
	e.about = map[string]any{"issuer": e.URL + "/realm", "token_endpoint": e.URL + "/realm/token"}
	return e
}

// program is one that the endpoint knows.
func (e *endpoint) program() Client {
	return Client{Issuer: e.URL + "/realm", ID: "a:b", Secret: "p&q", Audience: "ddq", Scopes: []string{"x", "y"}, HTTP: e.Client()}
}

func TestAnIssuerGivesAToken(t *testing.T) {
	e := newEndpoint(t)
	got, err := e.program().Fetch(t.Context())
	if err != nil || got.Text != "abc" || time.Until(got.Expires) > 600*time.Second || time.Until(got.Expires) < 500*time.Second {
		t.Errorf("%+v, %v", got, err)
	}
	if e.form != "audience=ddq&grant_type=client_credentials&scope=x+y" {
		t.Errorf("asked by %s", e.form)
	}
	delete(e.answer, "expires_in")
	if got, err := e.program().Fetch(t.Context()); err != nil || !got.Expires.IsZero() {
		t.Errorf("whose end is not said: %+v, %v", got, err)
	}
}

func TestIssuersThatGiveNone(t *testing.T) {
	for what, c := range map[string]struct {
		change func(e *endpoint, p *Client)
		want   string
	}{
		"plain":          {func(_ *endpoint, p *Client) { p.Issuer = strings.Replace(p.Issuer, "https", "http", 1) }, "no https URL"},
		"not trusted":    {func(_ *endpoint, p *Client) { p.HTTP = nil }, "certificate"},
		"not there":      {func(_ *endpoint, p *Client) { p.Issuer += "/x" }, "404"},
		"another one":    {func(e *endpoint, _ *Client) { e.about["issuer"] = e.URL }, "says that it is"},
		"plain endpoint": {func(e *endpoint, _ *Client) { e.about["token_endpoint"] = "http://127.0.0.1/token" }, "gives tokens out at"},
		"no endpoint":    {func(e *endpoint, _ *Client) { delete(e.about, "token_endpoint") }, "gives tokens out at"},
		"redirect":       {func(e *endpoint, _ *Client) { e.about["token_endpoint"] = e.URL + "/elsewhere" }, "307"},
		"another secret": {func(_ *endpoint, p *Client) { p.Secret = "x" }, "invalid_client"},
		"refused": {func(e *endpoint, _ *Client) {
			e.status, e.answer = http.StatusBadRequest, map[string]any{"error": "invalid_scope"}
		}, "invalid_scope"},
		"no token":          {func(e *endpoint, _ *Client) { delete(e.answer, "access_token") }, "no bearer token"},
		"another kind":      {func(e *endpoint, _ *Client) { e.answer["token_type"] = "mac" }, "no bearer token"},
		"a life of letters": {func(e *endpoint, _ *Client) { e.answer["expires_in"] = "soon" }, "expires_in"},
	} {
		e := newEndpoint(t)
		p := e.program()
		c.change(e, &p)
		got, err := p.Fetch(t.Context())
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), p.Secret+"\"") {
			t.Errorf("%s: %+v, %v; want %q", what, got, err, c.want)
		}
	}
}

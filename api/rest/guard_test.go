package rest

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/ddq-io/ddq/api/requestid"
)

func TestHostsOfOthersAreRefused(t *testing.T) {
	r := newRig(t, Config{Hosts: []string{"Queue.example.com"}})
	for host, want := range map[string]int{
		"localhost": 200, "LOCALHOST:1": 200, "127.0.0.1:8080": 200, "[::1]:8080": 200, "127.0.0.9": 200,
		"queue.example.com": 200, "QUEUE.example.com.:80": 200,
		"evil.example": 421, "queue.example.com.evil.example": 421, "localhost.evil.example": 421, "10.1.2.3": 421, "0.0.0.0": 421,
	} {
		got := r.do("GET", "/v1/server", "", "Host: "+host)
		if got.status != want {
			t.Errorf("%s: %d", host, got.status)
		}
		if want == 421 {
			got.problem(421, "WRONG_HOST")
		}
	}
}

func TestPagesOfOtherOriginsAreRefused(t *testing.T) {
	r := newRig(t, Config{Origins: []string{"https://app.example"}})
	post := func(headers ...string) reply { return r.do("POST", "/v1/topics/t/tasks", "{}", headers...) }
	post("Origin: https://evil.example").problem(403, "CROSS_ORIGIN")
	post("Sec-Fetch-Site: cross-site").problem(403, "CROSS_ORIGIN")
	post("Sec-Fetch-Site: same-site").problem(403, "CROSS_ORIGIN")
	post("Origin: null").problem(403, "CROSS_ORIGIN")
	post("Origin: https://app.example.evil.example").problem(403, "CROSS_ORIGIN")
	post("Sec-Fetch-Site: same-origin").want(202)
	post("Origin: " + r.url).want(202)
	post().want(202)

	if got := post("Origin: https://app.example", "Sec-Fetch-Site: cross-site").want(202).header; got.Get("Access-Control-Allow-Origin") != "https://app.example" ||
		got.Get("Access-Control-Allow-Credentials") != "" || !strings.Contains(got.Get("Access-Control-Expose-Headers"), "ETag") {
		t.Errorf("got %v", got)
	}
	before := r.do("OPTIONS", "/v1/topics/t/tasks", "", "Origin: https://app.example", "Access-Control-Request-Method: POST").want(204).header
	if before.Get("Access-Control-Max-Age") != "600" || !strings.Contains(before.Get("Access-Control-Allow-Headers"), "If-Match") {
		t.Errorf("got %v", before)
	}
	other := r.do("OPTIONS", "/v1/topics/t/tasks", "", "Origin: https://evil.example", "Access-Control-Request-Method: POST").want(204).header
	if other.Get("Access-Control-Allow-Origin") != "" || other.Get("Vary") != "Origin" {
		t.Errorf("got %v", other)
	}
}

// TestWhatPagesMaySend has each origin with each word of the browser on it. A page of another origin
// changes nothing, with permission or without; what only reads is let through, for the browser shows
// the page no answer without the headers that allow it.
func TestWhatPagesMaySend(t *testing.T) {
	asking, root := newAskingRig(t)
	for who, rig := range map[string]struct {
		*rig
		as      []string
		refused int // who is let through; 0: nobody is
	}{
		"all may":     {newRig(t, Config{}), nil, 0},
		"with root":   {asking, []string{root}, 0},
		"without one": {asking, nil, http.StatusUnauthorized},
	} {
		for _, c := range []struct {
			origin, site string
			let          bool
		}{
			{"", "", true}, // no browser
			{"", "none", true},
			{"", "same-origin", true},
			{"", "same-site", false},
			{"", "cross-site", false},
			{rig.url, "", true},
			{rig.url, "none", true},
			{rig.url, "same-origin", true},
			{rig.url, "same-site", false},
			{rig.url, "cross-site", false},
			{"https://evil.example", "", false},
			{"https://evil.example", "none", true}, // the browser's word counts, and pages cannot say it
			{"https://evil.example", "same-origin", true},
			{"https://evil.example", "same-site", false},
			{"https://evil.example", "cross-site", false},
			{"null", "", false},
			{"null", "same-site", false},
			{"null", "cross-site", false},
		} {
			headers := slices.Clone(rig.as)
			if c.origin != "" {
				headers = append(headers, "Origin: "+c.origin)
			}
			if c.site != "" {
				headers = append(headers, "Sec-Fetch-Site: "+c.site)
			}
			for _, tc := range []struct {
				method, path, body, kind string
				done                     int
			}{
				{"GET", "/v1/server", "", "", 200},
				{"POST", "/v1/topics/t/tasks", "{}", "application/json", 202},
				{"POST", "/v1/topics/t/tasks", "{}", "text/plain", 415}, // as forms can send it
				{"DELETE", "/v1/topics/t/tasks/none", "", "", 404},
			} {
				want := tc.done
				switch {
				case tc.method != "GET" && !c.let:
					want = http.StatusForbidden
				case rig.refused != 0 && tc.done != http.StatusUnsupportedMediaType: // which is said before
					want = rig.refused
				}
				sent := headers
				if tc.kind != "" {
					sent = append(slices.Clone(headers), "Content-Type: "+tc.kind)
				}
				got := rig.do(tc.method, tc.path, tc.body, sent...)
				if got.status != want || got.header.Get("Access-Control-Allow-Origin") != "" { // no origin is set
					t.Errorf("%s, %q: %s %s of %s: %d, want %d", who, headers[len(rig.as):], tc.method, tc.path, tc.kind, got.status, want)
				}
				if want == http.StatusForbidden {
					got.problem(want, "CROSS_ORIGIN")
				}
			}
		}
	}
}

func TestOriginsAreExact(t *testing.T) {
	for origin, good := range map[string]bool{
		"https://a.example": true, "https://a.example:8443": true,
		"*": false, "null": false, "http://a.example": false, "https://*.example": false, "https://a.example/": false, "https://": false, "a.example": false,
	} {
		if err := CheckOrigin(origin); (err == nil) != good {
			t.Errorf("%s: %v", origin, err)
		}
	}
}

func TestEveryAnswerIsSafe(t *testing.T) {
	r := newRig(t, Config{})
	for _, path := range []string{"/v1/server", "/v1/nothing", "/nothing", "/v1/topics/t/tasks/x"} {
		h := r.do("GET", path, "").header
		for name, want := range safeHeaders {
			if got := h.Values(name); !slices.Equal(got, want) {
				t.Errorf("%s: %s is %q", path, name, got)
			}
		}
	}
}

func TestAnswersOverTLSSayThatItStays(t *testing.T) {
	port, err := NewPort(Config{}, slog.New(slog.DiscardHandler))
	must(t, err)
	for url, want := range map[string]string{"https://localhost/": "max-age=31536000", "http://localhost/": ""} {
		w := httptest.NewRecorder()
		port.ServeHTTP(w, httptest.NewRequest(http.MethodGet, url, nil))
		if got := w.Header().Get("Strict-Transport-Security"); got != want {
			t.Errorf("%s: %q", url, got)
		}
	}
}

func TestRequestIDs(t *testing.T) {
	r := newRig(t, Config{})
	own := "0192f0c1-0000-7000-8000-000000000001"
	if got := r.do("GET", "/v1/server", "", "Ddq-Request-Id: "+own).header.Get("Ddq-Request-Id"); got != own {
		t.Errorf("got %q", got)
	}
	for _, bad := range []string{"x", strings.Repeat("x", 36), own + "0"} {
		if got := r.do("GET", "/v1/server", "", "Ddq-Request-Id: "+bad).header.Get("Ddq-Request-Id"); got == bad || len(got) != 36 {
			t.Errorf("%q became %q", bad, got)
		}
	}
}

// What a request comes to within the server has the id of its answer.
func TestCallsHaveTheIDOfTheirRequest(t *testing.T) {
	var seen string
	r := newRig(t, Config{}, testRoute{"/look", Rule{Public: true}, func(_ http.ResponseWriter, r *http.Request) {
		seen = requestid.Given(r.Context())
	}})
	if got := r.do("GET", "/look", "").want(200).header.Get("Ddq-Request-Id"); got == "" || got != seen {
		t.Errorf("answered as %q, called as %q", got, seen)
	}
}

func TestHeadersAreBounded(t *testing.T) {
	r := newRig(t, Config{})
	if got := r.do("GET", "/v1/server", "", "X: "+strings.Repeat("x", 64<<10)); got.status != 431 {
		t.Errorf("got %d", got.status)
	}
}

func TestPanicsSayNothing(t *testing.T) {
	r := newRig(t, Config{}, testRoute{"/broken", Rule{Public: true}, func(http.ResponseWriter, *http.Request) { panic("secret") }})
	got := r.do("GET", "/broken", "")
	if p := got.problem(500, "INTERNAL"); p.Incident == "" || strings.Contains(got.body, "secret") {
		t.Errorf("got %s", got.body)
	}
}

func TestNoRouteWithoutARule(t *testing.T) {
	r := newRig(t, Config{})
	for _, bad := range []Rule{{}, {Call: "/x", Public: true}} {
		if err := r.port.Route("/x", bad, http.NotFoundHandler()); err == nil {
			t.Errorf("a route with %+v was taken", bad)
		}
		if err := r.port.api.(*api).route("GET", "/v1/x", bad, nil); err == nil {
			t.Errorf("a route of the API with %+v was taken", bad)
		}
	}
	known := make(map[string]bool)
	for _, service := range services {
		for i := range service.Methods().Len() {
			method := service.Methods().Get(i)
			known["/"+string(service.FullName())+"/"+string(method.Name())] = true
		}
	}
	for _, rt := range r.port.api.(*api).routes.all {
		if !rt.rule.valid() || !rt.rule.Public && !known[rt.rule.Call] {
			t.Errorf("%s %s has the rule %+v", rt.method, rt.path, rt.rule)
		}
	}
}

func TestEveryCallHasARoute(t *testing.T) {
	bound := make(map[string]bool)
	for _, rt := range bindings() {
		bound[rt.rule.Call] = true
	}
	for _, service := range services {
		for i := range service.Methods().Len() {
			method := service.Methods().Get(i)
			call := "/" + string(service.FullName()) + "/" + string(method.Name())
			streamed := method.IsStreamingClient() || method.IsStreamingServer()
			if bound[call] == streamed {
				t.Errorf("%s: bound %t", call, bound[call])
			}
		}
	}
}

// Of routes that match the later is taken, so a verb could be taken for part of a name.
func TestRoutesAreTheirOwn(t *testing.T) {
	r := newRig(t, Config{})
	routes := r.port.api.(*api).routes
	for _, rt := range routes.all {
		found, params := routes.find(rt.method, paramInPath.ReplaceAllString(rt.path, "a%2Fb:c"))
		if found != rt {
			t.Errorf("%s %s reaches %+v", rt.method, rt.path, found)
		}
		for name, value := range params {
			if value != "a/b:c" {
				t.Errorf("%s %s: %s is %q", rt.method, rt.path, name, value)
			}
		}
	}
}

package bench

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestHTTPDriverTakesNothingForStoredThatIsNot(t *testing.T) {
	const one, done = `{"id":"a"}` + "\n", `{"done":{}}` + "\n"
	for _, c := range []struct {
		what   string
		tasks  int
		status int
		answer string
		fails  string // empty: it is stored
	}{
		{"a task", 1, http.StatusAccepted, `{}`, ""},
		{"a task that is refused", 1, http.StatusTooManyRequests, `{"reason":"RATE_LIMITED"}`, "RATE_LIMITED"},
		{"an import", 2, http.StatusOK, one + one + done, ""},
		{"an import with a bad line", 2, http.StatusOK, one + `{"error":{"reason":"BAD_DELAY"}}` + "\n" + done, "BAD_DELAY"},
		{"an import that was cut", 2, http.StatusOK, one + one, "2 of 2"},
		{"an import of less", 2, http.StatusOK, one + done, "1 of 2"},
		{"an import answered by something else", 2, http.StatusOK, "<html>", "import"},
	} {
		t.Run(c.what, func(t *testing.T) {
			var asked string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked = r.URL.Path + " " + r.Header.Get("Content-Type")
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.answer)) // the driver says what it missed
			}))
			defer server.Close()
			d := newHTTPDriver(newSink(), strings.TrimPrefix(server.URL, "http://"), "mail", 1)
			defer d.Close()
			err := d.Enqueue(context.Background(), make([]Task, c.tasks))
			if c.fails == "" && err != nil || c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)) {
				t.Errorf("got %v, want %q in it", err, c.fails)
			}
			want := "/v1/topics/mail/tasks application/json"
			if c.tasks > 1 {
				want = "/v1/topics/mail/tasks:import application/x-ndjson"
			}
			if asked != want {
				t.Errorf("asked %q, want %q", asked, want)
			}
		})
	}
}

func TestRESTGoesWithAServerOfItsOwn(t *testing.T) {
	o := Options{Mode: "both", Producers: 1, Concurrency: 1, Workers: 1, Payload: 200, Rates: []int{1}, For: time.Second}
	for _, change := range []func(*Options){
		func(o *Options) { o.API = "soap" },
		func(o *Options) { o.API, o.Addr = apiREST, "127.0.0.1:9090" },
		func(o *Options) { o.API, o.Policies = apiREST, []string{"all"} },
	} {
		bad := o
		change(&bad)
		if err := bad.Validate(); err == nil || !strings.Contains(err.Error(), "--api") {
			t.Errorf("%+v: got %v", bad, err)
		}
	}
	if err := o.Validate(); err != nil {
		t.Error(err)
	}
}

package ui_test

import (
	"bufio"
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ddq-io/ddq/api/client"
)

// stream opens the stream of a page, and returns its lines. The server ends it when it stops.
func (r *rig) stream(page string, cookie *http.Cookie) *bufio.Scanner {
	r.Helper()
	request, err := http.NewRequestWithContext(context.WithoutCancel(r.Context()), http.MethodGet, r.base+"/ui/live?of="+url.QueryEscape(page), nil)
	if err != nil {
		r.Fatal(err)
	}
	if cookie != nil {
		request.AddCookie(cookie)
	}
	reply, err := r.plain.Do(request) //nolint:bodyclose // the server does
	if err != nil {
		r.Fatal(err)
	}
	if reply.StatusCode != http.StatusOK || reply.Header.Get("Content-Type") != "text/event-stream" {
		r.Fatal(reply.Status, reply.Header)
	}
	return bufio.NewScanner(reply.Body)
}

// comes reads until a line has a text, and returns all that came until then.
func (r *rig) comes(lines *bufio.Scanner, text string) (seen string) {
	r.Helper()
	for lines.Scan() {
		seen += lines.Text() + "\n"
		if strings.Contains(lines.Text(), text) {
			return seen
		}
	}
	r.Fatalf("no %q came: %v\n%s", text, lines.Err(), seen)
	return ""
}

func TestALivePageHasWhatIsNew(t *testing.T) {
	r := start(t)
	lines := r.stream("?", nil)
	r.comes(lines, "store memory") // which is said last
	r.enqueue(client.Task{Topic: "mail", ID: "a", Delay: time.Hour})
	if seen := r.comes(lines, ">mail<"); strings.Contains(seen, "Make a topic") {
		t.Errorf("what is not new came:\n%s", seen)
	}
}

// TestAServerStopsWhilePagesAreLookedAt, long before its patience ends.
func TestAServerStopsWhilePagesAreLookedAt(t *testing.T) {
	var began time.Time
	t.Run("", func(t *testing.T) {
		r := start(t, "--shutdown-grace", "30m")
		r.comes(r.stream("?", nil), "There are no topics yet")
		began = time.Now()
	})
	if took := time.Since(began); took > 10*time.Minute {
		t.Errorf("it took %v", took)
	}
}

// TestAStreamEndsWithItsLogin, and shows what its visitor may see, whoever else looks.
func TestAStreamEndsWithItsLogin(t *testing.T) {
	r, root := startAsking(t)
	r.enqueue(client.Task{Topic: "mail", ID: "a", Delay: time.Hour}, client.Task{Topic: "sms", ID: "b", Delay: time.Hour})
	_, secret := r.token("viewer", "viewer:mail")
	all, some := r.login(root), r.login(secret)
	r.comes(r.stream("?", all), ">sms<")
	lines := r.stream("?", some)
	if seen := r.comes(lines, ">mail<"); strings.Contains(seen, "sms") {
		t.Errorf("a viewer sees what others may see:\n%s", seen)
	}
	r.want(http.StatusSeeOther, http.MethodPost, "/ui/logout", nil, some)
	r.comes(lines, "event: over")
	r.want(http.StatusUnauthorized, http.MethodGet, "/ui/live?of="+url.QueryEscape("?"), nil, some)
}

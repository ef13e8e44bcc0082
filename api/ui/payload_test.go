package ui_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ddq-io/ddq/api/client"
)

// TestAPayloadIsSavedAsItIs: as bytes that no browser takes for a page.
func TestAPayloadIsSavedAsItIs(t *testing.T) {
	r := start(t)
	const script = "<script>alert(1)</script>"
	payload := strings.Repeat(script, 4000) // more than is shown
	r.enqueue(client.Task{Topic: "mail", ID: "a/\"b\".html", Delay: time.Hour, Payload: []byte(payload)}, client.Task{Topic: "mail", ID: "none", Delay: time.Hour})
	if _, text := r.get(http.StatusOK, "/ui/task?topic=mail&id=none"); strings.Contains(text, "/ui/payload") {
		t.Error("a task without a payload has one to be saved")
	}
	const file = "/ui/payload?id=a%2F%22b%22.html&topic=mail"
	if _, text := r.get(http.StatusOK, "/ui/task?topic=mail&id=a%2F%22b%22.html"); !strings.Contains(text, strings.ReplaceAll(file, "&", "&amp;")) {
		t.Error(text)
	}
	reply, text := r.send(http.MethodGet, file, nil, nil)
	if text != payload {
		t.Errorf("%d bytes were saved of %d", len(text), len(payload))
	}
	for name, want := range map[string]string{
		"Content-Type": "application/octet-stream", "Content-Disposition": "attachment; filename=payload-a__b_.html", "X-Content-Type-Options": "nosniff",
	} {
		if got := reply.Header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	r.get(http.StatusNotFound, "/ui/payload?topic=mail&id=nobody")
	r.get(http.StatusBadRequest, "/ui/payload?topic=mail")
}

// TestAPayloadIsForThoseWhoMaySeeIt.
func TestAPayloadIsForThoseWhoMaySeeIt(t *testing.T) {
	r, _ := startAsking(t)
	r.enqueue(client.Task{Topic: "mail", ID: "a", Delay: time.Hour, Payload: []byte("secret")})
	_, secret := r.token("viewer", "viewer:mail")
	viewer := r.login(secret)
	if text := r.want(http.StatusOK, http.MethodGet, "/ui/task?topic=mail&id=a", nil, viewer); strings.Contains(text, "/ui/payload") {
		t.Error(text)
	}
	if text := r.want(http.StatusForbidden, http.MethodGet, "/ui/payload?topic=mail&id=a", nil, viewer); strings.Contains(text, "secret") {
		t.Error(text)
	}
	_, secret = r.token("reader", "viewer,payload:mail")
	if text := r.want(http.StatusOK, http.MethodGet, "/ui/payload?topic=mail&id=a", nil, r.login(secret)); text != "secret" {
		t.Errorf("a reader gets %q", text)
	}
}

package ui_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ddq-io/ddq/api/client"
)

// TestANodeLogsMoreForAWhile, and the page says until when.
func TestANodeLogsMoreForAWhile(t *testing.T) {
	r := start(t)
	r.enqueue(client.Task{Topic: "mail", ID: "a", Delay: time.Hour})
	const path = "/ui/loglevel"
	set := func(code int, pairs ...string) string {
		t.Helper()
		return r.want(code, http.MethodPost, path, with(r.form(path, path), pairs...), nil)
	}
	r.has(set(http.StatusOK, "level", "warn", "for", "1h"), " logs at warn until ")
	r.has(set(http.StatusOK, "level", "debug", "topic", "mail"), "what happens to tasks of mail at debug until ")
	text := r.want(http.StatusOK, http.MethodGet, path, nil, nil)
	r.has(text, "<td>warn until <time", `<div>tasks of <a href="/ui/topic?name=mail">mail</a> until <time`)
	_, nodes := r.get(http.StatusOK, "/ui/nodes")
	r.has(nodes, "<td>warn until <time", "tasks of <a")
	r.has(set(http.StatusOK, "topic", "mail"), "what happens to tasks of mail as it was configured.")
	r.has(set(http.StatusOK), " logs as it was configured.")
	for field, wrong := range map[string][]string{
		"level": {"loud", hostile[0]}, "for": {"x", "0s", "-1m", "25h", hostile[1]}, "node": {"", "none", hostile[2]}, "topic": {"none", "a b", hostile[0]},
	} {
		for _, text := range wrong {
			got := set(http.StatusBadRequest, append([]string{"level", "debug", "for", "7m", "topic", "mail"}, field, text)...)
			r.has(got, `aria-invalid="true"`)
			if field != "for" {
				r.has(got, `value="7m"`)
			}
		}
	}
	r.has(set(http.StatusBadRequest, "level", "warn", "topic", "mail"), `name="level" aria-invalid="true"`)
}

// TestWhoMayNotChangeWhatNodesLog has no link to it, and is refused.
func TestWhoMayNotChangeWhatNodesLog(t *testing.T) {
	r, root := startAsking(t)
	for _, role := range []string{"viewer", "operator", "admin"} {
		_, secret := r.token("x", role)
		as := r.login(secret)
		if text := r.want(http.StatusOK, http.MethodGet, "/ui/settings", nil, as); strings.Contains(text, "/ui/loglevel") {
			t.Errorf("%s sees it: %s", role, text)
		}
		r.want(http.StatusForbidden, http.MethodGet, "/ui/loglevel", nil, as)
		r.want(http.StatusForbidden, http.MethodPost, "/ui/loglevel", url.Values{"node": {"n"}, "level": {"debug"}}, as)
	}
	r.has(r.want(http.StatusOK, http.MethodGet, "/ui/settings", nil, r.login(root)), "/ui/loglevel")
}

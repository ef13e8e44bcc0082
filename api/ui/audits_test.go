package ui_test

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ddq-io/ddq/api/client"
)

// lacks fails where a page has one of some texts.
func (r *rig) lacks(page string, texts ...string) {
	r.Helper()
	for _, text := range texts {
		if strings.Contains(page, text) {
			r.Errorf("the page has %q:\n%s", text, page)
		}
	}
}

// TestWhatWasDoneIsShown: a call in one row with its request, by a filter in the address, and the chain of the log.
func TestWhatWasDoneIsShown(t *testing.T) {
	log := filepath.Join(t.TempDir(), "audit")
	r := start(t, "--audit-log", log)
	for _, topic := range []string{"mail", "sms"} {
		if _, err := r.client.CreateTopic(t.Context(), topic, client.Policy{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.client.DeleteTopic(t.Context(), "none", false); err == nil {
		t.Fatal("a topic that is not there was deleted")
	}
	if _, err := r.client.PutSchedule(t.Context(), client.Schedule{Topic: "mail", Name: "nightly", Cron: []string{"30 2 * * *"}}); err != nil {
		t.Fatal(err)
	}
	page, text := r.get(http.StatusOK, "/ui/audit")
	links := r.check("/ui/audit", page)
	for _, want := range []string{"/ui/topic?name=mail", "/ui/schedule?name=nightly&topic=mail"} {
		if !slices.Contains(links, want) {
			t.Errorf("no link leads to %s", want)
		}
	}
	r.has(text, "CreateTopic", "failed: NO_TOPIC", "the server began to write", "{&#34;name&#34;:&#34;mail&#34;", "<td>whole</td>", "local")
	r.lacks(text, "asked for", "not as it was written", "is broken")

	_, text = r.get(http.StatusOK, "/ui/audit?outcome=asked&resource=sms&method=CreateTopic&caller=local&from=2026-01-01T00:00")
	r.has(text, "asked for", `value="sms"`, `<details open>`)
	r.lacks(text, "mail<", "nightly")
	_, text = r.get(http.StatusOK, "/ui/audit?caller=nobody")
	r.has(text, "There are none")
	for _, wrong := range []string{"outcome=good", "from=yesterday", "from=2030-01-02T00:00&before=2030-01-01T00:00", "resource=" + strings.Repeat("x", 1025)} {
		_, text := r.get(http.StatusBadRequest, "/ui/audit?caller=ann&"+wrong)
		r.has(text, `aria-invalid="true"`, `value="ann"`)
	}
	r.want(http.StatusSeeOther, http.MethodGet, "/ui/audit?page=x", nil, nil) // the first page

	was, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(log, []byte(strings.Replace(string(was), "sms", "spy", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	_, text = r.get(http.StatusOK, "/ui/audit?caller=nobody")
	r.has(text, "not as it was written")
}

// TestABrokenLogHasAWarning, and one that there is not is said so.
func TestABrokenLogHasAWarning(t *testing.T) {
	log := filepath.Join(t.TempDir(), "audit")
	r := start(t, "--audit-log", log)
	if err := os.Remove(log); err != nil {
		t.Fatal(err)
	}
	_, text := r.get(http.StatusOK, "/ui/audit")
	r.has(text, `class="warning"`, " is broken: what it says cannot be relied on", "moved away or replaced", `class="bad"`)
	_, text = start(t).get(http.StatusOK, "/ui/audit")
	r.has(text, "Were started without an audit log (--audit-log): ", "There are none", "has none")
}

// TestWhoMayNotAuditSeesNothingOfIt: the page is for auditors, who may do nothing else.
func TestWhoMayNotAuditSeesNothingOfIt(t *testing.T) {
	r, root := startAsking(t, "--audit-log", filepath.Join(t.TempDir(), "audit"))
	for _, role := range []string{"viewer", "operator", "admin"} {
		_, secret := r.token("x", role)
		as := r.login(secret)
		r.lacks(r.want(http.StatusOK, http.MethodGet, "/ui/settings", nil, as), "/ui/audit")
		r.lacks(r.want(http.StatusForbidden, http.MethodGet, "/ui/audit", nil, as), "CreateToken")
	}
	_, secret := r.token("eve", "auditor")
	for _, token := range []string{secret, root} {
		as := r.login(token)
		r.has(r.want(http.StatusOK, http.MethodGet, "/ui/settings", nil, as), "/ui/audit")
		r.has(r.want(http.StatusOK, http.MethodGet, "/ui/audit?resource=eve", nil, as), "CreateToken", "eve")
	}
	r.has(r.want(http.StatusOK, http.MethodGet, "/ui/audit?outcome=refused", nil, r.login(secret)), "refused: NOT_ALLOWED", "token:x")
}

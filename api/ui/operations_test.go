package ui_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// begins sends a form that starts an operation, and returns the page of it.
func (r *rig) begins(path string, form url.Values) string {
	r.Helper()
	reply, text := r.send(http.MethodPost, path, form, nil)
	to := reply.Header.Get("Location")
	if reply.StatusCode != http.StatusSeeOther || !strings.HasPrefix(to, "/ui/operation?") || !strings.Contains(to, "did=started") {
		r.Fatalf("%s: %s, %s\n%s", path, reply.Status, to, text)
	}
	page, _ := r.get(http.StatusOK, to)
	r.check(to, page)
	return strings.TrimPrefix(to, "/ui/")
}

// TestTasksOfAFilterAreChangedByAnOperation, after they were counted.
func TestTasksOfAFilterAreChangedByAnOperation(t *testing.T) {
	r := start(t)
	for _, id := range []string{"a1", "a2", "b1"} {
		r.enqueue(client.Task{Topic: "mail", ID: id, Delay: time.Hour})
	}
	const page = "/ui/tasks?topic=mail&id=a"
	count := r.form(page, "/ui/tasks/count")
	move := r.answer(http.StatusOK, "/ui/tasks/count", count, "/ui/tasks/reschedule")
	move.Set("delay", "soon")
	r.want(http.StatusBadRequest, http.MethodPost, "/ui/tasks/reschedule", move, nil)
	move.Set("delay", "36h")
	r.comes(r.stream(r.begins("/ui/tasks/reschedule", move), nil), ">done<")
	for id, moved := range map[string]bool{"a1": true, "a2": true, "b1": false} {
		if got := time.Until(r.find("mail", id).ExecuteTime.AsTime()) > 30*time.Hour; got != moved {
			t.Errorf("%s was moved: %v", id, got)
		}
	}

	remove := r.answer(http.StatusOK, "/ui/tasks/count", count, "/ui/tasks/delete")
	r.want(http.StatusBadRequest, http.MethodPost, "/ui/tasks/delete", remove, nil) // the name was not typed
	remove.Set("sure", "mail")
	r.enqueue(client.Task{Topic: "mail", ID: "a3", Delay: time.Hour})
	if text := r.want(http.StatusConflict, http.MethodPost, "/ui/tasks/delete", remove, nil); !strings.Contains(text, "the filter matched 2") {
		t.Errorf("a filter that matches more is not asked for once more:\n%s", text)
	}
	remove.Set("count", "3")
	remove.Set("rate", "x")
	r.want(http.StatusBadRequest, http.MethodPost, "/ui/tasks/delete", remove, nil)
	remove.Set("rate", "100000")
	at := r.begins("/ui/tasks/delete", remove)
	r.comes(r.stream(at, nil), ">done<")
	if _, err := ddqv1.NewDelayQueueServiceClient(r.client.Conn()).GetTask(t.Context(), &ddqv1.GetTaskRequest{Topic: "mail", Id: "a1"}); status.Code(err) != codes.NotFound {
		t.Errorf("it is there still: %v", err)
	}
	r.find("mail", "b1")
	if _, text := r.get(http.StatusOK, "/ui/"+at); !strings.Contains(text, "delete tasks") || !strings.Contains(text, "100\u202f000") || !strings.Contains(text, "<dd>a</dd>") {
		t.Errorf("it does not say what it does:\n%s", text)
	}
	_, text := r.get(http.StatusOK, "/ui/operations?topic=mail")
	if !strings.Contains(text, "reschedule tasks") || !strings.Contains(text, "delete tasks") {
		t.Errorf("not both are listed:\n%s", text)
	}
	r.walk()

	for _, wide := range []url.Values{{"topic": {"mail"}}, {"topic": {"mail"}, "state": {"running"}}, {"topic": {"mail"}, "state": {"lost"}}} {
		r.want(http.StatusBadRequest, http.MethodPost, "/ui/tasks/count", wide, nil)
	}
	for _, wide := range []string{"/ui/tasks?topic=mail", "/ui/tasks?topic=mail&state=done"} {
		if _, text := r.get(http.StatusOK, wide); strings.Contains(text, "/ui/tasks/count") {
			t.Errorf("%s offers to change what its filter matches", wide)
		}
	}
}

// TestDeadLettersAreRequeuedAtARate by an operation, which is stopped.
func TestDeadLettersAreRequeuedAtARate(t *testing.T) {
	r := start(t)
	for i := range 20 {
		r.enqueue(client.Task{Topic: "mail", ID: fmt.Sprint("t", i), MaxRetries: new(0)})
		kill(r, "mail", "smtp said no")
	}
	counting := r.begins("/ui/dead/dryrun", url.Values{"topic": {"mail"}, "error": {"smtp"}})
	r.comes(r.stream(counting, nil), ">done<")
	if _, text := r.get(http.StatusOK, "/ui/"+counting); !strings.Contains(text, "requeue dead letters, only counted") || !strings.Contains(text, "<dt>matched</dt><dd>20</dd>") || !strings.Contains(text, "<dt>examined</dt><dd>20</dd>") || !strings.Contains(text, "<dt>changed</dt><dd>0</dd>") {
		t.Errorf("it does not say what it counted:\n%s", text)
	}
	all := r.answer(http.StatusOK, "/ui/dead/count", r.form("/ui/dead?topic=mail&error=smtp", "/ui/dead/count"), "/ui/dead/requeue")
	all.Set("rate", "1")
	at := r.begins("/ui/dead/requeue", all)
	lines := r.stream(at, nil)
	r.comes(lines, ">running<")
	if text := r.act("/ui/operations?topic=mail", "/ui/operation/stop"); !strings.Contains(text, "requeue dead letters") {
		t.Error(text)
	}
	r.comes(lines, ">stopped<")
	stop, _ := url.ParseQuery(at[strings.Index(at, "?")+1:])
	if text := r.follow("/ui/operation/stop", url.Values{"topic": {"mail"}, "id": stop["id"]}); !strings.Contains(text, "It was over before.") {
		t.Error("one that has ended is stopped")
	}
	if _, text := r.get(http.StatusOK, "/ui/dead?topic=mail"); !strings.Contains(text, "smtp said no") {
		t.Error("it went on")
	}
	r.want(http.StatusNotFound, http.MethodGet, "/ui/operation?topic=mail&id=none", nil, nil)
	r.want(http.StatusNotFound, http.MethodPost, "/ui/operation/stop", url.Values{"topic": {"mail"}, "id": {"none"}}, nil)
}

// TestAnOperationIsStoppedByWhoMay: others see how far it is.
func TestAnOperationIsStoppedByWhoMay(t *testing.T) {
	r, root := startAsking(t)
	for i := range 20 {
		r.enqueue(client.Task{Topic: "mail", ID: fmt.Sprint("t", i), Delay: time.Hour})
	}
	operator := r.login(root)
	_, secret := r.token("viewer", "viewer:mail")
	viewer := r.login(secret)
	counted := r.want(http.StatusOK, http.MethodPost, "/ui/tasks/count", url.Values{"topic": {"mail"}, "id": {"t"}}, operator)
	if !strings.Contains(counted, "20 tasks that wait are matched") {
		t.Error(counted)
	}
	reply, text := r.send(http.MethodPost, "/ui/tasks/delete", url.Values{"topic": {"mail"}, "id": {"t"}, "count": {"20"}, "sure": {"mail"}, "rate": {"1"}}, operator)
	page := reply.Header.Get("Location")
	if reply.StatusCode != http.StatusSeeOther {
		t.Fatal(text)
	}
	for _, path := range []string{page, "/ui/operations?topic=mail"} {
		if text := r.want(http.StatusOK, http.MethodGet, path, nil, viewer); strings.Contains(text, "/ui/operation/stop") || !strings.Contains(text, "delete tasks") {
			t.Errorf("%s: a viewer sees\n%s", path, text)
		}
		if text := r.want(http.StatusOK, http.MethodGet, path, nil, operator); !strings.Contains(text, "/ui/operation/stop") {
			t.Errorf("%s: an operator sees\n%s", path, text)
		}
	}
	asked, err := url.Parse(page)
	if err != nil {
		t.Fatal(err)
	}
	r.want(http.StatusForbidden, http.MethodPost, "/ui/operation/stop", url.Values{"topic": {"mail"}, "id": asked.Query()["id"]}, viewer)
	r.want(http.StatusForbidden, http.MethodPost, "/ui/tasks/count", url.Values{"topic": {"sms"}, "id": {"t"}}, viewer)
	if text := r.want(http.StatusOK, http.MethodGet, page, nil, operator); !strings.Contains(text, "root") {
		t.Error("it does not say who started it")
	}
}

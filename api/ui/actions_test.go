package ui_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// form returns the fields of the form on a page that is sent to a path, as a browser would send it.
func (r *rig) form(page, path string) url.Values {
	r.Helper()
	parsed, text := r.get(http.StatusOK, page)
	for _, n := range elements(parsed) {
		if n.Data == "form" && attr(n, "action") == path {
			return fields(n)
		}
	}
	r.Fatalf("%s has no form for %s\n%s", page, path, text)
	return nil
}

func fields(form *html.Node) url.Values {
	values := url.Values{}
	for n := range form.Descendants() {
		switch {
		case n.Data == "input" && attr(n, "type") != "checkbox":
			values.Add(attr(n, "name"), attr(n, "value"))
		case n.Data == "textarea" && n.FirstChild != nil:
			values.Add(attr(n, "name"), strings.ReplaceAll(n.FirstChild.Data, "\n", "\r\n"))
		case n.Data == "textarea":
			values.Add(attr(n, "name"), "")
		}
	}
	return values
}

// act sends the form of a page with some fields filled in, and returns the page that it leads to.
func (r *rig) act(page, path string, pairs ...string) string {
	r.Helper()
	form := r.form(page, path)
	for i := 0; i+1 < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	return r.follow(path, form)
}

func (r *rig) follow(path string, form url.Values) string {
	r.Helper()
	reply, text := r.send(http.MethodPost, path, form, nil)
	if reply.StatusCode != http.StatusSeeOther {
		r.Fatalf("%s: %s\n%s", path, reply.Status, text)
	}
	parsed, text := r.get(http.StatusOK, reply.Header.Get("Location"))
	r.check(path, parsed)
	if !slices.ContainsFunc(elements(parsed), func(n *html.Node) bool { return attr(n, "class") == "notice" }) {
		r.Errorf("%s: the page does not say what was done", path)
	}
	return text
}

func (r *rig) find(topic, id string) *ddqv1.Task {
	r.Helper()
	got, err := ddqv1.NewDelayQueueServiceClient(r.client.Conn()).GetTask(r.Context(), &ddqv1.GetTaskRequest{Topic: topic, Id: id})
	if err != nil {
		r.Fatal(err)
	}
	return got.Task
}

func TestATaskIsEditedRescheduledRunAndDeleted(t *testing.T) {
	r := start(t)
	const payload = "\nline one\n\tline <two>\n"
	r.enqueue(client.Task{Topic: "mail", ID: "a/b:c%", Delay: time.Hour, Payload: []byte(payload)})
	page := "/ui/task?topic=mail&id=" + url.QueryEscape("a/b:c%")

	r.act(page, "/ui/task/edit", "priority", "7", "max_retries", "3")
	if got := r.find("mail", "a/b:c%"); string(got.Payload) != payload || got.Priority != 7 || got.MaxRetries != 3 {
		t.Errorf("edited: %v", got)
	}
	old := r.form(page, "/ui/task/edit")
	r.act(page, "/ui/task/edit", "payload", "other")
	if got := r.find("mail", "a/b:c%"); string(got.Payload) != "other" {
		t.Errorf("payload %q", got.Payload)
	}
	old.Set("payload", "mine <b>")
	text := r.want(http.StatusConflict, http.MethodPost, "/ui/task/edit", old, nil) // somebody was faster
	for _, want := range []string{"<code>other</code>", "<code>mine &lt;b&gt;</code>", "\nmine &lt;b&gt;</textarea>"} {
		if !strings.Contains(text, want) {
			t.Errorf("theirs and mine are not shown, there is no %q:\n%s", want, text)
		}
	}
	if got := r.find("mail", "a/b:c%"); string(got.Payload) != "other" {
		t.Errorf("an edit of what is not there any more was made: %q", got.Payload)
	}
	r.act(page, "/ui/task/reschedule", "delay", "36h")
	if got := r.find("mail", "a/b:c%"); time.Until(got.ExecuteTime.AsTime()) < 35*time.Hour {
		t.Errorf("due %v", got.ExecuteTime.AsTime())
	}
	for _, wrong := range []string{"soon", "-1s", ""} {
		form := r.form(page, "/ui/task/reschedule")
		form.Set("delay", wrong)
		r.want(http.StatusBadRequest, http.MethodPost, "/ui/task/reschedule", form, nil)
	}
	remove := r.form(page, "/ui/task/delete")
	r.act(page, "/ui/task/promote")
	if got := r.find("mail", "a/b:c%"); time.Until(got.ExecuteTime.AsTime()) > time.Minute {
		t.Errorf("due %v", got.ExecuteTime.AsTime())
	}
	r.follow("/ui/task/delete", remove)
	if text := r.follow("/ui/task/delete", remove); !strings.Contains(text, "not there any more") {
		t.Error("a form that is sent twice fails")
	}
}

func TestARunningTaskIsCancelled(t *testing.T) {
	r := start(t)
	r.enqueue(client.Task{Topic: "mail", ID: "a"})
	queue := ddqv1.NewDelayQueueServiceClient(r.client.Conn())
	if _, err := queue.Retrieve(t.Context(), &ddqv1.RetrieveRequest{Topic: "mail", Worker: "w", MaxTasks: 1, WaitMs: 10_000}); err != nil {
		t.Fatal(err)
	}
	if text := r.act("/ui/task?topic=mail&id=a", "/ui/task/cancel"); !strings.Contains(text, "told to stop") {
		t.Error(text)
	}
}

func TestATopicIsMadePausedConfiguredAndDeleted(t *testing.T) {
	r := start(t)
	if text := r.act("/ui/", "/ui/topic/create", "name", "mail"); !strings.Contains(text, "Topic mail") {
		t.Error(text)
	}
	page := "/ui/topic?name=mail"
	r.act(page, "/ui/topic/pause")
	text := r.act(page, "/ui/topic/pause") // the other of the two
	for _, want := range []string{"Delivery is paused", "It takes no tasks"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q", want)
		}
	}
	if text := r.act(page, "/ui/topic/resume", "ramp", "10s"); strings.Contains(text, "Delivery is paused") {
		t.Error("it is paused still")
	}
	r.enqueue(client.Task{Topic: "mail", ID: "a", Delay: time.Hour})
	for _, action := range []string{"/ui/topic/purge", "/ui/topic/delete"} {
		r.want(http.StatusBadRequest, http.MethodPost, action, url.Values{"name": {"mail"}, "sure": {"mial"}}, nil)
	}
	r.want(http.StatusConflict, http.MethodPost, "/ui/topic/delete", url.Values{"name": {"mail"}, "sure": {"mail"}}, nil) // it has a task
	r.act(page, "/ui/topic/purge", "sure", "mail")
	r.act(page, "/ui/topic/delete", "sure", "mail")
	r.get(http.StatusNotFound, page)
}

func TestDeadLettersAreRequeuedAndDeleted(t *testing.T) {
	r := start(t)
	for id, why := range map[string]string{"a": "smtp said no", "b": "smtp said no", "c": "no such user"} {
		r.enqueue(client.Task{Topic: "mail", ID: id, MaxRetries: new(0)})
		kill(r, "mail", why)
	}
	page := "/ui/dead?topic=mail&error=smtp&reason=" + url.QueryEscape("max retries")
	if _, text := r.get(http.StatusOK, page); !strings.Contains(text, ">a<") || strings.Contains(text, ">c<") {
		t.Error(text)
	}
	ticked := r.form(page, "/ui/dead/requeue")
	ticked.Del("id")
	r.want(http.StatusBadRequest, http.MethodPost, "/ui/dead/requeue", ticked, nil) // none is ticked: that is not all
	r.want(http.StatusBadRequest, http.MethodPost, "/ui/dead/delete", ticked, nil)
	ticked.Set("id", "a")
	if text := r.follow("/ui/dead/requeue", ticked); strings.Contains(text, ">a<") || !strings.Contains(text, ">b<") {
		t.Error(text)
	}
	all := r.answer(http.StatusOK, "/ui/dead/count", r.form(page, "/ui/dead/count"), "/ui/dead/delete")
	r.want(http.StatusBadRequest, http.MethodPost, "/ui/dead/delete", all, nil) // the name was not typed
	all.Set("sure", "mail")
	r.follow("/ui/dead/delete", all)
	if _, text := r.get(http.StatusOK, "/ui/dead?topic=mail"); strings.Contains(text, ">b<") || !strings.Contains(text, ">c<") {
		t.Error("the filter did not hold")
	}
	r.act("/ui/task?topic=mail&id=c", "/ui/task/requeue")
	if got := r.find("mail", "c"); got.State == ddqv1.TaskState_TASK_STATE_DEAD {
		t.Error("it is dead still")
	}
}

func TestAScheduleIsRunPausedAndDeleted(t *testing.T) {
	r := start(t)
	if _, err := r.client.PutSchedule(t.Context(), client.Schedule{Topic: "mail", Name: "nightly", Cron: []string{"30 4 * * *"}, Zone: "Europe/Berlin"}); err != nil {
		t.Fatal(err)
	}
	const page = "/ui/schedule?topic=mail&name=nightly"
	if _, text := r.get(http.StatusOK, page); strings.Count(text, "T04:30:00") != 10 {
		t.Errorf("the next ten runs are not there: %s", text)
	}
	once := r.form(page, "/ui/schedule/trigger")
	r.follow("/ui/schedule/trigger", once)
	r.follow("/ui/schedule/trigger", once)
	got, err := ddqv1.NewScheduleServiceClient(r.client.Conn()).GetSchedule(t.Context(), &ddqv1.GetScheduleRequest{Topic: "mail", Name: "nightly"})
	if err != nil || len(got.Status.OpenRuns)+len(got.Status.History) != 1 {
		t.Errorf("a form that was sent twice ran %v, %v", got, err)
	}
	if text := r.act(page, "/ui/schedule/pause"); !strings.Contains(text, "paused by local") {
		t.Error(text)
	}
	r.act(page, "/ui/schedule/resume")
	r.act(page, "/ui/schedule/delete")
	r.get(http.StatusNotFound, page)
}

func TestAWorkflowSaysWhyItWaits(t *testing.T) {
	r := start(t)
	workflows := ddqv1.NewWorkflowServiceClient(r.client.Conn())
	task := &ddqv1.Step_Task{Task: &ddqv1.TaskTemplate{MaxRetries: new(int32(0))}}
	_, err := workflows.SubmitWorkflow(t.Context(), &ddqv1.SubmitWorkflowRequest{Workflow: &ddqv1.Workflow{Topic: "mail", Id: "w", Steps: []*ddqv1.Step{
		{Name: "fetch", Does: task},
		{Name: "ask", Does: &ddqv1.Step_Wait{Wait: &ddqv1.Wait{What: &ddqv1.Wait_Signal{Signal: "yes"}}}},
		{Name: "send", Does: task, After: []*ddqv1.After{{Step: "fetch"}, {Step: "ask"}}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	const page = "/ui/workflow?id=w&topic=mail"
	parsed, text := r.get(http.StatusOK, page)
	for _, want := range []string{"waits for fetch, ask", "waits for signal yes", "its task waits for a worker"} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q", want)
		}
	}
	boxes := slices.DeleteFunc(elements(parsed), func(n *html.Node) bool { return n.Data != "g" && n.Data != "path" })
	if len(boxes) != 5 {
		t.Errorf("%d boxes and lines, want 3 and 2", len(boxes))
	}
	if !slices.Contains(r.walk(), page) {
		t.Error("no link leads to it")
	}
	if text := r.act(page, "/ui/workflow/pause"); !strings.Contains(text, "paused by local") {
		t.Error(text)
	}
	ends := func(want ddqv1.WorkflowState) {
		t.Helper()
		ended, err := workflows.WaitWorkflow(t.Context(), &ddqv1.WaitWorkflowRequest{Topic: "mail", Id: "w", WaitMs: 30_000})
		if err != nil || ended.GetStatus().GetState() != want {
			t.Fatal(ended, err)
		}
	}
	r.act(page, "/ui/workflow/resume")
	kill(r, "mail", "no route")
	ends(ddqv1.WorkflowState_WORKFLOW_STATE_FAILED)
	if text := r.act(page, "/ui/workflow/retry"); !strings.Contains(text, "its task waits for a worker") {
		t.Error("what failed is not made once more")
	}
	r.act(page, "/ui/workflow/skip", "step", "send")
	r.act(page, "/ui/workflow/cancel")
	ends(ddqv1.WorkflowState_WORKFLOW_STATE_CANCELLED) // its open task ends by a step of its own
	if _, text := r.get(http.StatusOK, "/ui/workflows?topic=mail&state=cancelled"); !strings.Contains(text, ">w<") {
		t.Error(text)
	}
}

func TestAShardIsReleasedAndADrainOfTheOnlyNodeRefused(t *testing.T) {
	r := start(t)
	r.enqueue(client.Task{Topic: "mail", ID: "a", Delay: time.Hour})
	r.act("/ui/shards?topic=mail", "/ui/shard/release")
	drain := r.form("/ui/nodes", "/ui/node/drain")
	r.get(http.StatusOK, "/ui/shards?drain="+url.QueryEscape(drain.Get("name")))
	if text := r.want(http.StatusConflict, http.MethodPost, "/ui/node/drain", drain, nil); !strings.Contains(text, "stands alone") {
		t.Error(text)
	}
}

func TestTokensAreMadeRotatedAndRevoked(t *testing.T) {
	r, root := startAsking(t)
	cookie := r.login(root)
	form := url.Values{"name": {"<b>ci</b>"}, "grants": {"producer:mail* viewer"}, "days": {"7"}}
	text := r.want(http.StatusOK, http.MethodPost, "/ui/tokens/create", form, cookie)
	at := strings.Index(text, "<pre>ddq_")
	if at < 0 || strings.Contains(text, "<b>ci") {
		t.Fatal(text)
	}
	secret, _, _ := strings.Cut(text[at+len("<pre>"):], "<")
	theirs := r.login(secret)
	for _, wrong := range []url.Values{
		{"name": {"x"}, "grants": {"all"}, "days": {"7"}}, {"name": {"x"}, "grants": {""}, "days": {"7"}}, {"name": {"x"}, "grants": {"viewer"}, "days": {"0"}},
		{"name": {"x"}, "grants": {"viewer"}, "days": {"x"}}, {"name": {strings.Repeat("x", 200)}, "grants": {"viewer"}, "days": {"7"}},
	} {
		r.want(http.StatusBadRequest, http.MethodPost, "/ui/tokens/create", wrong, cookie)
	}
	settings := r.want(http.StatusOK, http.MethodGet, "/ui/settings", nil, cookie)
	if strings.Contains(settings, secret[20:]) || strings.Contains(settings, "<b>ci") || !strings.Contains(settings, secret[4:14]) {
		t.Error("the tokens are not listed as they should be")
	}
	slow, err := ddqv1.NewAccessServiceClient(r.client.Conn()).CreateToken(r.Context(), &ddqv1.CreateTokenRequest{
		Name: "slow", CallsPerSecond: 7, BytesPerSecond: 65_536, Grants: []*ddqv1.Grant{{Verbs: []string{"admin"}, Topics: "mail"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for who, as := range map[string]*http.Cookie{"who lists it": cookie, "it itself": r.login(slow.Secret)} {
		if text := r.want(http.StatusOK, http.MethodGet, "/ui/settings", nil, as); !strings.Contains(text, "7 calls, 65\u202f536 bytes of payloads") {
			t.Errorf("the bounds of a token are not shown to %s: %s", who, text)
		}
	}
	id := url.Values{"id": {secret[4:14]}}
	r.want(http.StatusOK, http.MethodPost, "/ui/tokens/rotate", id, cookie)
	r.want(http.StatusSeeOther, http.MethodPost, "/ui/tokens/revoke", id, cookie)
	r.want(http.StatusUnauthorized, http.MethodGet, "/ui/", nil, theirs)
}

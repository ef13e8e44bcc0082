package ui_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// answer sends a form that is answered with a page, and returns the form on it that is sent to a path.
func (r *rig) answer(code int, path string, form url.Values, next string) url.Values {
	r.Helper()
	text := r.want(code, http.MethodPost, path, form, nil)
	page, err := html.Parse(strings.NewReader(text))
	if err != nil {
		r.Fatal(err)
	}
	r.check(path, page)
	for _, n := range elements(page) {
		if n.Data == "form" && attr(n, "action") == next {
			return fields(n)
		}
	}
	r.Fatalf("the answer of %s has no form for %s\n%s", path, next, text)
	return nil
}

func (r *rig) policy(topic string) *ddqv1.TopicPolicy {
	r.Helper()
	got, err := ddqv1.NewAdminServiceClient(r.client.Conn()).DescribeTopic(r.Context(), &ddqv1.DescribeTopicRequest{Name: topic})
	if err != nil {
		r.Fatal(err)
	}
	return got.Topic.Policy
}

// TestAPageSaysWhichValuesOfAPolicyWereSet, and what is the default of those.
func TestAPageSaysWhichValuesOfAPolicyWereSet(t *testing.T) {
	r := start(t)
	if _, err := r.client.CreateTopic(t.Context(), "mail", client.Policy{MaxDead: new(50), IndexedAttributes: &[]string{hostile[0]}}); err != nil {
		t.Fatal(err)
	}
	page, text := r.get(http.StatusOK, "/ui/topic?name=mail")
	r.check("/ui/topic?name=mail", page)
	r.has(text, `<th scope="row">max_dead</th><td><code>50</code></td><td><strong>set</strong> <span class="quiet">default: 0</span></td>`,
		`<th scope="row">max_backlog</th><td><code>0</code></td><td>default</td>`, `<th scope="row">rate</th><td><code>none</code></td><td>default</td>`)
}

// TestAPolicyIsLookedAtBeforeItChanges, and what others changed meanwhile is seen and kept.
func TestAPolicyIsLookedAtBeforeItChanges(t *testing.T) {
	r := start(t)
	r.act("/ui/", "/ui/topic/create", "name", "mail")
	const page, look, change = "/ui/topic?name=mail", "/ui/topic/policy", "/ui/topic/configure"
	edit := func(policy string) url.Values {
		form := r.form(page, look)
		form.Set("policy", policy)
		return form
	}
	same := r.form(page, look)
	if text := r.want(http.StatusOK, http.MethodPost, look, same, nil); !strings.Contains(text, "nothing would change") {
		t.Errorf("the policy as it was shown is not taken back: %s", text)
	}
	first, second := edit(`{"max_retries": 7, "max_dead": 1000}`), edit(`{"max_retries": 9}`)
	mine := r.answer(http.StatusOK, look, first, change)
	if r.policy("mail").GetMaxRetries() == 7 {
		t.Error("it was changed before it was looked at")
	}
	r.follow(change, r.answer(http.StatusOK, look, second, change))
	if got := r.policy("mail"); got.GetMaxRetries() != 9 {
		t.Errorf("%v", got)
	}

	text := r.want(http.StatusConflict, http.MethodPost, change, mine, nil)
	for _, want := range []string{"somebody else changed the topic", "is now, by somebody else", "<code>9</code>", "<code>7</code>", "<code>1000</code>"} {
		if !strings.Contains(text, want) {
			t.Errorf("theirs and mine are not shown, there is no %q:\n%s", want, text)
		}
	}
	late := r.answer(http.StatusOK, look, edit(`{"max_dead": 2000}`), change)
	r.follow(change, r.answer(http.StatusConflict, change, mine, change))
	if got := r.policy("mail"); got.GetMaxRetries() != 7 || got.GetMaxDead() != 1000 {
		t.Errorf("%v", got)
	}
	r.follow(change, r.answer(http.StatusConflict, change, late, change)) // it is about max_dead only
	if got := r.policy("mail"); got.GetMaxRetries() != 7 || got.GetMaxDead() != 2000 {
		t.Errorf("what others made of the rest is undone: %v", got)
	}

	for _, wrong := range []string{`{"max_tries": 7}`, `[`, ""} {
		if text := r.want(http.StatusBadRequest, http.MethodPost, look, edit(wrong), nil); !strings.Contains(text, html.EscapeString(wrong)+"</textarea>") {
			t.Errorf("what was written is not kept: %s", text)
		}
		form := edit(wrong)
		r.want(http.StatusBadRequest, http.MethodPost, change, form, nil)
	}
	r.want(http.StatusBadRequest, http.MethodPost, change, r.answer(http.StatusOK, look, edit(`{"max_retries": -7}`), change), nil)
}

// TestAFilterThatMatchesMoreIsAskedFor once more.
func TestAFilterThatMatchesMoreIsAskedFor(t *testing.T) {
	r := start(t)
	die := func(id string) {
		r.enqueue(client.Task{Topic: "mail", ID: id, MaxRetries: new(0)})
		kill(r, "mail", "smtp said no")
	}
	die("a")
	for _, page := range []string{"/ui/dead?topic=mail&error=smtp", "/ui/dead?topic=mail"} {
		told := r.answer(http.StatusOK, "/ui/dead/count", r.form(page, "/ui/dead/count"), "/ui/dead/requeue")
		die("b" + page[len(page)-1:])
		if text := r.want(http.StatusConflict, http.MethodPost, "/ui/dead/requeue", told, nil); !strings.Contains(text, "the filter matched ") {
			t.Error(text)
		}
		again := r.answer(http.StatusConflict, "/ui/dead/delete", url.Values{"topic": told["topic"], "error": told["error"], "which": {"all"}, "count": told["count"], "sure": {"mail"}}, "/ui/dead/requeue")
		if n := r.find("mail", "a").State; n != ddqv1.TaskState_TASK_STATE_DEAD {
			t.Fatalf("something was done: %v", n)
		}
		if page == "/ui/dead?topic=mail" {
			r.follow("/ui/dead/requeue", again)
		}
	}
	if n := r.find("mail", "a").State; n == ddqv1.TaskState_TASK_STATE_DEAD {
		t.Error("nothing was done")
	}
}

// TestAPageOfAnotherListLeadsToTheFirst, and says so.
func TestAPageOfAnotherListLeadsToTheFirst(t *testing.T) {
	r := start(t)
	r.enqueue(client.Task{Topic: "mail", ID: "a", Delay: time.Hour})
	for _, page := range []string{"/ui/?page=", "/ui/tasks?topic=mail&page=", "/ui/dead?topic=mail&page=", "/ui/schedules?page=", "/ui/workflows?page=", "/ui/shards?page=", "/ui/workers?page="} {
		if _, text := r.get(http.StatusOK, page+"c2hhcmRzOg-x"); !strings.Contains(text, "This list has no such page.") {
			t.Errorf("%s: %s", page, text)
		}
	}
}

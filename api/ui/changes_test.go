package ui_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"
	"google.golang.org/protobuf/proto"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// cursorOn is the cursor behind what a page of changes shows.
func (r *rig) cursorOn(page string) string {
	r.Helper()
	parsed, text := r.get(http.StatusOK, page)
	for _, n := range elements(parsed) {
		if cursor := attr(n, "data-copy"); n.Data == "button" && cursor != "" {
			return cursor
		}
	}
	r.Fatalf("%s has no cursor:\n%s", page, text)
	return ""
}

// TestChangesAreSeenAsTheyHappen, and those of before without a script.
func TestChangesAreSeenAsTheyHappen(t *testing.T) {
	r := start(t)
	r.enqueue(client.Task{Topic: "mail", ID: "before", Delay: time.Hour})
	const page = "/ui/changes?topic=mail"
	if _, text := r.get(http.StatusOK, page); !strings.Contains(text, "does not keep what happens") {
		t.Error(text)
	}
	lines := r.stream("changes?topic=mail", nil)
	if text := r.act(page, "/ui/changes/keep"); !strings.Contains(text, "Nothing that is looked for has happened") {
		t.Error(text)
	}
	begin := r.cursorOn(page)
	r.enqueue(client.Task{Topic: "mail", ID: "a<b>", Delay: time.Hour, Attributes: map[string]string{"tenant": "acme"}})
	r.comes(lines, ">a&lt;b&gt;<")
	r.enqueue(client.Task{Topic: "mail", ID: "other", Delay: time.Hour})
	if _, err := ddqv1.NewDelayQueueServiceClient(r.client.Conn()).DeleteTask(t.Context(), &ddqv1.DeleteTaskRequest{Topic: "mail", Id: "other"}); err != nil {
		t.Fatal(err)
	}
	r.comes(lines, "<td>deleted</td>")

	for query, want := range map[string][2]string{ // what is there, and what is not
		"":                       {">other<", ">before<"},
		"&id=a":                  {">a&lt;b&gt;<", ">other<"},
		"&kind=deleted":          {">other<", ">a&lt;b&gt;<"},
		"&kind=enqueued&id=o":    {">other<", "<td>deleted</td>"},
		"&cursor=" + begin:       {">a&lt;b&gt;<", ">before<"},
		"&kind=cancel+requested": {"Nothing that is looked for", ">other<"},
	} {
		parsed, text := r.get(http.StatusOK, page+query)
		r.check(page+query, parsed)
		if !strings.Contains(text, want[0]) || strings.Contains(text, want[1]) {
			t.Errorf("%q: want %q and no %q:\n%s", query, want[0], want[1], text)
		}
	}
	if _, text := r.get(http.StatusOK, page+"&cursor="+r.cursorOn(page)); !strings.Contains(text, "Nothing that is looked for") {
		t.Error("what is behind the cursor is shown again")
	}
}

// TestACursorThatIsGone: the page says what is lost, and leads to what is kept.
func TestACursorThatIsGone(t *testing.T) {
	r := start(t)
	admin := ddqv1.NewAdminServiceClient(r.client.Conn())
	keep := func(d time.Duration) {
		t.Helper()
		if _, err := admin.ConfigureTopic(t.Context(), &ddqv1.ConfigureTopicRequest{Name: "mail", Policy: &ddqv1.TopicPolicy{WatchRetentionMs: proto.Int64(d.Milliseconds())}}); err != nil {
			t.Fatal(err)
		}
	}
	r.act("/ui/", "/ui/topic/create", "name", "mail")
	keep(time.Hour)
	r.enqueue(client.Task{Topic: "mail", ID: "kept-once", Delay: time.Hour})
	const page = "/ui/changes?topic=mail&id=kept&kind=enqueued"
	cursor := r.cursorOn(page)
	keep(0) // what was kept is gone
	r.enqueue(client.Task{Topic: "mail", ID: "kept-lost", Delay: time.Hour})
	keep(2 * time.Hour)
	r.enqueue(client.Task{Topic: "mail", ID: "kept-again", Delay: time.Hour})

	parsed, text := r.get(http.StatusGone, page+"&cursor="+cursor)
	r.check(page, parsed)
	for _, want := range []string{"Some of what happened behind this cursor is lost", "keeps what happens for 2 h 0 min", `value="kept"`, `value="` + cursor + `"`, ">Show the last changes<"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "data-live") {
		t.Error("it is kept up to date")
	}
	i := slices.IndexFunc(elements(parsed), func(n *html.Node) bool {
		return n.Data == "a" && n.FirstChild != nil && n.FirstChild.Data == "Go on from the oldest change that is kept"
	})
	if i < 0 {
		t.Fatalf("nothing leads on:\n%s", text)
	}
	if _, text := r.get(http.StatusOK, attr(elements(parsed)[i], "href")); !strings.Contains(text, ">kept-again<") || strings.Contains(text, ">kept-lost<") || !strings.Contains(text, `name="from" value="oldest"`) {
		t.Error(text)
	}
}

// TestAnAttributeIsLookedFor where the topic indexes it.
func TestAnAttributeIsLookedFor(t *testing.T) {
	r := start(t)
	for topic, indexed := range map[string][]string{"mail": {"tenant"}, "sms": nil} {
		policy := &ddqv1.TopicPolicy{WatchRetentionMs: proto.Int64(time.Hour.Milliseconds()), IndexedAttributes: &ddqv1.IndexedAttributes{Names: indexed}}
		if _, err := ddqv1.NewAdminServiceClient(r.client.Conn()).CreateTopic(t.Context(), &ddqv1.CreateTopicRequest{Name: topic, Policy: policy}); err != nil {
			t.Fatal(err)
		}
	}
	if _, text := r.get(http.StatusBadRequest, "/ui/changes?topic=sms&attribute=tenant%3Dacme"); !strings.Contains(text, "is not indexed") || !strings.Contains(text, `value="tenant=acme"`) {
		t.Error(text)
	}
	lines := r.stream("changes?topic=mail&attribute=tenant%3Dacme", nil)
	r.comes(lines, "Attribute (tenant)")
	r.enqueue(
		client.Task{Topic: "mail", ID: "theirs", Delay: time.Hour, Attributes: map[string]string{"tenant": "other"}},
		client.Task{Topic: "mail", ID: "ours", Delay: time.Hour, Attributes: map[string]string{"tenant": "acme"}},
	)
	if seen := r.comes(lines, ">ours<"); strings.Contains(seen, ">theirs<") {
		t.Error(seen)
	}
}

// TestWhoMaySwitchesItOn: others are told how an operator does it.
func TestWhoMaySwitchesItOn(t *testing.T) {
	r, root := startAsking(t)
	r.enqueue(client.Task{Topic: "mail", ID: "a", Delay: time.Hour})
	_, secret := r.token("viewer", "viewer:mail")
	viewer, operator := r.login(secret), r.login(root)
	const page = "/ui/changes?topic=mail"
	if text := r.want(http.StatusOK, http.MethodGet, page, nil, viewer); !strings.Contains(text, "ddq topic set mail --watch-retention 1h") || strings.Contains(text, "/ui/changes/keep") {
		t.Error(text)
	}
	r.want(http.StatusSeeOther, http.MethodPost, "/ui/changes/keep", url.Values{"topic": {"mail"}}, operator)
	lines := r.stream("changes?topic=mail", viewer)
	r.enqueue(client.Task{Topic: "mail", ID: "b", Delay: time.Hour})
	r.comes(lines, ">b<")
	r.want(http.StatusForbidden, http.MethodGet, "/ui/changes?topic=sms", nil, viewer)
	r.want(http.StatusNotFound, http.MethodGet, "/ui/changes?topic=sms", nil, operator)
}

// TestAFieldSaysWhatIsWrongWithIt, and what else was written stays.
func TestAFieldSaysWhatIsWrongWithIt(t *testing.T) {
	r := start(t)
	r.act("/ui/", "/ui/topic/create", "name", "mail")
	r.act("/ui/changes?topic=mail", "/ui/changes/keep")
	long := strings.Repeat("x", 10_000)
	for _, c := range []struct{ page, field, says string }{
		{"tasks?topic=mail&id=keep&state=lost", "state", "There is no lost."},
		{"tasks?topic=mail&id=" + long, "id", "at most 128"},
		{"tasks?topic=mail&id=keep&due_from=2030-01-02T00:00&due_before=2030-01-01T00:00", "due_before", "not after"},
		{"tasks?topic=mail&id=keep&created_from=2030-01-02T00:00:01&created_before=2030-01-02T00:00:01", "created_before", "not after"},
		{"tasks?topic=mail&id=keep&due_from=soon", "due_from", "A time is such as"},
		{"tasks?topic=mail&id=keep&due_from=1969-01-01T00:00", "due_from", "A time is such as"},
		{"tasks?topic=mail&id=keep&attribute=%3Dx", "attribute", "An attribute is such as"},
		{"tasks?topic=mail&id=keep&attribute=" + long, "attribute", "must be one that a task can have"},
		{"dead?topic=mail&error=keep&reason=bored", "reason", "There is no bored."},
		{"workflows?topic=keep&state=lost", "state", "There is no lost."},
		{"workflows?topic=" + long, "topic", "at most"},
		{"changes?topic=mail&id=keep&kind=lost", "kind", "There is no lost."},
		{"changes?topic=mail&id=" + long, "id", "at most 128"},
		{"changes?topic=mail&id=keep&cursor=%25", "cursor", "no cursor"},
		{"changes?topic=mail&id=keep&cursor=AAAA", "cursor", "not one that a watch of this topic returned"},
		{"changes?topic=mail&id=keep&attribute=tenant", "attribute", "An attribute is such as"},
	} {
		parsed, text := r.get(http.StatusBadRequest, "/ui/"+c.page)
		r.check(c.page, parsed)
		i := slices.IndexFunc(elements(parsed), func(n *html.Node) bool { return attr(n, "aria-invalid") == "true" })
		if i < 0 {
			t.Errorf("%.80s: no field is wrong:\n%.3000s", c.page, text)
			continue
		}
		field := elements(parsed)[i]
		var says strings.Builder
		for n := range field.Parent.Descendants() {
			if n.Type == html.TextNode {
				says.WriteString(n.Data)
			}
		}
		if attr(field, "name") != c.field || !strings.Contains(says.String(), c.says) {
			t.Errorf("%.80s: field %s says %.200q", c.page, attr(field, "name"), says.String())
		}
		if strings.Contains(c.page, "=keep") && !strings.Contains(text, `value="keep"`) {
			t.Errorf("%.80s: the rest is not kept", c.page)
		}
		if strings.Contains(text, "data-live") {
			t.Errorf("%.80s: it is kept up to date", c.page)
		}
	}
}

// TestTasksAreFoundByTimesAndAttributes.
func TestTasksAreFoundByTimesAndAttributes(t *testing.T) {
	r := start(t)
	at := time.Date(2031, 5, 1, 12, 0, 0, 0, time.UTC)
	r.enqueue(
		client.Task{Topic: "mail", ID: "early", Due: at, Attributes: map[string]string{"tenant": "acme"}},
		client.Task{Topic: "mail", ID: "late", Due: at.Add(time.Hour), Attributes: map[string]string{"tenant": "acid"}},
	)
	for query, want := range map[string]string{
		"&due_before=2031-05-01T12:00:01": "early", "&due_from=2031-05-01T12:30": "late", "&attribute=tenant%3Dacme": "early", "&attribute=tenant%3Dac*": "early late",
		"&attribute=tenant": "early late", "&attribute=tenant%3D": "", "&created_from=2031-05-01T12:00": "", "&created_before=2031-05-01T12:00": "early late",
	} {
		_, text := r.get(http.StatusOK, "/ui/tasks?topic=mail"+query)
		var got []string
		for _, id := range []string{"early", "late"} {
			if strings.Contains(text, ">"+id+"<") {
				got = append(got, id)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
}

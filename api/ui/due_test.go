package ui_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ddq-io/ddq/api/client"
)

// TestWhatIsDueSaysWhoseItIs: by topic, and of a topic run by run.
func TestWhatIsDueSaysWhoseItIs(t *testing.T) {
	r := start(t)
	r.enqueue(client.Task{Topic: "mail", ID: "soon", Delay: 30 * time.Minute}, client.Task{Topic: "mail", ID: "later", Delay: 48 * time.Hour}, client.Task{Topic: "sms", ID: "other", Delay: 40 * time.Minute})
	if _, err := r.client.PutSchedule(r.Context(), client.Schedule{Topic: "mail", Name: "often", Cron: []string{"*/20 * * * *"}}); err != nil {
		t.Fatal(err)
	}
	at := func(d time.Duration) string { return time.Now().UTC().Add(d).Format("2006-01-02T15:04:05") }
	within := "from=" + at(0) + "&before=" + at(time.Hour)
	page, text := r.get(http.StatusOK, "/ui/due?"+within)
	links := strings.Join(r.check("/ui/due", page), "\n")
	for _, want := range []string{"/ui/topic?name=mail", "/ui/topic?name=sms", "&topic=mail", "/ui/tasks?due_before="} {
		if !strings.Contains(links, want) {
			t.Errorf("no link leads to %s:\n%s", want, links)
		}
	}
	if strings.Index(text, ">mail<") > strings.Index(text, ">sms<") {
		t.Error("the topic of which most is due is not the first")
	}
	page, text = r.get(http.StatusOK, "/ui/due?topic=mail&"+within)
	r.check("/ui/due?topic=mail", page)
	if n := strings.Count(text, "/ui/schedule?name=often"); n != 3 {
		t.Errorf("%d runs, want 3:\n%s", n, text)
	}
	if _, text := r.get(http.StatusOK, "/ui/due"); !strings.Contains(text, ">mail<") {
		t.Error("without a span it is not of this hour")
	}
}

func TestWhatIsDueInASpanThatIsNone(t *testing.T) {
	r := start(t)
	r.enqueue(client.Task{Topic: "mail", ID: "soon", Delay: time.Minute})
	for query, want := range map[string]string{
		"from=soon": "A time is such as", "from=2030-01-02T00:00&before=2030-01-01T00:00": "This is not after", "from=2030-01-01T00:00&before=2400-01-01T00:00": "bucket_ms",
		"topic=none": "no such topic", "topic=" + url.QueryEscape("a b"): "topic",
	} {
		page, text := r.get(http.StatusBadRequest, "/ui/due?"+query)
		r.check(query, page)
		if !strings.Contains(text, want) || !strings.Contains(text, `name="before"`) {
			t.Errorf("%s: %s", query, text)
		}
	}
	r.get(http.StatusOK, "/ui/due?from=2020-01-01T00:00&before=2020-01-02T00:00&topic=mail")
}

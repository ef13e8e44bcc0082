package rest

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

func TestOperations(t *testing.T) {
	r := newRig(t, Config{})
	for i := range 5 {
		r.do("POST", "/v1/topics/mail/tasks", fmt.Sprintf(`{"id":"job-%d","delay":"3600s"}`, i)).want(202)
	}
	const all = "/v1/topics/mail/operations"
	started := r.do("POST", all, `{"delete_tasks":{"filter":{"id_prefix":"job-"}},"rate_per_s":"1000"}`).want(202)
	at := started.header.Get("Location")
	if at == "" || at != all+"/"+started.field("operation.id").(string) {
		t.Fatalf("Location %q of %s", at, started.body)
	}
	r.do("GET", at+":watch", "").want(200) // until it has ended
	o := r.do("GET", at, "").want(200)
	if o.field("operation.state") != "OPERATION_STATE_DONE" || o.field("operation.progress.changed") != "5" {
		t.Errorf("it ended as %s", o.body)
	}
	r.do("POST", at+":stop", "").want(200)
	if list := r.do("GET", all+"?page_size=1", "").want(200); len(list.field("operations").([]any)) != 1 {
		t.Errorf("listed are %s", list.body)
	}
	r.do("GET", all+"/none", "").problem(404, "NO_OPERATION")
	r.do("GET", "/v1/topics/sms/operations/"+started.field("operation.id").(string), "").problem(404, "NO_OPERATION")
	r.do("POST", all, `{}`).problem(400, "BAD_ACTION")
	r.do("POST", all, `{"delete_tasks":{}}`).problem(400, "BAD_FILTER")
	r.do("POST", all, `{"delete_tasks":{"filter":{"id_prefix":"a"}},"requeue_dead_letters":{}}`).problem(400, "MALFORMED")
	r.do("POST", all, `{"topic":"sms","delete_tasks":{"filter":{"id_prefix":"a"}}}`).problem(400, "BAD_NAME")
}

// A watch of an operation tells what is new until its end, and to who has heard of that nothing.
func TestOperationIsWatched(t *testing.T) {
	r := newRig(t, Config{})
	for i := range 3 {
		r.do("POST", "/v1/topics/mail/tasks", fmt.Sprintf(`{"id":"job-%d","delay":"3600s"}`, i)).want(202)
	}
	const all = "/v1/topics/mail/operations"
	at := r.do("POST", all, `{"delete_tasks":{"filter":{"id_prefix":"job-"}},"rate_per_s":"2"}`).want(202).header.Get("Location")
	stream := r.do("GET", at+":watch", "").want(200)
	if got := stream.header.Get("Content-Type"); got != eventsType {
		t.Errorf("a stream of %s", got)
	}
	told := regexp.MustCompile(`(?m)^id: (\S+)\nevent: operation\ndata: (.*)$`).FindAllStringSubmatch(stream.body, -1)
	if len(told) < 2 || !strings.HasSuffix(stream.body, "\n\nevent: end\ndata: {}\n\n") {
		t.Fatalf("it is told as %s", stream.body)
	}
	last := told[len(told)-1]
	if strings.Contains(told[0][2], "STATE_DONE") || !strings.Contains(last[2], "OPERATION_STATE_DONE") || !strings.Contains(last[2], `"changed":"3"`) {
		t.Errorf("it is told as %s", stream.body)
	}
	r.do("GET", at+":watch", "", "Last-Event-ID: "+last[1]).want(204)
	again := r.do("GET", at+":watch", "", "Last-Event-ID: "+told[0][1]).want(200).body
	if strings.Count(again, "event: operation") != 1 || !strings.Contains(again, last[0]) {
		t.Errorf("resumed it is told as %s", again)
	}
	lines := r.do("GET", at+":watch", "", "Accept: "+linesType).want(200)
	if got := lines.header.Get("Content-Type"); got != linesType || lines.body != last[2]+"\n" {
		t.Errorf("lines of %s: %s", got, lines.body)
	}
	r.do("GET", all+"/none:watch", "").problem(404, "NO_OPERATION")
	r.do("GET", at+":watch?rate=1", "").problem(400, "MALFORMED")
}

package rest

import (
	"fmt"
	"testing"
	"time"
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
	for until := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) { // REST has no call that waits for its end
		o := r.do("GET", at, "").want(200)
		if o.field("operation.progress.done") == true {
			if o.field("operation.state") != "OPERATION_STATE_DONE" || o.field("operation.progress.changed") != "5" {
				t.Errorf("it ended as %s", o.body)
			}
			break
		}
		if time.Now().After(until) {
			t.Fatalf("it has not ended: %s", o.body)
		}
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

package rest

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestLifeOfATask(t *testing.T) {
	r := newRig(t, Config{})
	made := r.do("POST", "/v1/topics/mail/tasks", `{"id":"a/b","payload":"aGk=","delay":"0s","maxRetries":2}`).want(202)
	if got := made.header.Get("Location"); got != "/v1/topics/mail/tasks/a%2Fb" {
		t.Errorf("Location %q", got)
	}
	r.do("POST", "/v1/topics/mail/tasks", `{"id":"a/b","payload":"aGk=","delay":"0s","max_retries":2}`).want(200)
	got := r.do("GET", made.header.Get("Location"), "").want(200)
	if got.field("task.id") != "a/b" || got.field("task.max_retries") != 2. || got.header.Get("ETag") != `"v1"` {
		t.Errorf("got %v %s", got.header, got.body)
	}
	if id := r.do("GET", "/v1/tasks/a%2Fb", "").want(200).field("task.topic"); id != "mail" {
		t.Errorf("by its id alone the task is of %v", id)
	}
	held := r.do("POST", "/v1/topics/mail:retrieve", `{"wait_ms":"1000","worker":"w"}`).want(200)
	delivery := held.field("deliveries").([]any)[0].(map[string]any)
	token := strings.TrimRight(strings.NewReplacer("+", "-", "/", "_").Replace(delivery["hold_token"].(string)), "=")
	r.do("POST", "/v1/topics/mail/tasks/a%2fb:extend", `{"visibility_timeout_ms":"60000"}`, "Ddq-Hold-Token: "+token).want(200)
	r.do("POST", "/v1/topics/mail/tasks/a%2fb:checkpoint", `{"name":"charge","value":"aGk="}`, "Ddq-Hold-Token: "+token).want(200)
	r.do("POST", "/v1/topics/mail/tasks/a%2fb:checkpoint", "", "Ddq-Hold-Token: "+token).problem(400, "BAD_NAME")
	if again := r.do("POST", "/v1/topics/mail/tasks/a%2fb:checkpoint", `{"name":"charge"}`, "Ddq-Hold-Token: "+token).want(200); again.field("already") != true {
		t.Errorf("the same checkpoint again: %s", again.body)
	}
	shown := r.do("GET", "/v1/topics/mail/tasks/a%2fb", "").want(200)
	if e := shown.field("task.journal").([]any)[0].(map[string]any); e["name"] != "charge" || e["value"] != "aGk=" || e["size"] != "2" || e["kept_at"] == nil {
		t.Errorf("the journal is shown as %v", e)
	}
	r.do("POST", "/v1/topics/mail/tasks/a%2fb:ack", "", "Ddq-Hold-Token: "+token).want(200)
	r.do("GET", "/v1/topics/mail/tasks/a%2fb", "").problem(404, "NO_TASK")
}

func TestEdits(t *testing.T) {
	r := newRig(t, Config{})
	r.do("POST", "/v1/topics/t/tasks", `{"id":"a","delay":"3600s","priority":5,"payload":"aGk="}`).want(202)
	edited := r.do("PATCH", "/v1/topics/t/tasks/a", `{"priority":7,"payload":null}`, `If-Match: "v1"`).want(200)
	if edited.header.Get("ETag") != `"v2"` {
		t.Errorf("ETag %q", edited.header.Get("ETag"))
	}
	task := r.do("GET", "/v1/topics/t/tasks/a", "").want(200)
	if task.field("task.priority") != 7. || task.field("task.payload") != nil {
		t.Errorf("got %s", task.body)
	}
	late := r.do("PATCH", "/v1/topics/t/tasks/a", `{"priority":1}`, `If-Match: "v1"`)
	late.problem(412, "VERSION_MISMATCH")
	if late.header.Get("ETag") != `"v2"` {
		t.Errorf("ETag of a mismatch %q", late.header.Get("ETag"))
	}
	r.do("POST", "/v1/topics/t/tasks/a:promote", "", `If-Match: "v1"`).problem(412, "VERSION_MISMATCH")
	r.do("POST", "/v1/topics/t/tasks/a:promote", `{"if_version":"1"}`).problem(409, "VERSION_MISMATCH")
	r.do("POST", "/v1/topics/t/tasks/a:reschedule", `{"delay":"7200s"}`, `If-Match: "v2"`).want(200)
	r.do("DELETE", "/v1/topics/t/tasks/a", "").want(204)
	r.do("DELETE", "/v1/topics/t/tasks/a", "").problem(404, "NO_TASK")
}

func TestCancels(t *testing.T) {
	r := newRig(t, Config{})
	r.do("POST", "/v1/topics/t/tasks", `{"id":"a"}`).want(202)
	r.do("POST", "/v1/topics/t:retrieve", `{"wait_ms":"1000"}`).want(200)
	r.do("POST", "/v1/topics/t/tasks/a:cancel", "").want(202)
	r.do("POST", "/v1/topics/t/tasks", `{"id":"b","delay":"60s"}`).want(202)
	r.do("POST", "/v1/topics/t/tasks/b:cancel", `{"or_delete":true}`).want(200)
}

func TestTopics(t *testing.T) {
	r := newRig(t, Config{})
	made := r.do("POST", "/v1/topics", `{"name":"mail","policy":{"max_retries":7}}`).want(201)
	if made.header.Get("Location") != "/v1/topics/mail" {
		t.Errorf("got %v", made.header)
	}
	tag := r.do("GET", "/v1/topics/mail", "").want(200).header.Get("ETag")
	r.do("PATCH", "/v1/topics/mail", `{"policy":{"max_retries":8}}`, "If-Match: "+tag).want(200)
	r.do("PATCH", "/v1/topics/mail", `{"policy":{"max_retries":9}}`, "If-Match: "+tag).problem(412, "VERSION_MISMATCH")
	r.do("POST", "/v1/topics/mail:pause", `{"delivery":true}`).want(200)
	r.do("POST", "/v1/topics/mail:resume", "").want(200)
	for _, path := range []string{"/v1/topics/mail:count", "/v1/topics/mail:due?bucket_ms=1000", "/v1/topics/mail/dead", "/v1/server", "/v1/nodes", "/v1/shards"} {
		r.do("GET", path, "").want(200)
	}
	r.do("DELETE", "/v1/topics/mail", "").want(204)
	r.do("GET", "/v1/topics/mail", "").problem(404, "NO_TOPIC")
}

func TestListsHaveLinks(t *testing.T) {
	r := newRig(t, Config{})
	for i := range 5 {
		r.do("POST", "/v1/topics/t/tasks", fmt.Sprintf(`{"id":"%d","delay":"60s"}`, i)).want(202)
	}
	seen, path := 0, "/v1/topics/t/tasks?page_size=2&filter.states=TASK_STATE_SCHEDULED"
	for path != "" {
		page := r.do("GET", path, "").want(200)
		tasks, _ := page.field("tasks").([]any)
		seen += len(tasks)
		link, rel, _ := strings.Cut(page.header.Get("Link"), ">; ")
		if path = strings.TrimPrefix(link, "<"); path != "" && rel != `rel="next"` {
			t.Fatalf("Link %q", page.header.Get("Link"))
		}
	}
	if seen != 5 {
		t.Errorf("pages have %d tasks", seen)
	}
	found := r.do("POST", "/v1/topics/t/tasks:search?page_size=10", `{"id_prefix":"3"}`).want(200)
	if tasks, _ := found.field("tasks").([]any); len(tasks) != 1 {
		t.Errorf("found %s", found.body)
	}
}

func TestIdempotencyKey(t *testing.T) {
	r := newRig(t, Config{})
	ask := func(body string, headers ...string) reply {
		return r.do("POST", "/v1/topics/t/tasks", body, headers...)
	}
	first := ask(`{"payload":"aGk="}`, "Idempotency-Key: k").want(202)
	again := ask(`{"payload":"aGk="}`, "Idempotency-Key: k").want(200)
	if first.field("id") != again.field("id") {
		t.Errorf("two tasks: %s and %s", first.body, again.body)
	}
	if p := ask(`{"payload":"aGV5"}`, "Idempotency-Key: k").problem(422, "KEY_TAKEN"); p.ID != first.field("id") {
		t.Errorf("the key is of %q", p.ID)
	}
	ask(`{"id":"x"}`, "Idempotency-Key: l").problem(400, "BAD_KEY")
	ask(`{"idempotency":{"key":"x"}}`, "Idempotency-Key: l").problem(400, "BAD_KEY")
	ask(`{}`, "Idempotency-Key: l", "Idempotency-Key: m").problem(400, "BAD_KEY")
	ask(`{}`, "Idempotency-Key: ").problem(400, "BAD_KEY")
	ask(`{}`, "Idempotency-Key: "+strings.Repeat("k", 129)).problem(400, "BAD_KEY")
	r.do("POST", "/v1/topics/t:retrieve", "{}", "Idempotency-Key: k").problem(400, "BAD_KEY")
}

func TestTraceContextOfHeaders(t *testing.T) {
	r := newRig(t, Config{})
	const parent, other = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b8-01"
	for _, tc := range []struct {
		path, body string
		headers    []string
		parent     any
		state      any
	}{
		{"/tasks", `{}`, []string{"traceparent: " + parent, "tracestate: a=1", "tracestate: b=2"}, parent, "a=1,b=2"},
		{"/tasks:raw", `hello`, []string{"traceparent: " + parent, "tracestate: a=1"}, parent, "a=1"},
		{"/tasks", `{"traceparent":"` + other + `"}`, []string{"traceparent: " + parent, "tracestate: a=1"}, other, nil},
		{"/tasks", `{}`, []string{"traceparent: " + parent, "traceparent: " + other}, nil, nil},
		{"/tasks", `{}`, []string{"traceparent: \xff"}, nil, nil},
		{"/tasks", `{}`, []string{"tracestate: a=1"}, nil, nil},
		{"/tasks", `{}`, nil, nil, nil},
	} {
		id, _ := r.do("POST", "/v1/topics/t"+tc.path, tc.body, tc.headers...).want(202).field("id").(string)
		task, _ := r.do("GET", "/v1/topics/t/tasks/"+id, "").want(200).field("task").(map[string]any)
		if task["traceparent"] != tc.parent || task["tracestate"] != tc.state {
			t.Errorf("%+v: the task has %v and %v", tc, task["traceparent"], task["tracestate"])
		}
	}
	r.do("POST", "/v1/topics/u/tasks", `{}`, "traceparent: "+parent, "tracestate: a=1").want(202)
	taken := r.do("POST", "/v1/topics/u:take?wait=5s", "").want(200)
	if taken.header.Get("Traceparent") != parent || taken.header.Get("Tracestate") != "a=1" {
		t.Errorf("taken with %v", taken.header)
	}
}

func TestBatches(t *testing.T) {
	r := newRig(t, Config{})
	r.do("POST", "/v1/tasks:batch", `{"tasks":[{"topic":"a"},{"topic":"b"}]}`).want(202)
	some := r.do("POST", "/v1/tasks:batch", `{"tasks":[{"topic":"a"},{"topic":"?"}]}`).want(200)
	if some.header.Get("Ddq-Failed") != "1" {
		t.Errorf("got %v %s", some.header, some.body)
	}
}

func TestSettle(t *testing.T) {
	r := newRig(t, Config{})
	r.do("POST", "/v1/topics/t/tasks", `{"id":"a"}`).want(202)
	held := r.do("POST", "/v1/topics/t:retrieve", `{"wait_ms":"1000"}`).want(200)
	token := held.field("deliveries").([]any)[0].(map[string]any)["hold_token"]
	wrong := base64.StdEncoding.EncodeToString(make([]byte, 24))
	done := r.do("POST", "/v1/topics/t:settle", fmt.Sprintf(`{"acks":[{"task_id":"a","hold_token":%q},{"task_id":"b","hold_token":%q}]}`, token, wrong)).want(200)
	if results, _ := done.field("results").([]any); len(results) != 1 {
		t.Errorf("got %s", done.body)
	}
}

// Every row is a request that must be refused, and how.
func TestBadRequests(t *testing.T) {
	r := newRig(t, Config{})
	r.do("POST", "/v1/topics/t/tasks", `{"id":"x","delay":"3600s"}`).want(202)
	tasks := "/v1/topics/t/tasks"
	for _, c := range []struct {
		method, path, body, header string
		status                     int
		reason, field              string
	}{
		{"POST", tasks, `{"delay":"-1s"}`, "", 400, "BAD_DELAY", "delay"},
		{"POST", tasks, `{"delay":"5"}`, "", 400, "MALFORMED", "delay"},
		{"POST", tasks, `{"delay":5}`, "", 400, "MALFORMED", "delay"},
		{"POST", tasks, `{"delay":"NaN"}`, "", 400, "MALFORMED", "delay"},
		{"POST", tasks, `{"topic":"u"}`, "", 400, "BAD_NAME", "topic"},
		{"POST", tasks, `{`, "", 400, "MALFORMED", ""},
		{"POST", tasks, `{} {}`, "", 400, "MALFORMED", ""},
		{"POST", tasks, `[]`, "", 400, "MALFORMED", ""},
		{"POST", tasks, `null`, "", 400, "MALFORMED", ""},
		{"POST", tasks, `{"id":"a","id":"b"}`, "", 400, "MALFORMED", "id"},
		{"POST", tasks, `{"max_retries":1,"maxRetries":1}`, "", 400, "MALFORMED", "maxRetries"},
		{"POST", tasks, `{"nope":1}`, "", 400, "MALFORMED", "nope"},
		{"POST", tasks, `{"backoff":{"base_ms":"1","nope":{}}}`, "", 400, "MALFORMED", "backoff.nope"},
		{"POST", tasks, `{"attributes":[{"key":"a"},{"kye":"b"}]}`, "", 400, "MALFORMED", "attributes[1].kye"},
		{"POST", tasks, "{\n\t\"id\": \"ä\",\n\t\"priority\": 1.5\n}", "", 400, "MALFORMED", "priority"},
		{"POST", tasks, `{"idempotency":{"key":"k","scope":"SOON"}}`, "", 400, "MALFORMED", "idempotency.scope"},
		{"POST", tasks, "{\"id\":\"\xff\"}", "", 400, "MALFORMED", "id"},
		{"POST", tasks, strings.Repeat(`{"backoff":`, 10_000), "", 400, "MALFORMED", ""},
		{"POST", tasks, `{"delay":"1s","execute_time":"2030-01-01T00:00:00Z"}`, "", 400, "MALFORMED", "execute_time"},
		{"POST", "/v1/tasks:batch", `{"tasks":[` + strings.Repeat("{},", 70_000) + `{}]}`, "", 400, "MALFORMED", ""},
		{"POST", tasks, strings.Repeat(" ", maxBody+1), "", 413, "BODY_TOO_LARGE", ""},
		{"POST", tasks, `{"payload":"` + strings.Repeat("A", 2<<20) + `"}`, "", 413, "PAYLOAD_TOO_LARGE", "payload"},
		{"POST", tasks, `{}`, "Content-Encoding: gzip", 415, "BAD_ENCODING", ""},
		{"POST", tasks, ``, "", 400, "MALFORMED", ""},
		{"POST", tasks + "?priority=1", `{}`, "", 400, "MALFORMED", "priority"},
		{"PATCH", tasks + "/x", `{"priority":1}`, `If-Match: W/"v3"`, 400, "BAD_ETAG", "If-Match"},
		{"PATCH", tasks + "/x", `{"priority":1}`, `If-Match: "3"`, 400, "BAD_ETAG", "If-Match"},
		{"PATCH", tasks + "/x", `{"priority":1}`, `If-Match: *, "v1"`, 400, "BAD_ETAG", "If-Match"},
		{"PATCH", tasks + "/x", `{"priority":1}`, `If-Match: "v99999999999999999999"`, 400, "BAD_ETAG", "If-Match"},
		{"PATCH", tasks + "/x", `{"if_version":1}`, `If-Match: "v1"`, 400, "BAD_ETAG", "if_version"},
		{"PATCH", tasks + "/x", `{"topic":"u"}`, "", 400, "BAD_NAME", "topic"},
		{"DELETE", tasks + "/x", ``, `If-Match: "v1"`, 400, "BAD_ETAG", "If-Match"},
		{"GET", tasks + "/..", ``, "", 404, "NO_TASK", "id"},
		{"GET", tasks + "/%2e%2e", ``, "", 404, "NO_TASK", "id"},
		{"GET", tasks + "/%2e%2e%2fx", ``, "", 404, "NO_TASK", "id"},
		{"GET", tasks + "/100%25", ``, "", 404, "NO_TASK", "id"},
		{"GET", tasks + "/x%3Aack", ``, "", 404, "NO_TASK", "id"},
		{"GET", tasks + "/x%2525", ``, "", 404, "NO_TASK", "id"},
		{"GET", tasks + "/%00", ``, "", 400, "BAD_ID", "id"},
		{"GET", tasks + "/%c0%ae", ``, "", 400, "BAD_ID", "id"},
		{"GET", "/v1/topics//tasks/x", ``, "", 400, "BAD_NAME", "topic"},
		{"GET", "/v1/tasks/", ``, "", 400, "BAD_ID", "id"},
		{"GET", tasks + "/x:wait?wait_ms=7200000", ``, "", 400, "OUT_OF_RANGE_FIELD", "wait_ms"},
		{"GET", tasks + "/x:wait?wait_ms=-1", ``, "", 400, "OUT_OF_RANGE_FIELD", "wait_ms"},
		{"GET", tasks + "?page_size=-1", ``, "", 400, "OUT_OF_RANGE_FIELD", "page_size"},
		{"GET", tasks + "?page_size=many", ``, "", 400, "MALFORMED", "page_size"},
		{"GET", tasks + "?nope=1", ``, "", 400, "MALFORMED", "nope"},
		{"GET", tasks + "?topic=u", ``, "", 400, "MALFORMED", "topic"},
		{"GET", tasks + "?page_token=%zz", ``, "", 400, "MALFORMED", ""},
		{"GET", tasks + "?page_token=garbage", ``, "", 400, "BAD_CURSOR", "page_token"},
		{"GET", "/v1/nothing", ``, "", 404, "NO_ROUTE", ""},
		{"GET", "/v1/../v1/server", ``, "", 404, "NO_ROUTE", ""},
		{"GET", "/nothing", ``, "", 404, "NO_ROUTE", ""},
		{"PUT", tasks, `{}`, "", 405, "NO_ROUTE", ""},
		{"POST", tasks + "/x:ack", ``, "Ddq-Hold-Token: ?", 400, "BAD_TOKEN", "Ddq-Hold-Token"},
		{"POST", tasks + "/x:ack", ``, "", 400, "BAD_TOKEN", "hold_token"},
	} {
		t.Run(fmt.Sprintf("%s %s %.30s %s", c.method, c.path, c.body, c.header), func(t *testing.T) {
			own := *r
			own.T = t
			var headers []string
			if c.header != "" {
				headers = append(headers, c.header)
			}
			got := own.do(c.method, c.path, c.body, headers...)
			if p := got.problem(c.status, c.reason); p.Field != c.field {
				t.Errorf("field %q, want %q: %s", p.Field, c.field, got.body)
			}
		})
	}
}

func TestTypesOfBodies(t *testing.T) {
	r := newRig(t, Config{})
	for _, given := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/json;", "application/jsonx"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url+"/v1/topics/t/tasks", strings.NewReader("{}"))
		must(t, err)
		request.Header.Set("Content-Type", given)
		answer, err := http.DefaultTransport.RoundTrip(request)
		must(t, err)
		answer.Body.Close()
		if want := map[bool]int{true: 202, false: 415}[given == "application/json;"]; answer.StatusCode != want {
			t.Errorf("%s: %d", given, answer.StatusCode)
		}
	}
}

func TestMethodsOfPaths(t *testing.T) {
	r := newRig(t, Config{})
	r.do("POST", "/v1/topics/t/tasks", `{"id":"x"}`).want(202)
	if got := r.do("HEAD", "/v1/topics/t/tasks/x", "").want(200); got.body != "" || got.header.Get("ETag") == "" {
		t.Errorf("HEAD: %v %q", got.header, got.body)
	}
	if got := r.do("OPTIONS", "/v1/topics/t/tasks/x", "").want(204).header.Get("Allow"); got != "DELETE, GET, HEAD, OPTIONS, PATCH" {
		t.Errorf("Allow %q", got)
	}
	if got := r.do("POST", "/v1/topics/t/tasks/x", "{}"); got.header.Get("Allow") != "DELETE, GET, HEAD, OPTIONS, PATCH" {
		t.Errorf("405 with Allow %q", got.header.Get("Allow"))
	} else {
		got.problem(405, "NO_ROUTE")
	}
	r.do("GET", "/v1/topics/t/tasks/x", "a body that nobody asked for").want(200)
	r.do("POST", "/v1/topics/t/tasks", "{}", "X-HTTP-Method-Override: DELETE").want(202)
	r.do("GET", "/v1/topics/t/tasks/x", "", "Grpc-Timeout: nonsense").want(200)
}

func TestSchedules(t *testing.T) {
	r := newRig(t, Config{})
	nightly := "/v1/topics/t/schedules/nightly%2Fa"
	timetable := `"timetable":{"entries":[{"cron":"0 3,15 * * *"}],"zone":"Europe/Berlin"}`
	made := r.do("PUT", nightly, `{`+timetable+`,"task":{"payload":"aGk="}}`).want(201)
	if made.header.Get("ETag") != `"v1"` {
		t.Errorf("ETag %q", made.header.Get("ETag"))
	}
	changed := r.do("PUT", nightly, `{`+timetable+`,"task":{"payload":"aGV5"}}`, `If-Match: "v1"`).want(200)
	r.do("PUT", nightly, `{`+timetable+`,"task":{}}`, `If-Match: "v1"`).problem(412, "VERSION_MISMATCH")
	r.do("PUT", nightly+"?if_version=1", `{`+timetable+`,"task":{}}`, `If-Match: "v1"`).problem(400, "BAD_ETAG")
	r.do("PUT", nightly, `{"topic":"u",`+timetable+`,"task":{}}`).problem(400, "BAD_NAME")
	r.do("PUT", nightly, `{"timetable":{"entries":[{"corn":""}]}}`).problem(400, "MALFORMED")
	got := r.do("GET", nightly, "").want(200)
	if got.header.Get("ETag") != changed.header.Get("ETag") || got.field("schedule.name") != "nightly/a" {
		t.Errorf("got %v %s", got.header, got.body)
	}
	if listed, _ := r.do("GET", "/v1/topics/t/schedules?prefix=night", "").want(200).field("schedules").([]any); len(listed) != 1 {
		t.Errorf("listed %v", listed)
	}
	if listed, _ := r.do("GET", "/v1/topics/t/schedules?skipped_since=2020-01-01T00:00:00Z", "").want(200).field("schedules").([]any); len(listed) != 0 {
		t.Errorf("listed as skipped %v", listed)
	}
	r.do("GET", "/v1/topics/t/schedules?skipped_since=1960-01-01T00:00:00Z", "").problem(400, "BAD_TIME")
	r.do("GET", "/v1/topics/t/schedules?skipped_since=yesterday", "").problem(400, "MALFORMED")
	for _, ahead := range []reply{
		r.do("GET", nightly+":preview?count=3", "").want(200),
		r.do("POST", "/v1/schedules:preview", `{"schedule":{"topic":"t","name":"x",`+timetable+`,"task":{}},"count":3}`).want(200),
	} {
		if occurrences, _ := ahead.field("occurrences").([]any); len(occurrences) != 3 {
			t.Errorf("previewed %s", ahead.body)
		}
	}
	hour := time.Now().UTC().Truncate(time.Hour) // of 25 the next run is in one, whatever the time is
	span := fmt.Sprintf("bucket_ms=3600000&from=%s&to=%s", hour.Format(time.RFC3339), hour.Add(25*time.Hour).Format(time.RFC3339))
	for _, path := range []string{"/v1/forecast?" + span, "/v1/topics/t:forecast?" + span} {
		f := r.do("GET", path, "").want(200)
		if next, _ := f.field("next").([]any); len(next) != 25 || !strings.Contains(string(f.body), `"1"`) || f.field("exact") != true {
			t.Errorf("%s: %s", path, f.body)
		}
	}
	r.do("GET", "/v1/forecast?bucket_ms=5", "").problem(400, "OUT_OF_RANGE_FIELD")
	to := time.Now().Add(49 * time.Hour).UTC().Format(time.RFC3339)
	if runs, _ := r.do("GET", "/v1/topics/t/schedules:dryrun?to="+to, "").want(200).field("runs").([]any); len(runs) < 2 {
		t.Errorf("a dry run of two days has %v", runs)
	}
	r.do("GET", "/v1/topics/t/schedules:dryrun", "").problem(400, "BAD_TIME")
	r.do("POST", nightly+":pause", `{"by":"ann"}`).want(200)
	r.do("POST", nightly+":resume", "").want(200)
	r.do("DELETE", nightly, "", `If-Match: "v99"`).problem(412, "VERSION_MISMATCH")
	r.do("DELETE", nightly, "").want(204)
	r.do("GET", nightly, "").problem(404, "NO_SCHEDULE")
}

func TestAudiences(t *testing.T) {
	r := newRig(t, Config{})
	made := r.do("POST", "/v1/audiences", `{"name":"users","fallback_zone":"UTC"}`).want(201)
	if made.header.Get("Location") != "/v1/audiences/users" {
		t.Errorf("got %v", made.header)
	}
	r.do("POST", "/v1/audiences/users/recipients:put", `{"recipients":[{"id":"ann","zone":"Europe/Berlin"},{"id":"bob","zone":"nowhere"}]}`).want(200)
	if got := r.do("GET", "/v1/audiences/users/recipients/ann", "").want(200); got.field("recipient.zone") != "Europe/Berlin" {
		t.Errorf("got %s", got.body)
	}
	if listed, _ := r.do("GET", "/v1/audiences/users/recipients", "").want(200).field("recipients").([]any); len(listed) != 1 {
		t.Errorf("listed %v", listed)
	}
	generation := r.do("POST", "/v1/audiences/users/replacements", "").want(200).field("generation")
	r.do("POST", fmt.Sprintf("/v1/audiences/users/replacements/%s:end", generation), "{}").want(200)
	r.do("POST", "/v1/audiences/users/replacements/many:end", "").problem(400, "MALFORMED")
	r.do("POST", "/v1/audiences/users/recipients:delete", `{"ids":["ann"]}`).want(200)
	r.do("GET", "/v1/audiences/users", "").want(200)
	r.do("GET", "/v1/audiences", "").want(200)
	if got := r.do("POST", "/v1/audiences/users:preview", `{"target":{"window_ms":"60000"}}`).want(200); got.field("preview.exact") != true {
		t.Errorf("got %s", got.body)
	}
	r.do("GET", "/v1/audiences/users/runs", "").want(200)
	r.do("GET", "/v1/audiences/users/runs/x", "").problem(404, "NO_RUN")
	r.do("POST", "/v1/audiences/users/runs/x:cancel", "").problem(404, "NO_RUN")
	r.do("GET", "/v1/audiences/nobody/runs", "").problem(404, "NO_AUDIENCE")
	r.do("DELETE", "/v1/audiences/users", "").want(204)
	if got := r.do("GET", "/v1/audiences/users", ""); got.status != http.StatusNotFound {
		t.Errorf("got %d %s", got.status, got.body)
	}
}

func TestWorkflow(t *testing.T) {
	r := newRig(t, Config{})
	const order = "/v1/topics/orders/workflows/order%2d17"
	sent := `{"id":"order-17","name":"order","steps":[{"name":"charge"},{"name":"approve","wait":{"signal":"approve"}},{"name":"ship","after":[{"step":"charge"},{"step":"approve"}]}]}`
	made := r.do("POST", "/v1/topics/orders/workflows", sent).want(202)
	if made.header.Get("Location") != "/v1/topics/orders/workflows/order-17" {
		t.Errorf("got %v", made.header)
	}
	r.do("POST", "/v1/topics/orders/workflows", sent).want(200)
	if steps, _ := r.do("GET", order+"?view=WORKFLOW_VIEW_STEPS", "").want(200).field("steps").([]any); len(steps) != 3 {
		t.Errorf("%d steps", len(steps))
	}
	r.do("POST", order+":signal", `{"signal":"approve","payload":"YWRh"}`).want(200)
	r.do("POST", order+":pause", "").want(200)
	r.do("POST", order+":resume", "").want(200)
	r.do("POST", order+":retry", "").problem(409, "NOTHING_TO_RETRY")
	r.do("GET", order+"/steps?state=STEP_STATE_WAITING", "").want(200)
	r.do("GET", order+"/steps/approve/results", "").want(200)
	r.do("POST", order+"/steps/ship:skip", `{"result":"eA=="}`).want(200)
	if got := r.do("GET", order+":wait", "").want(200).header.Get("Ddq-Settled"); got != "false" {
		t.Errorf("it is settled: %s", got)
	}
	r.do("POST", order+":cancel", `{"wait_ms":"5000"}`).want(200)
	if listed, _ := r.do("GET", "/v1/topics/orders/workflows?state=WORKFLOW_STATE_CANCELLED", "").want(200).field("workflows").([]any); len(listed) != 1 {
		t.Errorf("listed: %v", listed)
	}
	r.do("DELETE", order, "").want(204)
	r.do("GET", order, "").problem(404, "NO_WORKFLOW")
}

// TestTasksOfSteps are their workflow's: over REST, too.
func TestTasksOfSteps(t *testing.T) {
	r := newRig(t, Config{})
	sent := `{"id":"order-17","steps":[{"name":"charge","task":{"topic":"bank","delay":"3600s"}}]}`
	r.do("POST", "/v1/topics/orders/workflows", sent).want(202)
	const bank = "/v1/topics/bank/tasks"
	var id string
	for id == "" { // its task comes by parcel
		if tasks, _ := r.do("GET", bank, "").want(200).field("tasks").([]any); len(tasks) > 0 {
			task, _ := tasks[0].(map[string]any)
			id, _ = task["id"].(string)
		}
	}
	task, _ := r.do("GET", bank+"/"+id, "").want(200).field("task").(map[string]any)
	if step, _ := task["step"].(map[string]any); step["workflow"] != "order-17" || step["workflow_topic"] != "orders" {
		t.Errorf("it is of %v", step)
	}
	r.do("DELETE", bank+"/"+id, "").problem(409, "STEP_OF_WORKFLOW")
	if got := r.do("POST", "/v1/topics/bank:purge", "").want(200); got.field("skipped") != "1" {
		t.Errorf("purged: %s", got.body)
	}
	r.do("DELETE", bank+"/"+id+"?force=true", "").want(204)
	if got := r.do("GET", "/v1/topics/orders/workflows/order-17:wait?wait_ms=10000", "").want(200); got.header.Get("Ddq-Settled") != "true" {
		t.Errorf("it has not failed: %s", got.body)
	}
}

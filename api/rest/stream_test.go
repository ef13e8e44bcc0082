package rest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestRawPayloads(t *testing.T) {
	r := newRig(t, Config{})
	payload := "\x00\xff not JSON"
	made := r.do("POST", "/v1/topics/t/tasks:raw?id=a&priority=5&delay=1h&keep_type=1", payload, "Content-Type: image/png").want(202)
	if made.header.Get("Location") != "/v1/topics/t/tasks/a" {
		t.Errorf("got %v", made.header)
	}
	r.do("POST", "/v1/topics/t/tasks:raw?at=2030-01-01T00:00:00Z", "x").want(202)
	r.do("POST", "/v1/topics/t/tasks:raw", "").want(202)
	key := "Idempotency-Key: k"
	r.do("POST", "/v1/topics/t/tasks:raw?delay=1h", "x", key).want(202)
	r.do("POST", "/v1/topics/t/tasks:raw?delay=1h", "x", key).want(200)
	r.do("POST", "/v1/topics/t/tasks:raw?delay=1h", "y", key).problem(422, "KEY_TAKEN")
	sealed := "/v1/topics/t/tasks:raw?id=sealed&delay=1h&payload_fingerprint="
	r.do("POST", sealed+"MDEyMzQ1Njc4OWFiY2RlZg==", "x").want(202)
	r.do("POST", sealed+"MDEyMzQ1Njc4OWFiY2RlZg==", "y").want(200)
	r.do("POST", sealed+"ZmVkY2JhOTg3NjU0MzIxMA==", "x").problem(409, "ID_CONFLICT")
	r.do("POST", sealed+"AAAA", "x").problem(400, "BAD_FINGERPRINT")
	for query, reason := range map[string]string{
		"delay=-1s": "BAD_DELAY", "delay=soon": "MALFORMED", "delay=1s&at=2030-01-01T00:00:00Z": "MALFORMED", "priority=5&priority=6": "MALFORMED",
		"payload=eA==": "MALFORMED", "topic=u": "MALFORMED", "nope=1": "MALFORMED", "keep_type=perhaps": "MALFORMED", "priority=11": "OUT_OF_RANGE_FIELD", "at=now": "MALFORMED",
	} {
		r.do("POST", "/v1/topics/t/tasks:raw?"+query, "x").problem(400, reason)
	}
	r.do("POST", "/v1/topics/t/tasks:raw", strings.Repeat("x", maxBody+1)).problem(413, "BODY_TOO_LARGE")
	r.do("POST", "/v1/topics/t/tasks:raw", "x", "Content-Encoding: gzip").problem(415, "BAD_ENCODING")
}

func TestTake(t *testing.T) {
	r := newRig(t, Config{})
	r.do("POST", "/v1/topics/t:take", "").want(204)
	r.do("POST", "/v1/topics/t/tasks:raw?id=a%2Fb&keep_type=1", "hello", "Content-Type: text/plain").want(202)
	got := r.do("POST", "/v1/topics/t:take?wait=5s&worker=sh&visibility_timeout=20s", "").want(200)
	h := got.header
	if got.body != "hello" || h.Get("Ddq-Task-Id") != "a%2Fb" || h.Get("Ddq-Retry-Count") != "0" || h.Get("Ddq-Execute-Time") == "" ||
		h.Get("Ddq-Attributes") == "" || h.Get("Content-Type") != "application/octet-stream" || h.Get("X-Accel-Buffering") != "no" {
		t.Errorf("got %v %q", h, got.body)
	}
	r.do("POST", "/v1/topics/t/tasks/"+h.Get("Ddq-Task-Id")+":ack", "", "Ddq-Hold-Token: "+h.Get("Ddq-Hold-Token")).want(200)
	r.do("POST", "/v1/topics/t:take?wait=2h", "").problem(400, "OUT_OF_RANGE_FIELD")
	r.do("POST", "/v1/topics/t:take?wait=-1s", "").problem(400, "OUT_OF_RANGE_FIELD")
	r.do("POST", "/v1/topics/t:take?wait=long", "").problem(400, "MALFORMED")
	r.do("POST", "/v1/topics/t:take?nope=1", "").problem(400, "MALFORMED")
}

// What comes when the clients of polls have gone is not counted as theirs.
func TestTakeOfWhoWentTakesNothing(t *testing.T) {
	r := newRig(t, Config{})
	r.do("POST", "/v1/topics", `{"name":"t"}`).want(201)
	const rounds, polls, tasks = 10, 100, 10
	for round := range rounds {
		ctx, leave := context.WithCancel(t.Context())
		var gone sync.WaitGroup
		for range polls {
			gone.Go(func() {
				asked, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url+"/v1/topics/t:take?wait=30s", nil)
				if err != nil {
					t.Error(err)
					return
				}
				if answer, err := http.DefaultTransport.RoundTrip(asked); err == nil {
					answer.Body.Close()
				}
			})
		}
		r.subscriptions("t", func(n int) bool { return n == polls })
		leave()
		gone.Wait()
		r.subscriptions("t", func(n int) bool { return n == 0 })
		for i := range tasks {
			r.do("POST", "/v1/topics/t/tasks", fmt.Sprintf(`{"id":"%d-%d"}`, round, i)).want(202)
			if got := r.do("POST", "/v1/topics/t:take?wait=10s", "").want(200).header; got.Get("Ddq-Retry-Count") != "0" {
				t.Errorf("%s was counted %s times", got.Get("Ddq-Task-Id"), got.Get("Ddq-Retry-Count"))
			}
		}
	}
}

// subscriptions asks until the topic has as many as told. Nothing tells of that but the
// topic's answer, which takes long enough to be no busy loop.
func (r *rig) subscriptions(topic string, enough func(n int) bool) {
	r.Helper()
	for began := time.Now(); time.Since(began) < time.Minute; {
		n, _ := r.do("GET", "/v1/topics/"+topic, "").want(200).field("subscriptions").(float64)
		if enough(int(n)) {
			return
		}
	}
	r.Fatal("the subscriptions are never that many")
}

func TestImport(t *testing.T) {
	r := newRig(t, Config{})
	text := strings.Join([]string{
		`{"id":"a","delay":"60s"}`, ``, `{"id":"b","nope":1}`, `   `, `{"id":"` + strings.Repeat("x", maxLine) + `"}`,
		`{"id":"a","delay":"60s"}`, `{"topic":"u"}`, `{"id":"c","topic":"t","priority":99}`, `{"id":"d"`, `{"id":"e","delay":"60s"}`,
	}, "\n")
	got := r.do("POST", "/v1/topics/t/tasks:import", text, "Content-Type: "+linesType).want(200)
	want := []string{"1 ", "3 MALFORMED", "5 LINE_TOO_LONG", "6 ", "7 BAD_NAME", "8 OUT_OF_RANGE_FIELD", "9 MALFORMED", "10 "}
	rows := strings.Split(strings.TrimSpace(got.body), "\n")
	for i, row := range rows[:len(rows)-1] {
		var result struct {
			Line  int
			Error struct{ Reason string }
		}
		must(t, json.Unmarshal([]byte(row), &result))
		if said := fmt.Sprintf("%d %s", result.Line, result.Error.Reason); i >= len(want) || said != want[i] {
			t.Errorf("row %d: %s", i, row)
		}
	}
	if last := rows[len(rows)-1]; last != `{"done":true,"stored":3,"failed":5}` {
		t.Errorf("the last row is %s", last)
	}
	r.do("POST", "/v1/topics/t/tasks:import", "{}").problem(415, "BAD_TYPE")
}

func TestImportOfManyIsInOrder(t *testing.T) {
	r := newRig(t, Config{})
	var text bytes.Buffer
	const n = 10_000
	for i := range n {
		fmt.Fprintf(&text, "{\"id\":\"%d\",\"delay\":\"3600s\"}\n", i)
	}
	got := r.do("POST", "/v1/topics/t/tasks:import", text.String(), "Content-Type: "+linesType).want(200)
	rows := strings.Split(strings.TrimSpace(got.body), "\n")
	if len(rows) != n+1 || rows[n] != fmt.Sprintf(`{"done":true,"stored":%d,"failed":0}`, n) {
		t.Fatalf("%d rows, the last is %s", len(rows), rows[len(rows)-1])
	}
	for i, row := range rows[:n] {
		if !strings.HasPrefix(row, fmt.Sprintf(`{"line":%d,`, i+1)) || !strings.Contains(row, fmt.Sprintf(`"id":"%d"`, i)) {
			t.Fatalf("row %d is %s", i, row)
		}
	}
	listed := r.do("GET", "/v1/topics/t/tasks:export?filter.states=TASK_STATE_SCHEDULED", "").want(200)
	if rows := strings.Split(strings.TrimSpace(listed.body), "\n"); len(rows) != n+1 || rows[n] != `{"done":true,"next_page_token":""}` {
		t.Errorf("exported %d rows, the last is %s", len(rows), rows[len(rows)-1])
	}
	r.do("GET", "/v1/topics/t/tasks:export?nope=1", "").problem(400, "MALFORMED")
	r.do("GET", "/v1/topics/%3F/tasks:export", "").problem(400, "BAD_NAME")
}

// dial opens a connection on which a test writes requests by hand.
func (r *rig) dial(text string) net.Conn {
	r.Helper()
	conn, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", strings.TrimPrefix(r.url, "http://"))
	must(r, err)
	r.Cleanup(func() { conn.Close() })
	_, err = io.WriteString(conn, strings.ReplaceAll(text, "\n", "\r\n"))
	must(r, err)
	return conn
}

const importHead = "POST /v1/topics/t/tasks:import HTTP/1.1\nHost: localhost\nContent-Type: application/x-ndjson\nTransfer-Encoding: chunked\n\n"

func chunk(text string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(text), text) }

func TestImportAnswersWhileItIsRead(t *testing.T) {
	r := newRig(t, Config{})
	conn := r.dial(importHead)
	answer := bufio.NewReader(conn)
	for i := range 3 {
		_, err := io.WriteString(conn, chunk("{\"delay\":\"1h\"}\n")+chunk(fmt.Sprintf("{\"id\":\"%d\",\"delay\":\"60s\"}\n", i)))
		must(t, err)
		for text := ""; !strings.Contains(text, fmt.Sprintf(`"id":"%d"`, i)); {
			text, err = answer.ReadString('\n')
			must(t, err)
		}
	}
}

func TestImportThatIsCutIsNotDone(t *testing.T) {
	r := newRig(t, Config{})
	conn := r.dial(importHead)
	_, err := io.WriteString(conn, chunk("{\"id\":\"a\",\"delay\":\"60s\"}\n{\"id\":\"b\"}"))
	must(t, err)
	must(t, conn.(*net.TCPConn).CloseWrite())
	text, err := io.ReadAll(conn)
	must(t, err)
	if !strings.Contains(string(text), `"id":"a"`) || strings.Contains(string(text), "done") {
		t.Errorf("got %s", text)
	}
	r.do("GET", "/v1/topics/t/tasks/a", "").want(200)
	r.do("GET", "/v1/topics/t/tasks/b", "").problem(404, "NO_TASK")
}

func TestBodyWithoutEndIsRefused(t *testing.T) {
	r := newRig(t, Config{})
	conn := r.dial("POST /v1/topics/t/tasks HTTP/1.1\nHost: localhost\nContent-Type: application/json\nTransfer-Encoding: chunked\n\n")
	part := chunk(strings.Repeat(" ", 64<<10))
	for range maxBody>>16 + 2 {
		if _, err := io.WriteString(conn, part); err != nil {
			break // it is closed
		}
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	must(t, err)
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusRequestEntityTooLarge || !answer.Close {
		t.Errorf("got %v", answer)
	}
}

// watched is a watch that is open.
type watched struct {
	*testing.T
	answer *http.Response
	text   *bufio.Reader
}

func (r *rig) watch(query string, headers ...string) *watched {
	r.Helper()
	request, err := http.NewRequestWithContext(r.Context(), http.MethodGet, r.url+"/v1/topics/t:watch?"+query, nil)
	must(r, err)
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		request.Header.Set(name, value)
	}
	answer, err := http.DefaultTransport.RoundTrip(request)
	must(r, err)
	r.Cleanup(func() { answer.Body.Close() })
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(answer.Body)
		r.Fatalf("got %d %s", answer.StatusCode, text)
	}
	return &watched{r.T, answer, bufio.NewReader(answer.Body)}
}

// change is the next change and its cursor.
func (w *watched) change() (id, cursor string) {
	w.Helper()
	event := ""
	for {
		row, err := w.text.ReadString('\n')
		must(w, err)
		name, value, _ := strings.Cut(strings.TrimSpace(row), ": ")
		switch {
		case name == "id":
			cursor = value
		case name == "event":
			event = value
		case name == "data" && event == "change":
			var change struct{ ID string }
			must(w, json.Unmarshal([]byte(value), &change))
			return change.ID, cursor
		}
	}
}

func (r *rig) watchedTopic(ids ...string) {
	r.Helper()
	r.do("POST", "/v1/topics", `{"name":"t","policy":{"watch_retention_ms":"3600000","shards":3}}`).want(201)
	for _, id := range ids {
		r.do("POST", "/v1/topics/t/tasks", fmt.Sprintf(`{"id":%q,"delay":"3600s"}`, id)).want(202)
	}
}

func TestWatchGoesOnBehindEachChange(t *testing.T) {
	r := newRig(t, Config{})
	ids := make([]string, 30)
	for i := range ids {
		ids[i] = fmt.Sprint(i)
	}
	r.watchedTopic(ids...)
	all := r.watch("from=oldest")
	if got := all.answer.Header; got.Get("Content-Type") != eventsType || got.Get("Cache-Control") != "no-store" || got.Get("X-Accel-Buffering") != "no" {
		t.Errorf("got %v", got)
	}
	var seen, cursors []string
	for range ids {
		id, cursor := all.change()
		seen, cursors = append(seen, id), append(cursors, cursor)
	}
	slices.Sort(ids)
	if sorted := slices.Sorted(slices.Values(seen)); !slices.Equal(sorted, ids) {
		t.Fatalf("saw %v", seen)
	}
	for _, i := range []int{0, 7, 15, 28} { // what follows is what was not seen, whatever the order
		next := r.watch("", "Last-Event-ID: "+cursors[i])
		var rest []string
		for range len(ids) - i - 1 {
			id, _ := next.change()
			rest = append(rest, id)
		}
		if got := slices.Sorted(slices.Values(append(rest, seen[:i+1]...))); !slices.Equal(got, ids) {
			t.Errorf("behind change %d: %v", i, rest)
		}
	}
}

// TestWatchBeginsWithTheLastChanges, and a browser that comes back to that address goes on where it was.
func TestWatchBeginsWithTheLastChanges(t *testing.T) {
	r := newRig(t, Config{})
	r.watchedTopic("a", "b", "c")
	if id, _ := r.watch("last=1000").change(); id == "" {
		t.Error("nothing is told")
	}
	_, cursor := r.watch("from=oldest").change()
	for _, begun := range []string{"from=oldest", "last=1000"} {
		seen := map[string]bool{}
		next := r.watch(begun, "Last-Event-ID: "+cursor)
		for range 2 {
			id, _ := next.change()
			seen[id] = true
		}
		if len(seen) != 2 {
			t.Errorf("%s: behind the first change %v", begun, seen)
		}
	}
	for _, wrong := range []string{"last=x", "last=1001", "last=-1", "last=5&from=oldest", "last=5&cursor=" + cursor} {
		r.do("GET", "/v1/topics/t:watch?"+wrong, "").want(400)
	}
}

func TestWatchInLines(t *testing.T) {
	r := newRig(t, Config{})
	r.watchedTopic("a", "b")
	w := r.watch("from=oldest&kinds=enqueued&id=b", "Accept: "+linesType)
	for {
		row, err := w.text.ReadString('\n')
		must(t, err)
		var one struct {
			Cursor string
			Change struct{ ID string }
		}
		must(t, json.Unmarshal([]byte(row), &one))
		if one.Cursor == "" {
			t.Errorf("no cursor in %s", row)
		}
		if one.Change.ID != "" {
			if one.Change.ID != "b" {
				t.Errorf("got %s", row)
			}
			return
		}
	}
}

// oneConn is a listener that has a single connection, which keeps nothing of what is not read.
type oneConn struct {
	conn chan net.Conn
}

func (l oneConn) Accept() (net.Conn, error) {
	c, ok := <-l.conn
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (l oneConn) Close() error { return nil }

func (l oneConn) Addr() net.Addr { return &net.TCPAddr{} }

// TestWatchThatNobodyReadsIsCutOff, and others see what happens meanwhile.
func TestWatchThatNobodyReadsIsCutOff(t *testing.T) {
	r := newRig(t, Config{})
	r.watchedTopic()
	l, closed := oneConn{make(chan net.Conn, 1)}, make(chan struct{})
	port := &http.Server{Handler: r.port, ReadHeaderTimeout: time.Minute, ConnState: func(_ net.Conn, is http.ConnState) {
		if is == http.StateClosed {
			close(closed)
		}
	}}
	served := make(chan error, 1)
	go func() { served <- port.Serve(l) }()
	defer func() {
		close(l.conn)
		if err := <-served; !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	}()
	slow, theirs := net.Pipe()
	defer slow.Close()
	l.conn <- theirs
	_, err := io.WriteString(slow, "GET /v1/topics/t:watch HTTP/1.1\r\nHost: localhost\r\n\r\n")
	must(t, err)
	text := bufio.NewReaderSize(slow, 16)
	for row := ""; row != "data: {}\n"; { // it has begun
		row, err = text.ReadString('\n')
		must(t, err)
	}
	other := r.watch("")
	for cut, n := false, 0; !cut; n++ {
		r.do("POST", "/v1/topics/t/tasks", fmt.Sprintf(`{"id":"%d","delay":"3600s"}`, n)).want(202)
		if id, _ := other.change(); id != fmt.Sprint(n) {
			t.Fatalf("the other sees %s, want %d", id, n)
		}
		select {
		case <-closed:
			cut = true
		default:
		}
	}
	if n := r.port.api.(*api).watches.Load(); n != 1 {
		t.Errorf("%d watches are counted, want that of the other", n)
	}
}

func TestWatchEndsWithItsServer(t *testing.T) {
	r := newRig(t, Config{})
	r.watchedTopic()
	w := r.watch("")
	stopped := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		stopped <- r.server.Stop(ctx)
	}()
	text, err := io.ReadAll(w.text)
	must(t, err)
	must(t, <-stopped)
	if !strings.Contains(string(text), "event: drain\ndata: {") || !strings.Contains(string(text), "DRAINING") {
		t.Errorf("got %s", text)
	}
	r.do("GET", "/v1/server", "").problem(503, "DRAINING")
}

func TestWatchesThatCannotBe(t *testing.T) {
	r := newRig(t, Config{})
	r.watchedTopic("a")
	_, cursor := r.watch("from=oldest").change()
	r.do("POST", "/v1/topics", `{"name":"u","policy":{"watch_retention_ms":"3600000"}}`).want(201)
	r.do("POST", "/v1/topics", `{"name":"v"}`).want(201)
	r.do("GET", "/v1/topics/u:watch", "", "Last-Event-ID: "+cursor).problem(400, "BAD_CURSOR")
	r.do("GET", "/v1/topics/t:watch", "", "Last-Event-ID: garbage").problem(400, "BAD_CURSOR")
	r.do("GET", "/v1/topics/t:watch?cursor=?", "").problem(400, "BAD_CURSOR")
	r.do("GET", "/v1/topics/t:watch?from=soon", "").problem(400, "MALFORMED")
	r.do("GET", "/v1/topics/t:watch?kinds=nope", "").problem(400, "MALFORMED")
	r.do("GET", "/v1/topics/t:watch?nope=1", "").problem(400, "MALFORMED")
	r.do("GET", "/v1/topics/v:watch", "").problem(409, "NOT_WATCHED")
	r.do("GET", "/v1/topics/nope:watch", "").problem(404, "NO_TOPIC")
	if got := r.do("HEAD", "/v1/topics/t:watch", ""); got.status != 405 {
		t.Errorf("HEAD: %d", got.status)
	}
}

// The deadline of a body must not reach the requests after it.
func TestConnectionOfAnImportGoesOn(t *testing.T) {
	r := newRig(t, Config{})
	for i := range 100 {
		r.do("POST", "/v1/topics/t/tasks:import", fmt.Sprintf(`{"id":"%d","delay":"60s"}`, i), "Content-Type: "+linesType).want(200)
		r.do("GET", fmt.Sprintf("/v1/topics/t/tasks/%d", i), "").want(200)
	}
}

func (r *rig) overviews(headers ...string) *bufio.Reader {
	r.Helper()
	request, err := http.NewRequestWithContext(r.Context(), http.MethodGet, r.url+"/v1/overview:watch?topic=t", nil)
	must(r, err)
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		request.Header.Set(name, value)
	}
	answer, err := http.DefaultTransport.RoundTrip(request)
	must(r, err)
	r.Cleanup(func() { answer.Body.Close() })
	if answer.StatusCode != http.StatusOK || answer.Header.Get("X-Accel-Buffering") != "no" {
		r.Fatalf("got %v", answer)
	}
	return bufio.NewReader(answer.Body)
}

func TestTheOverviewIsWatched(t *testing.T) {
	r := newRig(t, Config{})
	r.watchedTopic("a")
	lines, rows := r.overviews("Accept: "+linesType), r.overviews()
	for range 2 {
		var seen struct {
			Topics []struct {
				Depth struct{ Scheduled string }
			}
		}
		text, err := lines.ReadBytes('\n')
		must(r, err)
		must(r, json.Unmarshal(text, &seen))
		if len(seen.Topics) != 1 || seen.Topics[0].Depth.Scheduled != "1" {
			t.Errorf("got %s", text)
		}
		for _, want := range []string{"event: overview\n", "data: {", "\n"} {
			if row, err := rows.ReadString('\n'); err != nil || !strings.HasPrefix(row, want) {
				t.Errorf("got %q, %v, want %q", row, err, want)
			}
		}
	}
	r.do("GET", "/v1/overview:watch?topic=nope", "").problem(404, "NO_TOPIC")
	r.do("GET", "/v1/overview:watch?page_size=-1", "").problem(400, "OUT_OF_RANGE_FIELD")
	r.do("GET", "/v1/overview:watch?nope=1", "").problem(400, "MALFORMED")
}

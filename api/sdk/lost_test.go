//go:build linux

package sdk_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// The ways in which an answer is lost: before the server has done what it was asked for, and after.
var ways = []string{"reset before", "reset after", "cut short", "no answer", "503 before", "503 after"}

// done says whether the server has done what a lost answer was of.
func done(way string) bool { return way != "reset before" && way != "503 before" }

// losing stands between an SDK and a server, and loses the first answer of one kind of request.
type losing struct {
	server  *server
	way     string
	problem string // that is answered instead, by "503 before"; empty: none of ddq's

	mu    sync.Mutex
	kind  *regexp.Regexp // of method, path and body; nil: nothing is lost; guarded by mu
	lost  bool           // guarded by mu
	after int            // requests of the kind after that; guarded by mu
	ended chan struct{}  // closed when the server has done, or never got, what the lost answer is of; guarded by mu
}

// next has the first answer lost of what matches.
func (l *losing) next(kind string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kind, l.lost, l.after, l.ended = regexp.MustCompile("(?s)"+kind), false, 0, make(chan struct{})
}

// came says whether an answer was lost since next, and how many requests of the kind came after that.
func (l *losing) came() (lost bool, after int) {
	l.mu.Lock()
	lost, after, ended := l.lost, l.after, l.ended
	l.mu.Unlock()
	if lost {
		<-ended
	}
	return lost, after
}

// loses is nil of a request whose answer is not lost, and else what is closed when the server is through with it.
func (l *losing) loses(request string) chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.kind == nil || !l.kind.MatchString(request):
		return nil
	case l.lost:
		l.after++
		return nil
	}
	l.lost = true
	return l.ended
}

func (l *losing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	ended := l.loses(r.Method + " " + r.URL.RequestURI() + " " + string(body))
	loses, ctx := ended != nil, r.Context()
	if loses {
		ctx = context.WithoutCancel(ctx) // a caller who gives up does not undo it
		if l.way != "no answer" {
			defer close(ended)
		}
	}
	if loses && !done(l.way) {
		if l.way == "reset before" {
			reset(w, nil)
			return
		}
		if l.problem != "" {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, l.problem) // the caller may be gone
			return
		}
		http.Error(w, "no upstream", http.StatusServiceUnavailable)
		return
	}
	forward, err := http.NewRequestWithContext(ctx, r.Method, l.server.url()+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		panic(err)
	}
	forward.Header = r.Header.Clone()
	answer, err := l.server.http.Do(forward)
	if err != nil {
		reset(w, nil) // the caller is gone, or the server
		return
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	switch {
	case err != nil || loses && (l.way == "reset after" || l.way == "cut short" && len(text) == 0):
		reset(w, nil)
	case loses && l.way == "cut short":
		reset(w, fmt.Appendf(nil, "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", answer.Status, len(text)+1, text))
	case loses && l.way == "no answer":
		close(ended)
		<-r.Context().Done()
	case loses:
		http.Error(w, "upstream is gone", http.StatusServiceUnavailable)
	default:
		for name, values := range answer.Header {
			w.Header()[name] = values
		}
		w.WriteHeader(answer.StatusCode)
		_, _ = w.Write(text) // the caller may be gone
	}
}

// reset ends a connection as a machine does that knows nothing of it, after the beginning of an answer.
func reset(w http.ResponseWriter, begin []byte) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	if _, err := conn.Write(begin); err == nil && begin == nil {
		_ = conn.(*net.TCPConn).SetLinger(0) // else it is closed in order
	}
}

// lostCall is a call whose answer is lost.
type lostCall struct {
	kind, call string
	with       map[string]any
	gives      any  // by the repeat
	unsafe     bool // it is not repeated, and its outcome is called unknown
	removes    bool // a repeat does not find what was removed before it, and its outcome is called unknown
	scheduled  string
}

// lostCalls are made one after another in a topic, which has as many scheduled tasks after each as it says.
var lostCalls = []lostCall{
	{kind: "^POST /v1/topics ", call: "create_topic", with: map[string]any{"policy": map[string]any{"visibility_timeout_ms": "9000", "max_retries": 0, "done_retention_ms": "3600000"}}, unsafe: true},
	{kind: "^POST .*/tasks ", call: "enqueue", with: map[string]any{"delay_ms": 3_600_000, "payload": "x"}, gives: map[string]any{"id": "*"}, scheduled: "1"},
	{kind: "^POST /v1/tasks:batch ", call: "enqueue_batch", with: map[string]any{"tasks": []any{map[string]any{"topic": "$T", "id": "a", "delay_ms": 3_600_000}, map[string]any{"topic": "$T", "delay_ms": 3_600_000}}}, gives: []any{map[string]any{"id": "a"}, map[string]any{"id": "*"}}, scheduled: "3"},
	{kind: "^GET .*/tasks/a ", call: "get", with: map[string]any{"id": "a"}, gives: map[string]any{"id": "a"}, scheduled: "3"},
	{kind: "^GET .*:count ", call: "count", gives: map[string]any{"scheduled": "3"}},
	{kind: "^POST .*:search ", call: "list", with: map[string]any{"filter": map[string]any{"id_prefix": "a"}}, gives: []any{map[string]any{"id": "a"}}},
	{kind: "^GET .*:wait", call: "wait", with: map[string]any{"id": "a", "wait_ms": 1}, gives: map[string]any{"settled": false}},
	{kind: "^PATCH ", call: "edit", with: map[string]any{"id": "a", "payload": "y"}, unsafe: true, scheduled: "3"},
	{kind: "^POST .*:reschedule ", call: "reschedule", with: map[string]any{"id": "a", "delay_ms": 7_200_000}, unsafe: true, scheduled: "3"},
	{kind: "^POST .*:cancel ", call: "cancel", with: map[string]any{"id": "a", "or_delete": true}, gives: map[string]any{"outcome": "CANCEL_OUTCOME_DELETED"}, removes: true},
	{kind: "^POST .*/tasks ", call: "enqueue", with: map[string]any{"id": "b", "delay_ms": 3_600_000}},
	{kind: "^DELETE .*/tasks/b ", call: "delete", with: map[string]any{"id": "b"}, unsafe: true},
	{kind: "^PUT .*/schedules/s ", call: "put_schedule", with: map[string]any{"name": "s", "task": map[string]any{}, "timetable": map[string]any{"entries": []any{map[string]any{"cron": "0 0 1 1 *"}}}}, gives: map[string]any{"version": "1"}},
	{kind: "^POST .*/schedules/s:pause ", call: "pause_schedule", with: map[string]any{"name": "s"}},
	{kind: "^GET .*/schedules/s ", call: "get_schedule", with: map[string]any{"name": "s"}, gives: map[string]any{"schedule": map[string]any{"name": "s"}}},
	{kind: "^DELETE .*/schedules/s ", call: "delete_schedule", with: map[string]any{"name": "s"}, unsafe: true},
	{kind: "^GET /v1/server ", call: "describe_server", gives: map[string]any{"version": "*"}},
}

// TestLostAnswers: whatever call an answer is lost of, and however: what may be repeated is done once, and what may not is called unknown.
// A worker does nothing twice, and gives up no hold.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	s := newServer(t, built(t))
	for _, l := range languages(t) {
		for _, way := range ways {
			between := &losing{server: s, way: way}
			web := httptest.NewServer(between)
			t.Cleanup(web.Close)
			topic := l.name + "-" + strings.ReplaceAll(way, " ", "-")
			t.Run(l.name+"/"+way, func(t *testing.T) {
				t.Parallel()
				p := play{topic: topic, server: s, driver: startDriver(t, l), words: strings.NewReplacer("$T", topic)}
				p.url = web.URL
				for i := range lostCalls {
					p.loses(t, between, &lostCalls[i])
				}
				p.losesOfWorker(t, between)
			})
		}
	}
}

// client has the driver make its calls with another timeout.
func (p *play) client(t *testing.T, ms int) {
	t.Helper()
	p.driver.call(t, "client", map[string]any{"url": p.url, "timeout_ms": ms})
}

func (p *play) loses(t *testing.T, between *losing, c *lostCall) {
	t.Helper()
	between.next(c.kind)
	p.client(t, 6000)
	if c.unsafe && between.way == "no answer" { // it is waited for to the end
		p.client(t, 1000)
	}
	answer := p.driver.call(t, c.call, p.args(c.call, c.with))
	lost, after := between.came()
	p.client(t, 6000)
	if c.removes && done(between.way) {
		failed, _ := answer["error"].(map[string]any)
		if !unknown(failed) {
			t.Errorf("%s: %s", c.call, shown(answer))
		}
		return
	}
	failed, isError := answer["error"].(map[string]any)
	switch {
	case !lost:
		t.Errorf("%s: no answer was lost", c.call)
	case c.unsafe && (!isError || !unknown(failed) || after > 0):
		t.Errorf("%s: %d repeats, %s", c.call, after, shown(answer))
	case !c.unsafe && isError:
		t.Errorf("%s failed after %d repeats: %s", c.call, after, shown(failed))
	case !c.unsafe && c.gives != nil:
		if why := differs("", answer["ok"], filled(c.gives, p.words)); why != "" {
			t.Errorf("%s: %s", c.call, why)
		}
	}
	if c.unsafe && !done(between.way) { // it is for the caller to do it again
		if answer := p.driver.call(t, c.call, p.args(c.call, c.with)); answer["error"] != nil {
			t.Errorf("%s again: %s", c.call, shown(answer))
		}
	}
	if c.scheduled != "" {
		if why := p.wrong(p.driver.call(t, "count", map[string]any{"topic": p.topic}), step{Gives: map[string]any{"scheduled": c.scheduled}}); why != "" {
			t.Errorf("after %s: %s", c.call, why)
		}
	}
}

// unknown says whether an error is one after which nobody knows what became of a call.
func unknown(failed map[string]any) bool {
	return failed["class"] == "UnavailableError" || failed["class"] == "TimeoutError" || failed["class"] == "UnknownOutcomeError"
}

// losesOfWorker has the answers lost of what a worker says.
func (p *play) losesOfWorker(t *testing.T, between *losing) {
	t.Helper()
	between.next("^$")
	p.driver.call(t, "work", map[string]any{"topic": p.topic, "heartbeat_ms": 500})
	for _, c := range []struct{ name, kind, do, value, state, error string }{
		{"ack", `:settle .*"acks": ?\[\{`, "return", "x", "TASK_STATE_DONE", ""},
		{"nack", `:settle .*"nacks": ?\[\{`, "fail", "no", "TASK_STATE_DEAD", "no"},
		{"extend", `:settle .*"extends": ?\[\{`, "sleep", "4500", "TASK_STATE_DONE", ""},
		{"checkpoint", `:settle .*"checkpoints": ?\[\{`, "beside", `[{"name":"part","returns":"x"}]`, "TASK_STATE_DONE", ""},
	} {
		between.next(c.kind)
		task := map[string]any{"topic": p.topic, "id": c.name, "attributes": map[string]any{"do": c.do, "value": c.value}}
		if answer := p.driver.call(t, "enqueue", task); answer["error"] != nil {
			t.Fatalf("%s: %s", c.name, shown(answer))
		}
		p.call(t, step{Call: "wait", With: map[string]any{"id": c.name, "wait_ms": 10_000}, Until: true, Gives: map[string]any{"settled": true}})
		got := p.driver.call(t, "get", map[string]any{"topic": p.topic, "id": c.name})
		want := map[string]any{"state": c.state, "attempts": []any{map[string]any{}}}
		if c.error != "" {
			want["error"] = c.error
		}
		if why := differs("", got["ok"], any(want)); why != "" {
			t.Errorf("%s: %s; it told %s", c.name, why, shown(p.driver.all))
		}
		if lost, _ := between.came(); !lost {
			t.Errorf("%s: no answer was lost", c.name)
		}
	}
	p.driver.never(t, map[string]any{"event": "interrupted"})
	p.driver.never(t, map[string]any{"event": "refused"})
}

// TestAHoldIsNotGivenUpForAPause: a node that goes away refuses an extend, to be repeated after longer than the hold lasts. The next
// one is asked before that.
func TestAHoldIsNotGivenUpForAPause(t *testing.T) {
	t.Parallel()
	s := newServer(t, built(t))
	for _, l := range languages(t) {
		between := &losing{server: s, way: "503 before", problem: `{"code":"UNAVAILABLE","reason":"DRAINING","status":503,"detail":"node is draining","retry_after_ms":"10000"}`}
		web := httptest.NewServer(between)
		t.Cleanup(web.Close)
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			p := play{topic: l.name + "-pause", server: s, driver: startDriver(t, l), words: strings.NewReplacer("$T", l.name+"-pause")}
			p.url = web.URL
			between.next("^$")
			p.client(t, 6000)
			p.call(t, step{Call: "create_topic", With: map[string]any{"policy": map[string]any{"visibility_timeout_ms": "9000", "max_retries": 0, "done_retention_ms": "3600000"}}})
			p.driver.call(t, "work", map[string]any{"topic": p.topic, "heartbeat_ms": 500})
			between.next(`:settle .*"extends": ?\[\{`)
			p.call(t, step{Call: "enqueue", With: map[string]any{"id": "a", "attributes": map[string]any{"do": "sleep", "value": "11000"}}})
			p.call(t, step{Call: "wait", With: map[string]any{"id": "a", "wait_ms": 10_000}, Until: true, Gives: map[string]any{"settled": true}})
			got := p.driver.call(t, "get", map[string]any{"topic": p.topic, "id": "a"})
			if why := differs("", got["ok"], any(map[string]any{"state": "TASK_STATE_DONE", "attempts": []any{map[string]any{}}})); why != "" {
				t.Errorf("%s; it told %s", why, shown(p.driver.all))
			}
			if lost, after := between.came(); !lost || after == 0 {
				t.Errorf("refused: %t, and %d extends after that", lost, after)
			}
			p.driver.never(t, map[string]any{"event": "interrupted"})
		})
	}
}

// cutter stands before a port, and cuts connections through which something is lost.
type cutter struct {
	listener net.Listener
	to       string

	mu      sync.Mutex
	loses   string            // "requests" or "answers"; empty: nothing is lost; guarded by mu
	was     chan struct{}     // closed when something was lost; guarded by mu
	parties map[net.Conn]bool // guarded by mu
	relays  sync.WaitGroup
}

func newCutter(t *testing.T, to string) *cutter {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{listener: l, to: to, parties: map[net.Conn]bool{}}
	c.relays.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", to)
			if err != nil {
				near.Close()
				continue
			}
			c.relays.Go(func() { c.relay(far, near, "requests") })
			c.relays.Go(func() { c.relay(near, far, "answers") })
		}
	})
	t.Cleanup(func() {
		l.Close()
		c.cut()
		c.relays.Wait()
	})
	return c
}

// relay copies until an end is closed, but for what is lost.
func (c *cutter) relay(to, from net.Conn, what string) {
	c.mu.Lock()
	c.parties[from] = true
	c.mu.Unlock()
	defer to.Close()
	defer from.Close()
	for buf := make([]byte, 32<<10); ; {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		if c.swallows(what) {
			continue
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

func (c *cutter) swallows(what string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.loses != what {
		return false
	}
	select {
	case <-c.was:
	default:
		close(c.was)
	}
	return true
}

// lose has requests or answers lost until cut. What it returns is closed when something was.
func (c *cutter) lose(what string) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.loses, c.was = what, make(chan struct{})
	return c.was
}

// cut resets all connections. Nothing is lost in those that come after.
func (c *cutter) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.parties {
		_ = conn.(*net.TCPConn).SetLinger(0) // else it is closed in order
		conn.Close()
		delete(c.parties, conn)
	}
	c.loses = ""
}

// TestLostAnswersOfGo: an enqueue and an ack whose connection is reset before or after the server has done them are done once.
func TestLostAnswersOfGo(t *testing.T) {
	t.Parallel()
	s := newServer(t, built(t))
	for _, what := range []string{"requests", "answers"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := newCutter(t, s.grpc)
			v := &values{language: "go", topic: "go-" + what, server: s, driver: startDriver(t, goItself(), goItself().env...)}
			v.rest(t, http.MethodPost, "/v1/topics", map[string]any{"name": v.topic, "policy": map[string]any{"done_retention_ms": "3600000"}}, http.StatusOK, http.StatusCreated)
			v.ok(t, "client", map[string]any{"url": c.listener.Addr().String()})
			put := func(id string) map[string]any {
				return map[string]any{"topic": v.topic, "id": id, "place": "payload", "value": "text"}
			}
			v.ok(t, "put", put("before"))

			lost := c.lose(what)
			v.driver.send(t, "put", put("lost"))
			<-lost
			if what == "answers" {
				v.task(t, "lost")
			}
			c.cut()
			if answer := v.driver.answer(t); differs("", answer, any(map[string]any{"ok": map[string]any{"id": "lost"}})) != "" {
				t.Errorf("the enqueue: %s", shown(answer))
			}
			var count struct{ Scheduled string }
			read(t, v.rest(t, http.MethodGet, "/v1/topics/"+v.topic+":count", nil, http.StatusOK), &count)
			if count.Scheduled != "2" {
				t.Errorf("%s tasks, want 2", count.Scheduled)
			}

			v.ok(t, "work", map[string]any{"topic": v.topic, "concurrency": 2})
			for i, id := range []string{"first", "second"} {
				attributes := []any{}
				for key, value := range map[string]string{"place": "result", "value": "text", "of": fmt.Sprint(2*i + 2)} {
					attributes = append(attributes, map[string]any{"key": key, "value": value})
				}
				v.rest(t, http.MethodPost, "/v1/topics/"+v.topic+"/tasks", map[string]any{"id": id, "attributes": attributes}, http.StatusAccepted, http.StatusOK, http.StatusCreated)
				v.driver.event(t, map[string]any{"event": "begin", "id": id})
				lost := c.lose(what)
				v.ok(t, "go", map[string]any{})
				<-lost
				if what == "answers" {
					v.settled(t, id)
				}
				c.cut()
				if task := v.settled(t, id); task.State != "TASK_STATE_DONE" || len(task.Attempts) != 1 {
					t.Errorf("%s is %s after %d attempts", id, task.State, len(task.Attempts))
				}
			}
		})
	}
}

//go:build linux

package sdk_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// produces enqueues one task, with five seconds for all attempts.
var produces = map[string]string{
	"python": `
import sys, ddq
with ddq.Client(sys.argv[1], timeout=5) as client:
    print(client.enqueue("t", "x", id="a")["id"])
`,
	"typescript": `
import { Client } from "@ddq-io/ddq";
console.log((await new Client({ url: process.argv[2], timeoutMs: 5_000 }).enqueue({ topic: "t", payload: "x", id: "a" })).id);
`,
}

// works runs a worker until it has had a task.
var works = map[string]string{
	"python": `
import sys, ddq
with ddq.Client(sys.argv[1]) as client:
    worker = ddq.Worker(client, "t", lambda task: (print(task.id), worker.stop())[1], concurrency=1)
    worker.run()
`,
	"typescript": `
import { Client, Worker } from "@ddq-io/ddq";
const worker = new Worker(new Client({ url: process.argv[2] }), { topic: "t", concurrency: 1, handler: (task) => { console.log(task.id); worker.stop(); } });
await worker.run();
`,
}

// settles runs a worker until a task of the name "last" has ended.
var settles = map[string]string{
	"python": `
import sys, ddq
def handle(task):
    if task.id == "last":
        print(task.id)
        worker.stop()
with ddq.Client(sys.argv[1]) as client:
    worker = ddq.Worker(client, "t", handle, concurrency=8)
    worker.run()
`,
	"typescript": `
import { Client, Worker } from "@ddq-io/ddq";
const handler = (task) => { if (task.id === "last") { console.log(task.id); worker.stop(); } };
const worker = new Worker(new Client({ url: process.argv[2] }), { topic: "t", concurrency: 8, handler });
await worker.run();
`,
}

// sleeps lets a worker sleep for an hour, and ends it then.
var sleeps = map[string]string{
	"python": `
import sys, ddq
def handle(task):
    task.sleep("nap", 3600)
    print(task.id)
    worker.stop()
with ddq.Client(sys.argv[1]) as client:
    worker = ddq.Worker(client, "t", handle, concurrency=1)
    worker.run()
`,
	"typescript": `
import { Client, Worker } from "@ddq-io/ddq";
const handler = async (task) => { await task.sleep("nap", 3_600_000); console.log(task.id); worker.stop(); };
const worker = new Worker(new Client({ url: process.argv[2] }), { topic: "t", handler, concurrency: 1 });
await worker.run();
`,
}

// tells runs a worker until it has had a task, and prints what it is told of it.
var tells = map[string]string{
	"python": `
import sys, ddq
with ddq.Client(sys.argv[1]) as client:
    worker = ddq.Worker(client, "t", lambda task: worker.stop(), concurrency=1, on_error=lambda error, task: print(error.reason or error.code))
    worker.run()
    print("over")
`,
	"typescript": `
import { Client, Worker } from "@ddq-io/ddq";
const onError = (error) => console.log(error.reason || error.code);
const worker = new Worker(new Client({ url: process.argv[2] }), { topic: "t", concurrency: 1, onError, handler: () => worker.stop() });
await worker.run();
console.log("over");
`,
}

// TestRepeats: one attempt that is not answered does not use up the time for all of them, and a worker
// waits for a topic that does not exist, as it does in Go.
func TestRepeats(t *testing.T) {
	t.Parallel()
	for _, l := range languages(t) {
		t.Run(l.name+"/enqueue", func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int32
			url := answering(t, func(w http.ResponseWriter, r *http.Request) {
				if calls.Add(1) == 1 {
					<-r.Context().Done() // no answer
					return
				}
				fmt.Fprint(w, `{"id":"a"}`)
			})
			l.prints(t, "a", produces[l.name], url)
		})
		t.Run(l.name+"/worker", func(t *testing.T) {
			t.Parallel()
			var polls atomic.Int32
			url := answering(t, func(w http.ResponseWriter, r *http.Request) {
				switch {
				case !strings.HasSuffix(r.URL.Path, ":retrieve"):
					fmt.Fprint(w, `{}`)
				case polls.Add(1) == 1:
					w.Header().Set("Content-Type", "application/problem+json")
					w.WriteHeader(http.StatusNotFound)
					fmt.Fprint(w, `{"status":404,"code":"NOT_FOUND","reason":"NO_TOPIC"}`)
				default:
					fmt.Fprint(w, `{"deliveries":[{"hold_token":"aGVsZA==","hold_ms":"30000","task":{"id":"a","topic":"t"}}]}`)
				}
			})
			l.prints(t, "a", works[l.name], url)
		})
		t.Run(l.name+"/put off", func(t *testing.T) {
			t.Parallel()
			testPutOff(t, &l)
		})
		for what, first := range map[string]struct {
			code   int
			reason string
			says   string
		}{
			"unheard":  {0, "", "over"},
			"done":     {http.StatusServiceUnavailable, "STORE_DOWN", "over"}, // by the first one, whose answer says that nobody knows
			"full":     {http.StatusTooManyRequests, "OUTBOX_FULL", "HOLD_LOST\nover"},
			"no topic": {http.StatusServiceUnavailable, "STORE_DOWN", "NO_TOPIC\nover"},
		} {
			t.Run(l.name+"/repeated ack/"+what, func(t *testing.T) {
				t.Parallel()
				var acks atomic.Int32
				url := answering(t, func(w http.ResponseWriter, r *http.Request) {
					switch {
					case strings.HasSuffix(r.URL.Path, ":retrieve"):
						fmt.Fprint(w, `{"deliveries":[{"hold_token":"aGVsZA==","hold_ms":"30000","task":{"id":"a","topic":"t"}}]}`)
					case acks.Add(1) == 1:
						if first.code == 0 {
							<-r.Context().Done() // no answer
							return
						}
						w.Header().Set("Content-Type", "application/problem+json")
						w.WriteHeader(first.code)
						code := map[bool]string{true: "UNAVAILABLE", false: "RESOURCE_EXHAUSTED"}[first.code == http.StatusServiceUnavailable]
						fmt.Fprintf(w, `{"status":%d,"code":%q,"reason":%q,"retry_after_ms":"10"}`, first.code, code, first.reason)
					case what == "no topic":
						fmt.Fprint(w, `{"results":[{"task_id":"a","hold_token":"aGVsZA==","error":{"code":5,"reason":"NO_TOPIC"}}]}`)
					default:
						fmt.Fprint(w, `{"results":[{"task_id":"a","hold_token":"aGVsZA==","error":{"code":9,"reason":"HOLD_LOST"}}]}`)
					}
				})
				l.prints(t, first.says, tells[l.name], url)
			})
		}
		t.Run(l.name+"/sleep", func(t *testing.T) {
			t.Parallel()
			var polls atomic.Int32
			var kept atomic.Value // what the sleep kept
			const began = 1_000_000_000_000
			url := answering(t, func(w http.ResponseWriter, r *http.Request) {
				if !strings.HasSuffix(r.URL.Path, ":retrieve") {
					var settle struct{ Checkpoints []struct{ Value string } }
					if err := json.NewDecoder(r.Body).Decode(&settle); err != nil {
						t.Error(err)
					}
					for _, c := range settle.Checkpoints {
						kept.Store(c.Value)
					}
					fmt.Fprint(w, `{}`)
					return
				}
				now, journal := began, ""
				if polls.Add(1) > 1 {
					now, journal = began+3_700_000, fmt.Sprintf(`{"name":"nap","value":%q}`, kept.Load())
				}
				fmt.Fprintf(w, `{"server_time_ms":"%d","deliveries":[{"hold_token":"aGVsZA==","hold_ms":"30000","task":{"id":"a","topic":"t"},"journal":[%s]}]}`, now, journal)
			})
			l.prints(t, "a", sleeps[l.name], url)
			if polls.Load() != 2 {
				t.Errorf("it is awake at attempt %d, want 2", polls.Load())
			}
		})
	}
}

// TestOneSlowSettlement: what is not answered is in nobody's way, not even of those that went with it.
func TestOneSlowSettlement(t *testing.T) {
	t.Parallel()
	for _, l := range languages(t) {
		for _, together := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/together %v", l.name, together), func(t *testing.T) {
				t.Parallel()
				slow := make(chan struct{}, 64) // each a request that is not answered
				quick := make(chan struct{})    // closed when the quick one is taken
				var polls atomic.Int32
				var once sync.Once
				taken := func() bool {
					select {
					case <-quick:
						return true
					default:
						return false
					}
				}
				url := answering(t, func(w http.ResponseWriter, r *http.Request) {
					if !strings.HasSuffix(r.URL.Path, ":retrieve") {
						tasks := settlements(t, r)
						if strings.Contains(tasks, "acks:slow") && !taken() {
							slow <- struct{}{}
							<-r.Context().Done()
							if !together && !taken() {
								t.Error("the quick one waited for the slow one")
							}
							return
						}
						if strings.Contains(tasks, "acks:quick") {
							once.Do(func() { close(quick) })
						}
						fmt.Fprint(w, `{}`)
						return
					}
					switch n := polls.Add(1); {
					case n == 1 && together:
						fmt.Fprintf(w, `{"deliveries":[%s,%s]}`, delivery("slow"), delivery("quick"))
					case n == 1:
						fmt.Fprintf(w, `{"deliveries":[%s]}`, delivery("slow"))
					case n == 2 && together:
						fmt.Fprint(w, `{}`)
					case n == 2:
						<-slow // it is sent
						fmt.Fprintf(w, `{"deliveries":[%s]}`, delivery("quick"))
					case n == 3:
						<-quick
						fmt.Fprintf(w, `{"deliveries":[%s]}`, delivery("last"))
					default:
						<-r.Context().Done()
					}
				})
				l.prints(t, "last", settles[l.name], url)
			})
		}
	}
}

// TestAMomentWithoutAuthentication: a worker that was let in goes on, and what it has done is not done again.
func TestAMomentWithoutAuthentication(t *testing.T) {
	t.Parallel()
	for _, l := range languages(t) {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			var polls, calls atomic.Int32
			var taken sync.Map
			url := answering(t, func(w http.ResponseWriter, r *http.Request) {
				poll, nth := strings.HasSuffix(r.URL.Path, ":retrieve"), int32(0)
				if poll {
					nth = polls.Add(1)
				} else {
					nth = calls.Add(1)
				}
				switch {
				case poll && nth == 1:
					fmt.Fprintf(w, `{"deliveries":[%s]}`, delivery("first"))
				case poll && nth == 2, !poll && nth == 1:
					w.Header().Set("Content-Type", "application/problem+json")
					w.WriteHeader(http.StatusUnauthorized)
					fmt.Fprint(w, `{"status":401,"code":"UNAUTHENTICATED","reason":"BAD_CREDENTIALS"}`)
				case poll && nth == 3:
					fmt.Fprintf(w, `{"deliveries":[%s]}`, delivery("last"))
				case poll:
					<-r.Context().Done()
				default:
					taken.Store(settlements(t, r), true)
					fmt.Fprint(w, `{}`)
				}
			})
			l.prints(t, "last", settles[l.name], url)
			for _, want := range []string{"acks:first", "acks:last"} {
				if _, ok := taken.Load(want); !ok {
					t.Errorf("no %s", want)
				}
			}
		})
	}
}

// settlements are what a request has: the kind and the task of each.
func settlements(t *testing.T, r *http.Request) string {
	t.Helper()
	var kinds map[string][]struct {
		ID string `json:"task_id"`
	}
	if err := json.NewDecoder(r.Body).Decode(&kinds); err != nil {
		t.Error(err)
	}
	var all []string
	for kind, items := range kinds {
		for _, item := range items {
			all = append(all, kind+":"+item.ID)
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// delivery is one of a task, with a hold of six seconds.
func delivery(id string) string {
	return fmt.Sprintf(`{"hold_token":%q,"hold_ms":"6000","task":{"id":%q,"topic":"t"}}`, base64.StdEncoding.EncodeToString([]byte(id)), id)
}

// testPutOff refuses an ack, as a full outbox does, until its hold was extended twice.
func testPutOff(t *testing.T, l *language) {
	var extends, acks atomic.Int32
	url := answering(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ":retrieve") {
			fmt.Fprint(w, `{"deliveries":[{"hold_token":"aGVsZA==","hold_ms":"3000","task":{"id":"a","topic":"t"}}]}`)
			return
		}
		var settle struct{ Acks, Extends []json.RawMessage }
		if err := json.NewDecoder(r.Body).Decode(&settle); err != nil {
			t.Error(err)
		}
		said := `"hold_ms":"3000"` // of both, where they come together
		switch {
		case len(settle.Acks) == 0:
			extends.Add(1)
		case extends.Load() < 2:
			said = `"error":{"code":8,"reason":"OUTBOX_FULL","retry_after_ms":"100"}`
		default:
			acks.Add(1)
		}
		fmt.Fprintf(w, `{"results":[{"task_id":"a","hold_token":"aGVsZA==",%s}]}`, said)
	})
	l.prints(t, "a", works[l.name], url)
	if extends.Load() < 2 || acks.Load() != 1 {
		t.Errorf("%d extends, %d acks taken", extends.Load(), acks.Load())
	}
}

// answering is the URL of a server that does with requests what the test says.
func answering(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body) // or the end of the connection is not noticed
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// prints runs a program of a language with one argument, and has it print some lines.
func (l *language) prints(t *testing.T, want, program, arg string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	command := append(l.driver[:len(l.driver)-1:len(l.driver)-1], "-c", program, arg)
	if l.name == "typescript" {
		file := filepath.Join(filepath.Dir(l.driver[len(l.driver)-1]), strings.ReplaceAll(t.Name(), "/", "-")+".mjs")
		if err := os.WriteFile(file, []byte(program), 0o600); err != nil {
			t.Fatal(err)
		}
		command = []string{"node", file, arg}
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	var log bytes.Buffer
	cmd.Stderr = &log
	out, err := cmd.Output()
	if got := strings.TrimSpace(string(out)); err != nil || got != want {
		t.Fatalf("it printed %q (%v), want %q; its log:\n%s", got, err, want, &log)
	}
}

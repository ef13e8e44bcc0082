//go:build linux

package sdk_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// value is a line of values.json: what becomes of a value that users hand to an SDK. A driver makes the value by its name; one that
// its language does not have is left out.
type value struct {
	Value string
	became
	places
	Go, Python, TypeScript *struct { // where something else becomes of it
		became
		places
	}
}

// places are where a value is handed in. What an ack enqueues is as what a client does, a part of a handler as its result, and a
// failure for good as any other.
type places struct {
	Payload, Attribute, ID, Key, Result, Error, Name became
}

func (p *places) at(place string) became {
	return map[string]became{
		"payload": p.Payload, "attribute": p.Attribute, "id": p.ID, "next key": p.Key, "result": p.Result, "error": p.Error, "name": p.Name,
		"next": p.Payload, "next attribute": p.Attribute, "next id": p.ID, "once": p.Result, "permanent": p.Error,
	}[place]
}

// became says what the server has of a value in the end: one of its fields is set.
type became struct {
	Is      *string // as text; "~x" is what the regular expression x matches
	Hex     *string // as bytes
	Refused *string // a regular expression of what the caller, or the attempt that it fails, is told
}

func (b *became) said() bool { return b.Is != nil || b.Hex != nil || b.Refused != nil }

// at is what becomes of v at a place in a language.
func (v *value) at(place, language string) became {
	if own := map[string]*struct {
		became
		places
	}{"go": v.Go, "python": v.Python, "typescript": v.TypeScript}[language]; own != nil {
		if b := own.places.at(place); b.said() {
			return b
		}
		if own.said() {
			return own.became
		}
	}
	if b := v.places.at(place); b.said() {
		return b
	}
	if place == "next key" { // SDKs leave it to the server, which refuses all that comes with it
		b := v.at("attribute", language)
		if b.Refused != nil {
			b.Refused = new(".")
		}
		return b
	}
	return v.became
}

// differs says where got is not what is wanted, or nothing.
func (b *became) differs(got []byte, refusal string) string {
	switch {
	case b.Refused != nil && refusal == "":
		return fmt.Sprintf("%.100q was taken, want a refusal like %q", got, *b.Refused)
	case b.Refused != nil && !regexp.MustCompile(*b.Refused).MatchString(refusal):
		return fmt.Sprintf("it was refused with %.300q, want %q", refusal, *b.Refused)
	case b.Refused != nil:
		return ""
	case refusal != "":
		return fmt.Sprintf("it was refused: %.300q", refusal)
	case b.Hex != nil && fmt.Sprintf("%x", got) != *b.Hex:
		return fmt.Sprintf("got %.100x, want %s", got, *b.Hex)
	case b.Is != nil && strings.HasPrefix(*b.Is, "~") && !regexp.MustCompile((*b.Is)[1:]).Match(got), b.Is != nil && !strings.HasPrefix(*b.Is, "~") && string(got) != *b.Is:
		return fmt.Sprintf("got %.300q, want %q", got, *b.Is)
	}
	return ""
}

// The places of a value: in what is enqueued, and in what a handler says.
var (
	placesOfTasks    = []string{"payload", "attribute", "id"}
	placesOfOutcomes = []string{"result", "error", "permanent", "next", "next id", "next attribute", "next key", "once", "name"}
)

func hostileValues(t *testing.T) []value {
	t.Helper()
	file, err := os.Open("values.json")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var all []value
	d := json.NewDecoder(file)
	d.DisallowUnknownFields()
	if err := d.Decode(&all); err != nil {
		t.Fatalf("values.json: %v", err)
	}
	return all
}

// TestValues has each SDK be given every value at every place: it is sent as it is, or fails its own call or attempt with a text that
// says why. Tasks whose outcomes travel beside are done at their first attempt.
func TestValues(t *testing.T) {
	t.Parallel()
	s := newServer(t, built(t))
	all := hostileValues(t)
	for _, l := range append(languages(t), goItself()) {
		for _, place := range placesOfTasks {
			t.Run(l.name+"/"+place, func(t *testing.T) {
				t.Parallel()
				v := newValues(t, &l, s, place, all)
				for i := range v.all {
					v.enqueues(t, &v.all[i], fmt.Sprintf("v-%d", i))
				}
			})
		}
		for _, place := range placesOfOutcomes {
			t.Run(l.name+"/"+place, func(t *testing.T) {
				t.Parallel()
				newValues(t, &l, s, place, all).settles(t)
			})
		}
	}
}

// values are those of a language at a place, in a topic of their own.
type values struct {
	language, place, topic string
	server                 *server
	driver                 *driver
	all                    []value // that the language has
}

func newValues(t *testing.T, l *language, s *server, place string, all []value) *values {
	t.Helper()
	v := &values{language: l.name, place: place, topic: l.name + "-" + strings.ReplaceAll(place, " ", "-"), server: s, driver: startDriver(t, *l, l.env...)}
	policy := map[string]any{"max_retries": 0, "done_retention_ms": "3600000"}
	v.rest(t, http.MethodPost, "/v1/topics", map[string]any{"name": v.topic, "policy": policy}, http.StatusOK, http.StatusCreated)
	address := s.url()
	if l.speaksGRPC {
		address = s.grpc
	}
	v.ok(t, "client", map[string]any{"url": address})
	has := map[string]bool{}
	for _, name := range v.ok(t, "values", map[string]any{"place": place}).([]any) {
		has[name.(string)] = true
	}
	for _, one := range all {
		if has[one.Value] {
			v.all = append(v.all, one)
			delete(has, one.Value)
		}
	}
	for name := range has {
		t.Errorf("values.json does not say what becomes of %q", name)
	}
	return v
}

// ok makes a call that is to succeed.
func (v *values) ok(t *testing.T, call string, args map[string]any) any {
	t.Helper()
	answer := v.driver.call(t, call, args)
	if failed, ok := answer["error"]; ok {
		t.Fatalf("%s: %s", call, shown(failed))
	}
	return answer["ok"]
}

// enqueues puts a value into a task, and reads it again.
func (v *values) enqueues(t *testing.T, one *value, id string) {
	t.Helper()
	want := one.at(v.place, v.language)
	answer := v.driver.call(t, "put", map[string]any{"topic": v.topic, "id": id, "place": v.place, "value": one.Value})
	if failed, ok := answer["error"].(map[string]any); ok {
		if why := want.differs(nil, fmt.Sprint(failed["text"], " ", failed["reason"])); why != "" {
			t.Errorf("%s: %s", one.Value, why)
		}
		return
	}
	stored, _ := answer["ok"].(map[string]any)["id"].(string)
	got := []byte(stored)
	if v.place != "id" {
		got = v.task(t, stored).at(v.place)
	}
	if why := want.differs(got, ""); why != "" {
		t.Errorf("%s: %s", one.Value, why)
	}
}

// settles runs a handler for each value, and for some tasks that are not to suffer from them: what becomes of all is told at the same
// moment.
func (v *values) settles(t *testing.T) {
	t.Helper()
	const good = 5
	of := strconv.Itoa(len(v.all) + good)
	var tasks []any
	add := func(id, place, value string) {
		attributes := []any{}
		for _, pair := range [][2]string{{"do", "outcome"}, {"place", place}, {"value", value}, {"of", of}} {
			attributes = append(attributes, map[string]any{"key": pair[0], "value": pair[1]})
		}
		tasks = append(tasks, map[string]any{"topic": v.topic, "id": id, "attributes": attributes})
	}
	for i := range v.all {
		add(fmt.Sprintf("v-%d", i), v.place, v.all[i].Value)
	}
	for i := range good {
		add(fmt.Sprintf("good-%d", i), "result", "text")
	}
	v.rest(t, http.MethodPost, "/v1/tasks:batch", map[string]any{"tasks": tasks}, http.StatusAccepted)
	v.ok(t, "work", map[string]any{"topic": v.topic, "concurrency": len(tasks)})
	for i := range good {
		task := v.settled(t, fmt.Sprintf("good-%d", i))
		if task.State != "TASK_STATE_DONE" || len(task.Attempts) != 1 || string(task.Result) != "Grüße 😀" {
			t.Errorf("a task beside is %s after %d attempts: %s", task.State, len(task.Attempts), task.LastError)
		}
	}
	for i := range v.all {
		one, id := &v.all[i], fmt.Sprintf("v-%d", i)
		task, want := v.settled(t, id), one.at(v.place, v.language)
		if len(task.Attempts) != 1 || task.Attempts[0].Outcome == "ATTEMPT_OUTCOME_HOLD_EXPIRED" {
			t.Errorf("%s: after %d attempts, the last one %v", one.Value, len(task.Attempts), task.Attempts)
			continue
		}
		fails := v.place == "error" || v.place == "permanent"
		var got []byte
		refusal := task.LastError
		switch {
		case fails:
			got, refusal = []byte(task.LastError), ""
		case refusal != "":
		case v.place == "next id" && want.Is != nil && strings.HasPrefix(*want.Is, "~"):
			continue // the server made one, which nobody knows here
		case v.place == "next id" && want.Is != nil:
			got = []byte(v.task(t, *want.Is).ID)
		case v.place == "next":
			got = v.task(t, "next-"+id).at("payload")
		case v.place == "next attribute":
			got = v.task(t, "next-"+id).at("attribute")
		case v.place == "next key":
			got = []byte(v.task(t, "next-"+id).Fairness)
		case v.place == "result" || v.place == "once" || v.place == "name":
			got = task.Result
		}
		if why := want.differs(got, refusal); why != "" {
			t.Errorf("%s: %s", one.Value, why)
		}
		if !utf8.ValidString(task.LastError) || len(task.LastError) > 1024 {
			t.Errorf("%s: the error has %d bytes: %.100q", one.Value, len(task.LastError), task.LastError)
		}
	}
	v.driver.never(t, map[string]any{"event": "failed"})
}

// stored is a task as REST has it.
type stored struct {
	ID         string
	State      string
	Payload    []byte
	Result     []byte
	LastError  string `json:"last_error"`
	Fairness   string `json:"fairness_key"`
	Attributes []struct{ Key, Value string }
	Attempts   []struct{ Outcome string }
}

func (s stored) at(place string) []byte {
	if place == "payload" {
		return s.Payload
	}
	for _, a := range s.Attributes {
		if a.Key == "of" {
			return []byte(a.Value)
		}
	}
	return nil
}

// settled waits until a task is.
func (v *values) settled(t *testing.T, id string) stored {
	t.Helper()
	for deadline := time.Now().Add(patience); ; {
		var answer struct {
			Task    stored
			Settled bool
		}
		read(t, v.rest(t, http.MethodGet, v.path(id)+":wait?wait_ms=10000", nil, http.StatusOK), &answer)
		if answer.Settled {
			return answer.Task
		}
		if time.Now().After(deadline) {
			t.Fatalf("task %s is %s; the worker told %s", id, answer.Task.State, shown(v.driver.told))
		}
	}
}

// task waits until a task is there: one that an ack enqueued may come later.
func (v *values) task(t *testing.T, id string) stored {
	t.Helper()
	var answer struct{ Task stored }
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		text := v.rest(t, http.MethodGet, v.path(id), nil, http.StatusOK, http.StatusNotFound)
		read(t, text, &answer)
		if answer.Task.ID != "" {
			return answer.Task
		}
		if time.Now().After(deadline) {
			t.Fatalf("no task %q: %s", id, text)
		}
	}
}

func (v *values) path(id string) string {
	return "/v1/topics/" + v.topic + "/tasks/" + url.PathEscape(id)
}

// rest makes a call beside the SDK.
func (v *values) rest(t *testing.T, method, path string, body any, want ...int) []byte {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, v.server.url()+path, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if body == nil {
		r.Body = http.NoBody
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := v.server.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, status := range want {
		if answer.StatusCode == status {
			return said
		}
	}
	t.Fatalf("%s %s: %s %.300s", method, path, answer.Status, said)
	return nil
}

func read(t *testing.T, text []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%v: %.300s", err, text)
	}
}

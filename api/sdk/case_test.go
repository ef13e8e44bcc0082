//go:build linux

package sdk_test

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// scenario is one case of cases.json.
type scenario struct {
	Name string
	// Own has it played against a server of its own, with these flags beside the usual.
	Own   bool
	Flags []string
	// Secure has that server speak TLS and ask for tokens; "$ROOT" is one that may do everything.
	Secure bool
	Steps  []step
}

// step is one thing that happens in a case: exactly one of call, send, answer,
// event, never, server and signal.
type step struct {
	// Call is one of the driver, with its arguments. The topic is that of the case, unless
	// it is given.
	Call string
	With map[string]any
	// Gives is what the answer has at least, and Fails what its error has; neither is an
	// answer that is not looked at.
	Gives any
	Fails any
	// Until has the call repeated until its answer is as it should be.
	Until bool

	// Send makes a call without waiting for its answer, which a later step with Answer does.
	Send   string
	Answer bool

	// Event is what the worker tells next, after whatever else it tells.
	Event map[string]any
	// Never is what it has not told since the case began.
	Never map[string]any
	// Server is "kill" or "start".
	Server string
	// Signal is that to the driver: "INT".
	Signal string
}

func scenarios(t *testing.T) []scenario {
	t.Helper()
	file, err := os.Open("cases.json")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var all []scenario
	d := json.NewDecoder(file)
	d.DisallowUnknownFields()
	if err := d.Decode(&all); err != nil {
		t.Fatalf("cases.json: %v", err)
	}
	return all
}

// noTopic are the calls that are not about one topic.
var noTopic = map[string]bool{"client": true, "enqueue_batch": true, "list_topics": true, "describe_server": true, "request": true, "keyed_id": true}

// filled is what a step has, with the words that stand for something replaced.
func filled(value any, words *strings.Replacer) any {
	switch v := value.(type) {
	case string:
		return words.Replace(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = filled(v[i], words)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for key := range v {
			out[key] = filled(v[key], words)
		}
		return out
	}
	return value
}

// differs says where got has not what want has, or nothing. "*" is anything that is
// there, "~x" what the regular expression x matches, and null what is not there.
func differs(at string, got, want any) string {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			break
		}
		for key := range w {
			if why := differs(at+"."+key, g[key], w[key]); why != "" {
				return why
			}
		}
		return ""
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			break
		}
		for i := range w {
			if why := differs(fmt.Sprintf("%s[%d]", at, i), g[i], w[i]); why != "" {
				return why
			}
		}
		return ""
	case string:
		if w == "*" && got != nil {
			return ""
		}
		if text, ok := got.(string); ok && strings.HasPrefix(w, "~") && regexp.MustCompile(w[1:]).MatchString(text) {
			return ""
		}
	}
	if reflect.DeepEqual(got, want) {
		return ""
	}
	return fmt.Sprintf("%s is %s, want %s", strings.TrimPrefix(at, "."), shown(got), shown(want))
}

func shown(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

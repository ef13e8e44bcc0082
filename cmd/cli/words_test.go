package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
)

// What a server says in words of the wire is said in words of the command line.
func TestRefusalsNameTheFlag(t *testing.T) {
	ddq := on(t, startTestNode(t, nil))
	ddq(exitOK, "enqueue", "--topic", "mail", "--id", "a", "--delay", "1h")
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"topic", "delete", "mail"}, "the topic has tasks; --force deletes them too (TOPIC_NOT_EMPTY)"},
		{[]string{"task", "cancel", "a"}, "--or-delete deletes it (TASK_NOT_RUNNING)"},
		{[]string{"watch", "--topic", "mail"}, "keeps no log of changes: start one (ddq topic set mail --watch-retention 1h) (NOT_WATCHED)"},
		{[]string{"topic", "set", "mail", "--max-backlog", "-1"}, "topic set: --max-backlog must be 0 to"},
		{[]string{"topic", "set", "mail", "--visibility-timeout", "1ms"}, "--visibility-timeout must be 1s to 12h (OUT_OF_RANGE_FIELD)"},
		{[]string{"topic", "set", "mail", "--watch-retention", "30d"}, "--watch-retention must be 0s or 1s to 7d (OUT_OF_RANGE_FIELD)"},
		{[]string{"enqueue", "--topic", "mail", "--priority", "10"}, "enqueue: --priority must be 0 to 9"},
		{[]string{"enqueue", "--topic", "mail", "--idempotency-key", "k", "--idempotency-window", "9000d"}, "--idempotency-window must be 1ms to 366d"},
		{[]string{"enqueue", "--topic", "mail", "--delay", "-5d"}, "enqueue: --delay must not be negative"},
		{[]string{"enqueue", "--topic", "mail", "--attr", "=x"}, "--attr: the key of an attribute must have 1 to 64 bytes"},
		{[]string{"enqueue", "--topic", "b/c"}, "--topic must match"},
		{[]string{"enqueue", "--topic", "mail", "--latest", "2001-01-01T00:00:00Z"}, "--latest must not be before the due time"},
	} {
		if got := ddq(exitFailed, tc.args...); !strings.Contains(got.err, tc.want) {
			t.Errorf("ddq %s: %s\twant %s", strings.Join(tc.args, " "), got.err, tc.want)
		}
	}
}

// With -o json the reason is for programs, too.
func TestFailuresAreJSONWhenAskedFor(t *testing.T) {
	ddq := on(t, startTestNode(t, nil))
	for _, tc := range []struct {
		code int
		args []string
		want failureView
	}{
		{exitFailed, []string{"task", "get", "a"}, failureView{`no task "a" (NO_TASK)`, "ddq task get", "NOT_FOUND", "NO_TASK", ""}},
		{exitUsage, []string{"task", "list"}, failureView{Error: "--topic is required", Command: "ddq task list"}},
	} {
		got := ddq(tc.code, append(tc.args, "-o", "json")...)
		var v failureView
		err := json.Unmarshal([]byte(got.err), &v)
		if answered := tc.code == exitFailed; answered != (len(v.RequestID) == 36) {
			t.Errorf("%v: the id of the request is %q", tc.args, v.RequestID)
		}
		v.RequestID = ""
		if err != nil || v != tc.want || got.out != "" {
			t.Errorf("%v: %q, %v, want %+v", tc.args, got.err, err, tc.want)
		}
	}
	for code, want := range map[codes.Code]string{
		codes.NotFound: "NOT_FOUND", codes.InvalidArgument: "INVALID_ARGUMENT", codes.Unavailable: "UNAVAILABLE", codes.OutOfRange: "OUT_OF_RANGE",
	} {
		if got := codeName(code); got != want {
			t.Errorf("%v is %s, want %s", code, got, want)
		}
	}
}

// People are shown what a command changed; JSON has it all.
func TestChangesOfATopicAreShown(t *testing.T) {
	ddq := on(t, startTestNode(t, nil))
	ddq(exitOK, "topic", "create", "mail", "--rate", "10/s", "--over-limit", "dead_letter")
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"set", "mail", "--rate", "100/s", "--burst", "5", "--dead-retention", "30d"}, "name            mail\nversion         2\nrate            100/s, burst 5\ndead retention  30d\n"},
		{[]string{"set", "mail", "--rate", "none"}, "name     mail\nversion  3\nrate     none\n"},
		{[]string{"set", "mail", "--over-limit", "wait", "--index-attribute", "tenant"}, "name                mail\nversion             4\nindexed attributes  tenant\nover limit          wait\n"},
		{[]string{"pause", "mail"}, "topic mail is paused: delivery (version 5)\n"},
		{[]string{"resume", "mail", "--ramp", "5m"}, "topic mail is resumed, rising for 5m (version 6)\n"},
	} {
		if got := ddq(exitOK, append([]string{"topic"}, tc.args...)...); got.out != tc.want {
			t.Errorf("topic %v:\n%s\twant\n%s", tc.args, got.out, tc.want)
		}
	}
	if got := ddq(exitOK, "topic", "set", "mail", "--max-retries", "7", "-o", "json"); !strings.Contains(got.out, `"max_retries":7`) || !strings.Contains(got.out, `"shards":4`) {
		t.Errorf("as JSON: %s", got.out)
	}
}

func TestEnqueueTakesInstants(t *testing.T) {
	ddq := on(t, startTestNode(t, nil))
	ddq(exitOK, "enqueue", "--topic", "mail", "--id", "a", "--at", "2030-01-01T00:00:00Z", "--latest", "2030-01-01T00:01:00Z", "--expire-at", "2030-01-02T00:00:00Z")
	if got := ddq(exitOK, "task", "get", "a", "-o", "json").out; !strings.Contains(got, `"execute_time":"2030-01-01T00:0`) || !strings.Contains(got, `"expire_time":"2030-01-02T00:00:00.000Z"`) {
		t.Errorf("task = %s", got)
	}
	ddq(exitUsage, "enqueue", "--topic", "mail", "--slack", "1m", "--latest", "2030-01-01T00:01:00Z")
	ddq(exitUsage, "enqueue", "--topic", "mail", "--expire-at", "tomorrow")
	ddq(exitUsage, "enqueue", "--topic", "mail", "--expire-at", "2030-01-01T00:01:00Z", "--expire-after", "1h")
}

// Who limits a wait by --timeout means the wait.
func TestTimeoutOfAWait(t *testing.T) {
	ddq := on(t, startTestNode(t, nil))
	ddq(exitOK, "enqueue", "--topic", "mail", "--id", "a", "--delay", "1h")
	if got := ddq(exitFailed, "task", "wait", "a", "--timeout", "300ms"); !strings.Contains(got.err, "not settled yet: it is scheduled") {
		t.Errorf("stderr = %s", got.err)
	}
}

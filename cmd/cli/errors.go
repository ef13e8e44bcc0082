package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/pflag"
	"google.golang.org/grpc/codes"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/cmd/cli/session"
	"github.com/ddq-io/ddq/cmd/node"
)

// explain writes an error as one line for people: what was wrong, and what to
// do about it where that is known. addr is the server that was called, and flags are
// those of the command.
func explain(err error, addr string, flags *pflag.FlagSet) string {
	if hint := explainStart(err); hint != "" {
		return hint
	}
	var answer *client.Error
	switch {
	case errors.As(err, &answer):
		return explainAnswer(answer, addr, flags)
	case errors.Is(err, context.Canceled):
		return "interrupted"
	}
	return oneLine(err)
}

// explainStart says what to do when a server cannot start.
func explainStart(err error) string {
	var in *net.OpError
	switch {
	case node.InUse(err):
		return oneLine(err) + "; stop the other process or choose another directory with --data"
	case errors.Is(err, syscall.EADDRINUSE) && errors.As(err, &in):
		return fmt.Sprintf("%s is taken by another process; choose another address", in.Addr)
	}
	return ""
}

// explainAnswer says what to do about what a server answered, or did not.
func explainAnswer(e *client.Error, addr string, flags *pflag.FlagSet) string {
	text := answerText(e, flags)
	switch e.Code {
	case codes.Unavailable:
		if nobodyThere(e.Message) {
			return fmt.Sprintf("no ddq server at %s; start one with: ddq server", addr)
		}
		if e.Reason == "STORE_DOWN" { // it may be so until somebody does something
			return text + "; ddq doctor may know why"
		}
		return text + "; try again in a moment"
	case codes.DeadlineExceeded:
		return fmt.Sprintf("no answer from %s within --timeout; ddq doctor may know why", addr)
	case codes.Unimplemented:
		return fmt.Sprintf("the server at %s does not know this call: is it a ddq server of this version?", addr)
	case codes.Unknown:
		return text + "; it may have happened, and repeating it with the same id is safe"
	case codes.Canceled:
		return "interrupted"
	}
	return text
}

// answerText is a server's answer on one line, in words of the command line, with the
// reason: "--priority must be 0 to 9 (OUT_OF_RANGE_FIELD)".
func answerText(e *client.Error, flags *pflag.FlagSet) string {
	text := strings.Join(strings.Fields(e.Message), " ")
	if e.Field != "" && e.Code == codes.InvalidArgument {
		text = fieldText(e.Field, text, flags)
	}
	for _, r := range rewordings {
		if r.reason == e.Reason {
			text = strings.Replace(text, r.wire, r.commandLine, 1)
		}
	}
	if e.Reason != "" {
		text += " (" + e.Reason + ")"
	}
	return text
}

// rewordings say for a reason what the wire's words are on the command line.
var rewordings = [...]struct{ reason, wire, commandLine string }{
	{"TOPIC_NOT_EMPTY", "force deletes them too", "--force deletes them too"},
	{"TASK_NOT_RUNNING", "delete it instead, or ask with or_delete", "--or-delete deletes it"},
	{"AMBIGUOUS_ID", "name one", "name one with --topic"},
	{"NOT_WATCHED", "set its policy's watch_retention_ms (", "start one ("},
	{"NOT_INDEXED", "only those of the topic's indexed_attributes can be watched", "ddq topic set --index-attribute does that"},
}

// number matches the milliseconds in a message.
var number = regexp.MustCompile(`\b[0-9]+\b`)

// fieldText writes what is wrong with a field as what is wrong with its flag, when the
// command has one.
func fieldText(field, text string, flags *pflag.FlagSet) string {
	name, rest := field, ""
	if after, ok := strings.CutPrefix(text, field); ok {
		rest = after
	} else if after, ok := strings.CutPrefix(text, field[strings.LastIndex(field, ".")+1:]+" "); ok {
		rest = " " + after
	} else {
		rest = ": " + text
	}
	flag := flagOf(field)
	if flags == nil || flags.Lookup(flag) == nil {
		return name + rest
	}
	if strings.HasSuffix(field, "_ms") { // flags take durations
		rest = number.ReplaceAllStringFunc(rest, func(ms string) string {
			n, err := strconv.ParseInt(ms, 10, 64)
			if err != nil {
				return ms
			}
			return node.DurationText(session.Millis(n))
		})
	}
	return "--" + flag + rest
}

// flagNames are the flags that are not called after their field.
var flagNames = map[string]string{
	"execute_time": "at", "latest_time": "latest", "expire_time": "expire-at", "attributes": "attr", "filter.attributes": "attr",
	"idempotency.key": "idempotency-key", "idempotency.window_ms": "idempotency-window", "policy.indexed_attributes": "index-attribute",
	"filter.created_from_unix_ms": "created-after", "max_tasks": "max", "start_unix_ms": "from",
	"policy.rate.count": "rate", "policy.rate.period_ms": "rate", "policy.rate.burst": "burst",
	"policy.key_rate.count": "key-rate", "policy.key_rate.period_ms": "key-rate", "policy.key_rate.burst": "key-burst",
	"every.every_ms": "every", "every.from": "from", "start_time": "start", "end_time": "end", "catch_up.policy": "catch-up", "labels": "label", "calendars": "calendar", "track": "untracked",
	"audience.name": "audience", "window_ms": "spread",
	"backoff.base_ms": "backoff", "backoff.max_ms": "backoff", "backoff.jitter_percent": "backoff",
}

// flagOf is the flag for a field of a request, if there is one: policy.max_delay_ms is max-delay.
func flagOf(field string) string {
	if name, ok := flagNames[field]; ok {
		return name
	}
	field = scheduleEntry.ReplaceAllString(field, "")
	for _, prefix := range []string{"policy.", "filter.", "task.", "timetable.", "catch_up.", "audience."} {
		field = strings.TrimPrefix(field, prefix)
	}
	if name, ok := flagNames[field]; ok {
		return name
	}
	for _, unit := range []string{"_unix_ms", "_ms", "_bytes"} {
		field = strings.TrimSuffix(field, unit)
	}
	return strings.ReplaceAll(field, "_", "-")
}

// scheduleEntry matches which of the entries of a timetable is meant.
var scheduleEntry = regexp.MustCompile(`entries\[[0-9]+\]\.`)

// codeName is the name of a code as PROTOCOL.md has it, such as NOT_FOUND.
func codeName(c codes.Code) string {
	return strings.ToUpper(camel.ReplaceAllString(c.String(), "${1}_$2"))
}

// camel matches where a word of NotFound ends.
var camel = regexp.MustCompile(`([a-z])([A-Z])`)

// nobodyThere reports whether nobody listens, going by the text that grpc leaves
// of the dial error.
func nobodyThere(message string) bool {
	for _, part := range []string{"connection refused", "no such host", "no route to host", "network is unreachable", "no such file or directory"} {
		if strings.Contains(message, part) {
			return true
		}
	}
	return false
}

// oneLine is the text of err without line breaks.
func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

package cli

import (
	"strings"
	"testing"

	"github.com/ddq-io/ddq/cmd/node"
)

func TestTopicPolicyCommands(t *testing.T) {
	ddq := on(t, startTestNode(t, func(cfg *node.Config) { cfg.Actors.Topic.MaxDead = 50 }))
	has := func(got string, wants ...string) {
		t.Helper()
		for _, want := range wants {
			if !strings.Contains(got, want) {
				t.Errorf("%s lacks %s", got, want)
			}
		}
	}
	created := ddq(exitOK, "topic", "create", "mail", "--dead-retention", "720h", "--max-backlog", "2", "-o", "json")
	has(created.out, `"dead_retention_ms":2592000000`, `"max_dead":50`, `"max_backlog":2`, `"version":1`)
	ddq(exitOK, "enqueue", "--topic", "mail", "--delay", "1h", "--count", "2")
	full := ddq(exitFailed, "enqueue", "--topic", "mail", "--delay", "1h", "--timeout", "300ms")
	has(full.err, "BACKLOG_FULL")

	set := ddq(exitOK, "topic", "set", "mail", "--max-dead", "0", "--max-backlog", "3", "--if-version", "1", "-o", "json")
	has(set.out, `"max_dead":0`, `"max_backlog":3`, `"version":2`)
	has(ddq(exitFailed, "topic", "set", "mail", "--max-dead", "9", "--if-version", "1").err, "VERSION_MISMATCH", "has not version 1")
	has(ddq(exitFailed, "topic", "set", "mail", "--max-dead", "-1").err, "--max-dead must be 0 to 1000000000")
	ddq(exitOK, "enqueue", "--topic", "mail", "--delay", "1h")

	described := ddq(exitOK, "topic", "describe", "mail").out
	for row, from := range map[string]string{"max dead": "set; default 50", "max backlog": "set; default any number", "max retries": "default"} {
		if line := lineOf(described, row); !strings.HasSuffix(line, "  "+from) {
			t.Errorf("the line of %s is %q, not from %q", row, line, from)
		}
	}
	has(ddq(exitOK, "topic", "describe", "mail", "-o", "json").out, `"default_policy":{"shards":`, `"max_dead":50`)

	ddq(exitOK, "topic", "pause", "mail", "--delivery", "--enqueue")
	has(ddq(exitOK, "topic", "describe", "mail").out, "delivery, enqueue", "max backlog", "3")
	has(ddq(exitOK, "topic", "resume", "mail", "--ramp", "5m", "-o", "json").out, `"ramp_ms":300000`, `"resumed_at":"`, `"delivery_paused":false`)
	has(ddq(exitOK, "topic", "describe", "mail").out, "rising for 5m", "version")
}

// lineOf is the line of a text that begins with something.
func lineOf(text, beginning string) string {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, beginning) {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

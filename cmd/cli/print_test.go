package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/ddq-io/ddq/cmd/node"
)

// hostile sets the title of a terminal, turns the text behind it around, and is more than one line.
const hostile = "x\x1b]0;x\x07\u202e\u2066\u0085\r\nforged"

// steers returns the first character of a text that a terminal obeys instead of showing it.
func steers(text string) (rune, bool) {
	for i, r := range text {
		_, size := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError && size == 1 || r != '\n' && r != '\t' && unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return r, true
		}
	}
	return 0, false
}

// TestWhatUsersWroteDoesNotSteerATerminal: every command that shows what is at a server is run where
// all that users name and write is hostile. A command that is added is listed here as well.
func TestWhatUsersWroteDoesNotSteerATerminal(t *testing.T) {
	dir := t.TempDir()
	root := filepath.Join(dir, "root")
	n := startTestNode(t, func(cfg *node.Config) {
		cfg.Store, cfg.AuditLog = node.Memory, filepath.Join(dir, "audit.log")
		cfg.Auth = node.AuthConfig{Mode: "token", RootToken: "file:" + root}
	})
	ran := make(map[string]bool)
	ddq := func(args ...string) outcome {
		t.Helper()
		got := ddqWith(t.Context(), hostile, []string{"DDQ_ADDR=" + n.GRPCAddr()}, append(args, "--token-file", root)...)
		for _, text := range []string{got.out, got.err} {
			if r, found := steers(text); found {
				t.Errorf("ddq %q prints %U:\n%s", args, r, text)
			}
			for line := range strings.Lines(text) {
				if strings.HasPrefix(line, "forged") {
					t.Errorf("ddq %q prints a line of its own for what a user wrote:\n%s", args, text)
				}
			}
		}
		return got
	}
	done := func(args ...string) {
		t.Helper()
		if got := ddq(args...); got.code != exitOK {
			t.Fatalf("ddq %q: %s%s", args, got.out, got.err)
		}
	}
	flow := filepath.Join(dir, "flow.yaml")
	if err := os.WriteFile(flow, []byte("topic: orders\nname: \"x\\e]0;x\\a\\u202E\"\nsteps:\n  - name: charge\n    task: {topic: bank}\n  - name: ship\n    after: [charge]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	done("topic", "create", "mail", "--max-retries", "0", "--watch-retention", "1h", "--done-retention", "1h")
	done("enqueue", "--topic", "mail", "--id", "dead", "--payload", hostile, "--attr", "k\u202e="+hostile)
	// What a command prints passes as it is, and what is said of its end does not.
	failing := ddqWith(t.Context(), "", []string{"DDQ_ADDR=" + n.GRPCAddr()}, "work", "--topic", "mail", "--count", "1", "--exec", `printf 'x\033]0;x\007\342\200\256\n' >&2; exit 1`, "--token-file", root)
	if !strings.Contains(failing.err, `exit status 1: x\u001b]0;x\u0007\u202e`) {
		t.Errorf("the error of an attempt is %q", failing.err)
	}
	done("enqueue", "--topic", "mail", "--id", "done", "--payload", hostile, "--attr", "k="+hostile)
	done("work", "--topic", "mail", "--count", "1", "--exec", "cat", "--result")
	done("enqueue", "--topic", "mail", "--id", "due", "--payload", hostile, "--attr", "k="+hostile)
	done("schedule", "put", "nightly", "--topic", "mail", "--cron", "0 3 * * *", "--label", "k="+hostile, "--payload", hostile)
	done("schedule", "pause", "nightly", "--note", "x\u202e")
	done("workflow", "submit", "-f", flow, "--id", "w")
	done("workflow", "pause", "w", "--note", "x\u202e")
	done("audience", "create", "people")
	done("audience", "put", "people", "r\u202e", "--zone", "UTC", "--data", hostile)
	done("calendar", "put", "days", "--day", "2030-12-25")
	done("token", "create", "x\x1b]0;x\x07\u202e", "--grant", "producer:mail")
	done("namespace", "create", "acme")
	done("task", "delete", "--topic", "mail", "--id-prefix", "none", "--yes")

	for _, line := range [][]string{
		{"audience", "describe", "people"}, {"audience", "get", "people", "r\u202e"}, {"audience", "list"}, {"audience", "preview", "people", "--topic", "mail"},
		{"audience", "recipients", "people"}, {"audience", "runs", "people"},
		{"audit", "list"}, {"audit", "verify"}, {"binding", "list"}, {"calendar", "describe", "days"}, {"calendar", "list"},
		{"cluster", "nodes"}, {"cluster", "plan"}, {"cluster", "shards"}, {"cluster", "workers"}, {"cluster", "log-level", "nobody" + hostile},
		{"dlq", "list", "--topic", "mail"}, {"doctor"}, {"forecast"}, {"health"},
		{"namespace", "get", "acme"}, {"namespace", "list"}, {"operation", "list"}, {"operation", "get", hostile}, {"overview"},
		{"schedule", "describe", "nightly"}, {"schedule", "dry-run", "--topic", "mail"}, {"schedule", "list"}, {"schedule", "preview", "nightly"},
		{"task", "chain", "dead"}, {"task", "count", "--topic", "mail"}, {"task", "due", "--topic", "mail"},
		{"task", "get", "dead"}, {"task", "get", "done"}, {"task", "get", hostile}, {"task", "list", "--topic", "mail"}, {"task", "list", "--topic", hostile},
		{"task", "trace", "dead"}, {"task", "wait", "done"}, {"token", "list"}, {"topic", "describe", "mail"}, {"topic", "list"},
		{"watch", "--topic", "mail", "--from", "oldest", "--limit", "3"}, {"whoami"}, {"work", "--topic", "mail", "--count", "1"},
		{"workflow", "get", "w"}, {"workflow", "get", "w", "--graph"}, {"workflow", "get", "w", "--dot"}, {"workflow", "list"}, {"workflow", "results", "w", "ship"}, {"workflow", "steps", "w"},
		{"workflow", "cancel", "w"}, {"workflow", "watch", "w"}, {hostile}, {"task", "list", "--\x1b\u202e"}, {"task", "list", "--state", hostile},
	} {
		ran[strings.Join(line[:min(2, len(line))], " ")], ran[line[0]] = true, true
		if ddq(line...); line[0] != "work" {
			ddq(append(line, "-o", "json")...)
		}
	}
	for _, line := range [][]string{
		{"task", "get", "dead"}, {"dlq", "list", "--topic", "mail"}, {"schedule", "describe", "nightly"}, {"token", "list"}, {"workflow", "list"}, {"workflow", "get", "w"},
		{"audience", "recipients", "people"}, {"task", "trace", "dead"}, {"task", "get", "dead", "-o", "json"},
	} {
		if got := ddq(line...); got.code != exitOK || !strings.Contains(got.out, `\u202e`) {
			t.Errorf("ddq %q does not show what users wrote: %s%s", line, got.out, got.err)
		}
	}

	// Those that change something, or speak of no server, print what they were given by the same means.
	others := " server demo enqueue outbox version completion help bench certs keyring encryption "
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
		path := strings.TrimPrefix(cmd.CommandPath(), "ddq ")
		first, last, _ := strings.Cut(path, " ")
		changes := " create put delete remove import cancel-run cancel set pause resume purge drain undrain release reshard requeue reencrypt rotate stop watch apply backfill trigger promote reschedule update revoke root retry signal skip submit "
		if !cmd.HasSubCommands() && !ran[path] && !strings.Contains(others, " "+first+" ") && !strings.Contains(changes, " "+last+" ") {
			t.Errorf("ddq %s is not run here", path)
		}
	}
	walk(rootCommand(newCLI(Streams{})))
}

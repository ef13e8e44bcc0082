package cli

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
)

// outcome is what a run of ddq leaves behind.
type outcome struct {
	code     int
	out, err string
}

// ddq runs one command line with nothing on stdin.
func ddq(t *testing.T, args ...string) outcome {
	t.Helper()
	return ddqWith(t.Context(), "", nil, args...)
}

func ddqWith(ctx context.Context, stdin string, environ []string, args ...string) outcome {
	var out, errs bytes.Buffer
	env := append([]string{"PATH=" + os.Getenv("PATH")}, environ...)
	code := Run(ctx, Streams{In: strings.NewReader(stdin), Out: &out, Err: &errs, Environ: env}, args)
	return outcome{code, out.String(), errs.String()}
}

func TestWrongUsageExitsTwo(t *testing.T) {
	for _, args := range [][]string{
		{},
		{"bogus"},
		{"task"},
		{"task", "get"},
		{"task", "get", "a", "b"},
		{"task", "bogus"},
		{"task", "list"},
		{"task", "list", "--topic", "t", "--state", "lost"},
		{"task", "reschedule", "a"},
		{"task", "reschedule", "a", "--delay", "1s", "--at", "2030-01-01T00:00:00Z"},
		{"task", "update", "a"},
		{"task", "update", "a", "--payload", "x", "--payload-file", "y"},
		{"task", "update", "a", "--expire-after", "1h", "--no-expiry"},
		{"task", "update", "a", "--expire-at", "tomorrow"},
		{"task", "promote"},
		{"task", "delete"},
		{"task", "delete", "a", "--id-prefix", "b"},
		{"task", "delete", "--id-prefix", "b"},
		{"task", "delete", "a", "--dry-run"},
		{"task", "delete", "--topic", "t", "--id-prefix", "b"},
		{"task", "reschedule", "a", "--shift", "1h"},
		{"task", "reschedule", "--topic", "t", "--id-prefix", "b", "--yes"},
		{"task", "count"},
		{"task", "due"},
		{"task", "list", "--topic", "t", "--due-before", "tomorrow"},
		{"enqueue"},
		{"enqueue", "--topic"},
		{"enqueue", "--topic", "t", "--bogus"},
		{"enqueue", "--topic", "t", "--delay", "5"},
		{"enqueue", "--topic", "t", "--at", "tomorrow"},
		{"enqueue", "--topic", "t", "--delay", "1s", "--at", "2030-01-01T00:00:00Z"},
		{"enqueue", "--topic", "t", "--payload", "x", "--payload-file", "y"},
		{"enqueue", "--topic", "t", "--count", "0"},
		{"enqueue", "--topic", "t", "--backoff", "never"},
		{"work"},
		{"work", "--topic", "t", "--concurrency", "0"},
		{"topic", "set", "t"},
		{"topic", "purge", "t"},
		{"topic", "delete", "t", "--force"},
		{"dlq", "list"},
		{"dlq", "list", "--topic", "t", "--reason", "boredom"},
		{"dlq", "list", "--topic", "t", "--before", "yesterday"},
		{"dlq", "requeue", "--topic", "t"},
		{"dlq", "requeue", "--topic", "t", "--all", "id"},
		{"dlq", "delete", "--topic", "t", "--all"},
		{"server", "extra"},
		{"server", "--grpc-addr", "0.0.0.0:0"},
		{"server", "--config", "nowhere.yaml"},
		{"server", "--log-level", "loud"},
		{"demo", "--for", "1ms"},
		{"version", "-o", "xml"},
		{"version", "--timeout", "0s"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			got := ddq(t, args...)
			if got.code != exitUsage {
				t.Errorf("exit code = %d, want %d", got.code, exitUsage)
			}
			if got.out != "" || !strings.Contains(got.err, "--help'") || strings.Count(got.err, "\n") != 2 {
				t.Errorf("stdout %q, stderr %q; want two lines on stderr with a hint", got.out, got.err)
			}
		})
	}
}

func TestArgumentOfACommandWithoutSaysWhichFlagIsMeant(t *testing.T) {
	for want, args := range map[string][]string{
		"ddq enqueue: takes no argument: name the topic with --topic mail\n": {"enqueue", "mail"},
		"ddq work: takes no argument, not \"hi\"\n":                          {"work", "--topic", "mail", "hi"},
		"ddq version: takes no argument, not \"x\"\n":                        {"version", "x"},
	} {
		if got := ddq(t, args...); got.code != exitUsage || !strings.HasPrefix(got.err, want) {
			t.Errorf("%v: exit code %d, stderr %q, want %q", args, got.code, got.err, want)
		}
	}
}

func TestNoServerIsOneLine(t *testing.T) {
	for _, args := range [][]string{
		{"enqueue", "--topic", "t"},
		{"work", "--topic", "t"},
		{"task", "get", "a"},
		{"topic", "list"},
		{"dlq", "list", "--topic", "t"},
	} {
		t.Run(args[0], func(t *testing.T) {
			got := ddqWith(t.Context(), "", []string{"DDQ_ADDR=127.0.0.1:1"}, args...)
			if got.code != exitFailed || got.out != "" {
				t.Errorf("exit code %d, stdout %q; want 1 and nothing", got.code, got.out)
			}
			if want := "no ddq server at 127.0.0.1:1; start one with: ddq server\n"; !strings.HasSuffix(got.err, want) || strings.Count(got.err, "\n") != 1 {
				t.Errorf("stderr = %q, want one line that ends in %q", got.err, want)
			}
		})
	}
}

func TestHelpAndCompletionSucceed(t *testing.T) {
	for _, args := range [][]string{{"help"}, {"--help"}, {"server", "--help"}, {"completion", "bash"}} {
		if got := ddq(t, args...); got.code != exitOK || got.out == "" || got.err != "" {
			t.Errorf("%v: exit code %d, stderr %q", args, got.code, got.err)
		}
	}
}

func TestVersionAsJSON(t *testing.T) {
	got := ddq(t, "version", "-o", "json")
	if got.code != exitOK || strings.Count(got.out, "\n") != 1 {
		t.Fatalf("got %+v, want one line", got)
	}
	for _, field := range []string{`"version":`, `"commit":`, `"go":"go1.`, `"os_arch":`} {
		if !strings.Contains(got.out, field) {
			t.Errorf("%s lacks %s", got.out, field)
		}
	}
}

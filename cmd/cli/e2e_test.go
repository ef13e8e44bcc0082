//go:build unix

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/cmd/node"
)

// startTestNode runs a server in this process, on the embedded store unless
// change says otherwise, until the test ends.
func startTestNode(t *testing.T, change func(*node.Config)) *node.Node {
	t.Helper()
	cfg := &node.Config{
		Store: node.Embedded, Data: filepath.Join(t.TempDir(), "data"),
		GRPCAddr: "127.0.0.1:0", HTTPAddr: node.Off, ShutdownGrace: 10 * time.Second,
	}
	if change != nil {
		change(cfg)
	}
	n, err := node.Start(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Stop(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// on returns a runner of command lines against n that fails the test unless
// they exit with code.
func on(t *testing.T, n *node.Node) func(code int, args ...string) outcome {
	return func(code int, args ...string) outcome {
		t.Helper()
		got := ddqWith(t.Context(), "from stdin", []string{"DDQ_ADDR=" + n.GRPCAddr()}, args...)
		if got.code != code {
			t.Fatalf("ddq %s: exit code %d, want %d\nstdout: %s\nstderr: %s", strings.Join(args, " "), got.code, code, got.out, got.err)
		}
		return got
	}
}

func TestEnqueueWorkGone(t *testing.T) {
	ddq := on(t, startTestNode(t, nil))
	receipt := ddq(exitOK, "enqueue", "--topic", "mail", "--id", "a", "--delay", "100ms", "--payload", "hello", "--attr", "tenant=acme", "-o", "json")
	if !strings.HasPrefix(receipt.out, `{"topic":"mail","id":"a","execute_time":"`) {
		t.Errorf("receipt = %s", receipt.out)
	}
	if again := ddq(exitOK, "enqueue", "--topic", "mail", "--id", "a", "--delay", "100ms", "--payload", "hello", "--attr", "tenant=acme"); !strings.Contains(again.out, "enqueued before") {
		t.Errorf("the same enqueue again: %s", again.out)
	}

	got := ddq(exitOK, "work", "--topic", "mail", "--count", "1", "--exec", `cat; echo " $DDQ_TASK_ID $DDQ_TOPIC $DDQ_ATTEMPT $DDQ_ATTR_TENANT"`)
	if want := "hello a mail 1 acme\n"; got.out != want {
		t.Errorf("the command wrote %q, want %q", got.out, want)
	}
	if gone := ddq(exitFailed, "task", "get", "a"); strings.Count(gone.err, "\n") != 1 || !strings.Contains(gone.err, "NO_TASK") {
		t.Errorf("stderr = %q, want one line with the reason", gone.err)
	}
}

func TestWorkPrintsTasks(t *testing.T) {
	ddq := on(t, startTestNode(t, nil))
	ddq(exitOK, "enqueue", "--topic", "mail", "--payload-file", "-", "--count", "3")
	got := ddq(exitOK, "work", "--topic", "mail", "--count", "3", "--concurrency", "2", "-o", "json")
	lines := strings.Split(strings.TrimSpace(got.out), "\n")
	if len(lines) != 3 {
		t.Fatalf("%d lines, want 3:\n%s", len(lines), got.out)
	}
	for _, line := range lines {
		var v workView
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatal(err)
		}
		if v.Topic != "mail" || v.Attempt != 1 || *v.Payload != "from stdin" || v.LateMs < 0 {
			t.Errorf("line = %s", line)
		}
	}
}

func TestWorkTakesNoMoreThanCount(t *testing.T) {
	ddq := on(t, startTestNode(t, nil))
	ddq(exitOK, "enqueue", "--topic", "mail", "--count", "5")
	got := ddq(exitOK, "work", "--topic", "mail", "--count", "2", "--concurrency", "4")
	if n := strings.Count(got.out, "\n"); n != 2 {
		t.Errorf("%d tasks, want 2:\n%s", n, got.out)
	}
	await(t, "3 ready tasks", func() bool { // the server frees what was on its way
		left := ddq(exitOK, "task", "list", "--topic", "mail", "-o", "json")
		if strings.Contains(left.out, `"retry_count":1`) {
			t.Fatalf("a task that was given back lost an attempt:\n%s", left.out)
		}
		return strings.Count(left.out, `"state":"ready"`) == 3
	})
}

func TestFailingCommandEndsInDeadLetters(t *testing.T) {
	ddq := on(t, startTestNode(t, nil))
	ddq(exitOK, "topic", "create", "mail", "--max-retries", "1", "--backoff", "fixed,base=10ms", "--shards", "2")
	ddq(exitOK, "enqueue", "--topic", "mail", "--id", "a")
	failed := ddq(exitOK, "work", "--topic", "mail", "--count", "2", "--exec", `echo "no route" >&2; exit 7`)
	if !strings.Contains(failed.err, "task a, attempt 2: exit status 7: no route\n") {
		t.Errorf("stderr = %s", failed.err)
	}

	list := ddq(exitOK, "dlq", "list", "--topic", "mail", "--reason", "max_retries", "--error-contains", "route", "--after", "1h", "-o", "json")
	var dead client.Snapshot
	if err := json.Unmarshal([]byte(list.out), &dead); err != nil {
		t.Fatalf("%v: %s", err, list.out)
	}
	if dead.ID != "a" || dead.State != client.StateDead || dead.DeadReason != client.DeadReasonMaxRetries || dead.LastError != "exit status 7: no route" || dead.RetryCount != 1 {
		t.Errorf("dead letter = %+v", dead)
	}
	if none := ddq(exitOK, "dlq", "list", "--topic", "mail", "--reason", "expired"); none.out != "" {
		t.Errorf("the filter lets through %s", none.out)
	}

	for _, what := range []string{"requeue", "delete"} {
		if got := ddq(exitOK, "dlq", what, "--topic", "mail", "--error-contains", "route", "--dry-run").out; got != "1 dead letters match, of 1 that were examined\n" {
			t.Errorf("a dry run of %s says %q", what, got)
		}
	}
	if got := ddq(exitOK, "dlq", "delete", "--topic", "mail", "--all", "--dry-run", "-o", "json").out; !strings.Contains(got, `"dry_run":true,"matched":1,"examined":1,"capped":false`) {
		t.Errorf("a dry run is %s", got)
	}
	ddq(exitUsage, "dlq", "requeue", "--topic", "mail", "--dry-run", "a")
	ddq(exitOK, "dlq", "requeue", "--topic", "mail", "a")
	ddq(exitOK, "work", "--topic", "mail", "--count", "1", "--exec", "exit 1")
	ddq(exitOK, "work", "--topic", "mail", "--count", "1", "--exec", "exit 1")
	missing := ddq(exitFailed, "dlq", "delete", "--topic", "mail", "--yes", "a", "b", "-o", "json")
	if want := `{"topic":"mail","deleted":1,"not_found":["b"]}` + "\n"; missing.out != want {
		t.Errorf("stdout = %s, want %s", missing.out, want)
	}
}

func TestTopicAndTaskCommands(t *testing.T) {
	ddq := on(t, startTestNode(t, nil))
	created := ddq(exitOK, "topic", "create", "mail", "--shards", "8", "--visibility-timeout", "1m", "--backoff", "quadratic,base=2s,max=1h", "-o", "json")
	for _, want := range []string{`"shards":8`, `"visibility_timeout_ms":60000`, `"backoff":{"kind":"quadratic","base_ms":2000,"max_ms":3600000,"jitter_percent":0}`} {
		if !strings.Contains(created.out, want) {
			t.Errorf("%s lacks %s", created.out, want)
		}
	}
	if twice := ddq(exitFailed, "topic", "create", "mail"); strings.Count(twice.err, "\n") != 1 {
		t.Errorf("stderr = %q, want one line", twice.err)
	}
	if set := ddq(exitOK, "topic", "set", "mail", "--max-retries", "0", "-o", "json"); !strings.Contains(set.out, `"max_retries":0`) || !strings.Contains(set.out, `"shards":8`) {
		t.Errorf("topic set = %s", set.out)
	}

	ddq(exitOK, "topic", "pause", "mail", "--enqueue")
	if refused := ddq(exitFailed, "enqueue", "--topic", "mail"); strings.Count(refused.err, "\n") != 1 {
		t.Errorf("stderr = %q, want one line", refused.err)
	}
	if resumed := ddq(exitOK, "topic", "resume", "mail", "-o", "json"); !strings.Contains(resumed.out, `"enqueue_paused":false`) {
		t.Errorf("topic resume = %s", resumed.out)
	}

	ddq(exitOK, "enqueue", "--topic", "mail", "--id", "n", "--count", "3", "--at", "2030-01-01T00:00:00.5Z")
	if got := ddq(exitOK, "task", "get", "n-1", "-o", "json"); !strings.Contains(got.out, `"state":"scheduled","execute_time":"2030-01-01T00:00:00.500Z"`) {
		t.Errorf("task get = %s", got.out)
	}
	if got := ddq(exitOK, "task", "reschedule", "n-1", "--at", "2029-01-01T00:00:00Z", "-o", "json"); got.out != `{"topic":"mail","id":"n-1","execute_time":"2029-01-01T00:00:00.000Z","version":2}`+"\n" {
		t.Errorf("task reschedule = %s", got.out)
	}
	if got := ddq(exitOK, "task", "update", "n-1", "--payload", "other", "--attr", "k=v", "--delay", "2h", "--if-version", "2", "-o", "json"); !strings.HasSuffix(got.out, `"version":3}`+"\n") {
		t.Errorf("task update = %s", got.out)
	}
	if stale := ddq(exitFailed, "task", "promote", "n-1", "--if-version", "2"); strings.Count(stale.err, "\n") != 1 || !strings.Contains(stale.err, "VERSION_MISMATCH") {
		t.Errorf("stderr = %q, want one line with the reason", stale.err)
	}
	ddq(exitOK, "task", "promote", "n-1")
	if got := ddq(exitOK, "task", "get", "n-1", "-o", "json"); !strings.Contains(got.out, `"payload":"other","attributes":{"k":"v"}`) || !strings.Contains(got.out, `"state":"ready"`) || !strings.Contains(got.out, `"version":4`) {
		t.Errorf("task get = %s", got.out)
	}
	ddq(exitOK, "task", "delete", "n-1")
	if got := ddq(exitOK, "topic", "describe", "mail", "-o", "json"); !strings.Contains(got.out, `"depth":{"scheduled":2,"ready":0,`) {
		t.Errorf("topic describe = %s", got.out)
	}
	ddq(exitFailed, "topic", "delete", "mail")
	if got := ddq(exitOK, "topic", "purge", "mail", "--yes", "-o", "json"); got.out != `{"name":"mail","deleted":2}`+"\n" {
		t.Errorf("topic purge = %s", got.out)
	}
	ddq(exitOK, "topic", "delete", "mail")
	if got := ddq(exitOK, "topic", "list"); got.out != "" || !strings.Contains(got.err, "no topics") {
		t.Errorf("topic list = %+v", got)
	}
}

func TestFindAndChangeManyTasks(t *testing.T) {
	ddq := on(t, startTestNode(t, nil))
	ddq(exitOK, "enqueue", "--topic", "mail", "--id", "n", "--count", "12", "--delay", "1h", "--attr", "tenant=acme")
	ddq(exitOK, "enqueue", "--topic", "mail", "--id", "other", "--delay", "2h", "--attr", "tenant=tiny")
	for _, c := range []struct {
		want string
		args []string
	}{
		{`"scheduled":13,"ready":0,`, []string{"count"}},
		{`"scheduled":12,"ready":0,`, []string{"count", "--attr", "tenant=acme"}},
		{`"id":"other"`, []string{"list", "--due-from", "90m"}},
		{`"id":"other"`, []string{"list", "--attr-prefix", "tenant=t", "--state", "scheduled"}},
		{`"matched":3,"changed":0,"skipped":0,"capped":false,"dry_run":true`, []string{"delete", "--id-prefix", "n-1", "--dry-run"}},
		{`"matched":3,"changed":3,"skipped":0,`, []string{"delete", "--id-prefix", "n-1", "--yes"}},
		{`"matched":4,"changed":4,"skipped":0,"capped":true`, []string{"reschedule", "--attr", "tenant=acme", "--shift", "3h", "--max", "4", "--yes"}},
		{`{"from":"","count":0}`, []string{"due", "--bucket", "3h", "--buckets", "2"}},
	} {
		args := append([]string{"task", c.args[0], "--topic", "mail", "-o", "json"}, c.args[1:]...)
		if got := ddq(exitOK, args...); !strings.Contains(got.out, c.want) {
			t.Errorf("ddq %s = %s, want %s", strings.Join(args, " "), got.out, c.want)
		}
	}
	due := ddq(exitOK, "task", "due", "--topic", "mail", "--bucket", "3h", "--buckets", "1", "-o", "json").out
	if !strings.Contains(due, `"count":6}`) || !strings.Contains(due, `"count":4}`) {
		t.Errorf("task due = %s", due)
	}
}

func TestServerRefusalNamesFieldAndReason(t *testing.T) {
	ddq := on(t, startTestNode(t, nil))
	for _, args := range [][]string{
		{"topic", "create", "bad name"},
		{"enqueue", "--topic", "mail", "--delay", "-1s"},
		{"enqueue", "--topic", "mail", "--delay", "876000h"},
		{"topic", "describe", "nowhere"},
	} {
		got := ddq(exitFailed, args...)
		if strings.Count(got.err, "\n") != 1 || !strings.HasSuffix(got.err, ")\n") {
			t.Errorf("%v: stderr = %q, want one line that ends in the reason", args, got.err)
		}
	}
}

func TestInterruptLetsTheCommandFinish(t *testing.T) {
	n := startTestNode(t, nil)
	on(t, n)(exitOK, "enqueue", "--topic", "mail", "--id", "a")
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	finished := make(chan outcome, 1)
	go func() {
		finished <- ddqWith(ctx, "", []string{"DDQ_ADDR=" + n.GRPCAddr()}, "work", "--topic", "mail", "--exec", `echo up >"`+fifo+`"; cat "`+fifo+`"`)
	}()
	if up, err := os.ReadFile(fifo); err != nil || string(up) != "up\n" {
		t.Fatalf("read %q, %v", up, err)
	}
	interrupt()
	if err := os.WriteFile(fifo, []byte("done\n"), 0); err != nil {
		t.Fatal(err)
	}
	if got := <-finished; got.code != exitOK || got.out != "done\n" {
		t.Errorf("got %+v, want the command's output and exit code 0", got)
	}
	on(t, n)(exitFailed, "task", "get", "a")
}

func TestOperatorsPort(t *testing.T) {
	n := startTestNode(t, func(cfg *node.Config) { cfg.HTTPAddr, cfg.PprofAddr = "127.0.0.1:0", "127.0.0.1:0" })
	on(t, n)(exitOK, "enqueue", "--topic", "mail")
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	for path, want := range map[string]string{"/metrics": `ddq_build_info{commit=`, "/healthz": "ok", "/readyz": "ready"} {
		reply, err := (&http.Client{Transport: transport}).Get("http://" + n.HTTPAddr() + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(reply.Body)
		reply.Body.Close()
		if err != nil || reply.StatusCode != http.StatusOK || !bytes.Contains(body, []byte(want)) {
			t.Errorf("%s: %s, %v, %.80q; want %q", path, reply.Status, err, body, want)
		}
	}
}

func TestDoctorOnAHealthyServer(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	n := startTestNode(t, func(cfg *node.Config) { cfg.Data = data })
	got := on(t, n)(exitOK, "doctor", "--data", data, "-o", "json")
	for _, want := range []string{`{"check":"configuration","status":"ok"`, `in use by another process`, `{"check":"server","status":"ok"`, `{"check":"clock","status":"ok"`} {
		if !strings.Contains(got.out, want) {
			t.Errorf("%s\nlacks %s", got.out, want)
		}
	}
}

func TestDoctorFindsWhatIsWrong(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		args []string
		want string
	}{
		{"setting", []string{"--no-server", "--config", "nowhere.yaml"}, "nowhere.yaml"},
		{"value", []string{"--no-server", "--shards", "70000"}, "--shards must be 1 to 256, not 70000"},
		{"listener", []string{"--no-server", "--grpc-addr", "0.0.0.0:1"}, "other machines could reach it"},
		{"node identity", []string{"--no-server", "--auth", "token", "--node-identity", "spiffe://prod/ddq/"}, "--node-identity needs --tls-client-auth"},
		{"data directory", []string{"--no-server", "--data", file}, "is no directory"},
		{"redis", []string{"--no-server", "--store", "redis://127.0.0.1:1"}, "127.0.0.1:1"},
		{"server", []string{"--addr", "127.0.0.1:1", "--data", filepath.Join(t.TempDir(), "new")}, "start one with: ddq server"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := ddq(t, append([]string{"doctor", "-o", "json"}, tc.args...)...)
			if got.code != exitFailed || got.err != "" || !strings.Contains(got.out, `"status":"wrong"`) || !strings.Contains(got.out, tc.want) {
				t.Errorf("got %+v, want a finding with %q and exit code 1", got, tc.want)
			}
		})
	}
}

func TestDoctorLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	if got := ddq(t, "doctor", "--no-server", "--data", filepath.Join(dir, "a", "b")); got.code != exitOK {
		t.Errorf("got %+v", got)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("doctor made %v, %v", entries, err)
	}
}

func TestDemoStopsByItself(t *testing.T) {
	got := ddq(t, "demo", "--for", "2s", "--rate", "100", "-o", "json")
	if got.code != exitOK {
		t.Fatalf("got %+v", got)
	}
	lines := strings.Split(strings.TrimSpace(got.out), "\n")
	var last struct {
		Summary bool
		tally
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil {
		t.Fatal(err)
	}
	if len(lines) < 2 || !last.Summary || last.Fired == 0 || last.Fired != last.Scheduled || last.Early != 0 {
		t.Errorf("last line %s", lines[len(lines)-1])
	}
}

func TestDemoStopsOnInterrupt(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	seen := writerFunc(func(p []byte) (int, error) {
		interrupt()
		return len(p), nil
	})
	code := Run(ctx, Streams{In: strings.NewReader(""), Out: seen, Err: io.Discard}, []string{"demo", "--for", "1h"})
	if code != exitOK {
		t.Errorf("exit code %d, want 0", code)
	}
}

func TestNothingIsLeftRunning(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Run("node", func(t *testing.T) {
		ddq := on(t, startTestNode(t, nil))
		ddq(exitOK, "enqueue", "--topic", "mail")
		ddq(exitOK, "work", "--topic", "mail", "--count", "1")
	})
	goleak.VerifyNone(t, before)
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// await waits for up to a minute until something is so.
func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited a minute for %s", what)
		}
	}
}

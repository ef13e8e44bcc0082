//go:build unix

package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ddq-io/ddq/api/client"
)

func TestResultIsWaitedFor(t *testing.T) {
	n := startTestNode(t, nil)
	ddq := on(t, n)
	ddq(exitOK, "topic", "create", "mail", "--done-retention", "1h")
	ddq(exitOK, "enqueue", "--topic", "mail", "--id", "a", "--payload", "6 7")
	if soon := ddq(exitFailed, "task", "wait", "a", "--for", "10ms"); !strings.Contains(soon.err, "not settled yet") || !strings.Contains(soon.out, "ready") {
		t.Errorf("a short wait: %+v", soon)
	}
	working := make(chan outcome, 1)
	go func() {
		working <- ddqWith(t.Context(), "", []string{"DDQ_ADDR=" + n.GRPCAddr()}, "work", "--topic", "mail", "--count", "1", "--result", "--exec", `read x y; printf '%s\000' $((x * y))`)
	}()
	got := ddq(exitOK, "task", "wait", "a", "--for", "1m", "-o", "json")
	var v client.Snapshot
	if err := json.Unmarshal([]byte(got.out), &v); err != nil {
		t.Fatal(err)
	}
	if v.State != client.StateDone || string(v.Result) != "42\x00" || len(v.Attempts) != 1 || v.Attempts[0].Outcome != client.AttemptAcked || v.Attempts[0].Node == "" {
		t.Errorf("waited for %s", got.out)
	}
	if w := <-working; w.code != exitOK || w.out != "" {
		t.Errorf("work: %+v", w)
	}
	if seen := ddq(exitOK, "task", "get", "a"); !strings.Contains(seen.out, "attempt 1") || !strings.Contains(seen.out, "acked") || !strings.Contains(seen.out, "result") {
		t.Errorf("stdout = %s", seen.out)
	}
	ddq(exitUsage, "work", "--topic", "mail", "--result")
	if gone := ddq(exitFailed, "task", "wait", "b"); !strings.Contains(gone.err, "NO_TASK") {
		t.Errorf("stderr = %s", gone.err)
	}
}

func TestRunningTaskIsCancelled(t *testing.T) {
	n := startTestNode(t, nil)
	ddq := on(t, n)
	ddq(exitOK, "enqueue", "--topic", "mail", "--id", "a")
	if pending := ddq(exitFailed, "task", "cancel", "a"); !strings.Contains(pending.err, "TASK_NOT_RUNNING") {
		t.Errorf("stderr = %s", pending.err)
	}
	working := make(chan outcome, 1)
	go func() {
		working <- ddqWith(t.Context(), "", []string{"DDQ_ADDR=" + n.GRPCAddr()}, "work", "--topic", "mail", "--count", "1", "--exec", "sleep 600")
	}()
	await(t, "a running task", func() bool { return strings.Contains(ddq(exitOK, "task", "get", "a").out, "running") })
	if got := ddq(exitOK, "task", "cancel", "a", "--wait", "1m", "-o", "json"); got.out != `{"topic":"mail","id":"a","outcome":"confirmed","state":"dead"}`+"\n" {
		t.Errorf("stdout = %s", got.out)
	}
	<-working
	if got := ddq(exitOK, "task", "get", "a"); !strings.Contains(got.out, "cancelled") || strings.Contains(got.out, "\nretries  1") {
		t.Errorf("stdout = %s", got.out)
	}
	if got := ddq(exitOK, "dlq", "list", "--topic", "mail", "--reason", "cancelled", "-o", "json"); !strings.Contains(got.out, `"id":"a"`) {
		t.Errorf("dlq list = %s", got.out)
	}
	if late := ddq(exitOK, "task", "cancel", "a"); !strings.Contains(late.out, "too late: it is dead") {
		t.Errorf("stdout = %s", late.out)
	}
	if got := ddq(exitOK, "dlq", "delete", "--topic", "mail", "--reason", "cancelled", "--yes"); got.out != "1 dead letters deleted\n" {
		t.Errorf("dlq delete = %s", got.out)
	}
	ddq(exitOK, "enqueue", "--topic", "mail", "--id", "b", "--delay", "1h")
	if got := ddq(exitOK, "task", "cancel", "b", "--or-delete"); !strings.Contains(got.out, "deleted") {
		t.Errorf("stdout = %s", got.out)
	}
}

func TestLongOutputIsNoResult(t *testing.T) {
	n := startTestNode(t, nil)
	ddq := on(t, n)
	ddq(exitOK, "enqueue", "--topic", "mail", "--id", "a", "--max-retries", "0")
	ddq(exitOK, "work", "--topic", "mail", "--count", "1", "--result", "--exec", "head -c 300000 /dev/zero")
	if got := ddq(exitOK, "task", "wait", "a"); !strings.Contains(got.out, "dead") || !strings.Contains(got.out, "too long for a result") {
		t.Errorf("stdout = %s", got.out)
	}
}

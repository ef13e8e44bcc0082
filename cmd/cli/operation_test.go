//go:build unix

package cli

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestOperationCommands has a node delete and move many tasks, and stops it.
func TestOperationCommands(t *testing.T) {
	ddq := on(t, startTestNode(t, nil))
	started := func(args ...string) string {
		t.Helper()
		var v struct{ ID string }
		if err := json.Unmarshal([]byte(ddq(exitOK, append(args, "--topic", "mail", "--background", "-o", "json")...).out), &v); err != nil {
			t.Fatal(err)
		}
		return v.ID
	}
	ddq(exitOK, "enqueue", "--topic", "mail", "--delay", "1h", "--count", "30", "--attr", "tenant=acme")
	ddq(exitOK, "enqueue", "--topic", "mail", "--delay", "1h", "--id", "other", "--attr", "tenant=tiny")

	id := started("task", "reschedule", "--attr", "tenant=acme", "--shift", "1h", "--yes")
	if end := ddq(exitOK, "operation", "watch", id, "--topic", "mail").out; !strings.Contains(end, "30 of 30, 0 skipped") {
		t.Errorf("the move ended as %s", end)
	}
	slow := started("task", "delete", "--attr", "tenant=acme", "--rate", "1", "--yes")
	ddq(exitOK, "operation", "stop", slow, "--topic", "mail")
	if got := ddq(exitFailed, "operation", "watch", slow, "--topic", "mail"); !strings.Contains(got.out, "stopped") || !strings.Contains(got.err, "is stopped") {
		t.Errorf("the delete ended as %s%s", got.out, got.err)
	}
	none := started("dlq", "requeue", "--all")
	ddq(exitOK, "operation", "watch", none, "--topic", "mail")
	ddq(exitOK, "operation", "watch", started("dlq", "delete", "--reason", "permanent", "--yes"), "--topic", "mail")
	if list := ddq(exitOK, "operation", "list", "--topic", "mail", "--limit", "2", "-o", "json").out; strings.Count(list, "\n") != 2 || !strings.Contains(list, none) {
		t.Errorf("listed are %s", list)
	}
	for _, bad := range [][]string{
		{"task", "delete", "a", "--background"},
		{"task", "delete", "--topic", "mail", "--id-prefix", "a", "--rate", "5", "--yes"},
		{"dlq", "requeue", "a", "--topic", "mail", "--background"},
		{"operation", "get"},
	} {
		ddq(exitUsage, bad...)
	}
	if got := ddq(exitFailed, "operation", "get", "x", "--topic", "mail").err; !strings.Contains(got, "NO_OPERATION") {
		t.Errorf("no operation: %s", got)
	}
}

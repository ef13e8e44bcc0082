package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestTheLogLevelOfANodeIsSetForAWhile(t *testing.T) {
	ddq := on(t, startTestNode(t, nil))
	ddq(exitOK, "enqueue", "--topic", "mail", "--payload", "x", "--delay", "1h")
	var node struct{ Name string }
	if err := json.Unmarshal([]byte(ddq(exitOK, "cluster", "nodes", "-o", "json").out), &node); err != nil {
		t.Fatal(err)
	}
	if got := ddq(exitOK, "cluster", "log-level", node.Name, "debug", "--topic", "mail", "--for", "10s"); !strings.Contains(got.out, "logs tasks of mail at debug until") {
		t.Errorf("got %s", got.out)
	}
	var view struct {
		Level string
		Until time.Time
	}
	got := ddq(exitOK, "cluster", "log-level", node.Name, "warn", "-o", "json").out
	if err := json.Unmarshal([]byte(got), &view); err != nil || view.Level != "warn" || time.Until(view.Until) > 5*time.Minute || time.Until(view.Until) < 4*time.Minute {
		t.Errorf("got %s: %v", got, err)
	}
	if got := ddq(exitOK, "cluster", "log-level", node.Name, "configured"); !strings.Contains(got.out, "logs everything as it was configured") {
		t.Errorf("got %s", got.out)
	}
	now := ddq(exitOK, "cluster", "log-level", node.Name).out
	if want := "Node " + node.Name + " logs "; !strings.HasPrefix(now, want) || !strings.Contains(now, ", tasks of mail until ") {
		t.Errorf("it says %s", now)
	}
	for _, args := range [][]string{{"log-level", node.Name}, {"nodes"}} {
		if got := ddq(exitOK, append(append([]string{"cluster"}, args...), "-o", "json")...).out; !strings.Contains(got, `"topics":[{"topic":"mail","until":"`) {
			t.Errorf("%v: %s", args, got)
		}
	}
	ddq(exitUsage, "cluster", "log-level", node.Name, "--topic", "mail")
	ddq(exitFailed, "cluster", "log-level", "nobody")
	for _, wrong := range []struct {
		args []string
		says string
	}{
		{[]string{node.Name, "loud"}, "BAD_ENUM"},
		{[]string{"nobody", "debug"}, "NO_NODE"},
		{[]string{node.Name, "debug", "--topic", "none"}, "NO_TOPIC"},
		{[]string{node.Name, "debug", "--for", "25h"}, "OUT_OF_RANGE_FIELD"},
	} {
		if got := ddq(exitFailed, append([]string{"cluster", "log-level"}, wrong.args...)...); !strings.Contains(got.err, wrong.says) {
			t.Errorf("%q: %s", wrong.args, got.err)
		}
	}
}

//go:build unix

package cli

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestWatchCommand(t *testing.T) {
	n := startTestNode(t, nil)
	ddq := on(t, n)
	ddq(exitOK, "topic", "create", "mail", "--shards", "1")
	if got := ddq(exitFailed, "watch", "--topic", "mail"); !strings.Contains(got.err, "NOT_WATCHED") || !strings.Contains(got.err, "--watch-retention") {
		t.Errorf("a topic that keeps nothing: %s", got.err)
	}
	ddq(exitOK, "topic", "set", "mail", "--watch-retention", "1h")
	if got := ddq(exitOK, "topic", "describe", "mail"); !strings.Contains(got.out, "1h, 100000 changes a shard") {
		t.Errorf("described as %s", got.out)
	}
	ddq(exitOK, "enqueue", "--topic", "mail", "--id", "a", "--delay", "1h")
	ddq(exitOK, "task", "delete", "a")
	first := ddq(exitOK, "watch", "--topic", "mail", "--from", "oldest", "--limit", "1", "-o", "json")
	var v changeView
	if err := json.Unmarshal([]byte(first.out), &v); err != nil || v.Change != "enqueued" || v.ID != "a" || v.State != "scheduled" || v.Version != 1 || v.Position != 1 {
		t.Errorf("shown as %s", first.out)
	}
	if !strings.Contains(first.err, "go on with --cursor "+v.Cursor+"\n") {
		t.Errorf("stderr is %s, and the cursor %s", first.err, v.Cursor)
	}
	rest := ddq(exitOK, "watch", "--topic", "mail", "--cursor", v.Cursor, "--limit", "1")
	if !strings.Contains(rest.out, "  deleted           a") {
		t.Errorf("behind the cursor: %s", rest.out)
	}
	if got := ddq(exitFailed, "watch", "--topic", "mail", "--attr", "tenant=acme"); !strings.Contains(got.err, "NOT_INDEXED") {
		t.Errorf("an attribute that is not indexed: %s", got.err)
	}
	ddq(exitOK, "topic", "set", "mail", "--index-attribute", "tenant")
	for _, tenant := range []string{"other", "acme"} {
		ddq(exitOK, "enqueue", "--topic", "mail", "--id", tenant, "--delay", "1h", "--attr", "tenant="+tenant)
	}
	if got := ddq(exitOK, "watch", "--topic", "mail", "--attr", "tenant=acme", "--from", "oldest", "--limit", "1"); !strings.Contains(got.out, "enqueued          acme") || !strings.Contains(got.out, "tenant=acme") {
		t.Errorf("by attribute: %s", got.out)
	}
	for _, args := range [][]string{{"--from", "noon"}, {"--kind", "lost"}, {"--cursor", "?"}, {"--limit", "-1"}, {"--from", "oldest", "--cursor", v.Cursor}} {
		ddq(exitUsage, append([]string{"watch", "--topic", "mail"}, args...)...)
	}
	ddq(exitUsage, "watch")

	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan outcome, 1)
	go func() {
		ended <- ddqWith(ctx, "", []string{"DDQ_ADDR=" + n.GRPCAddr()}, "watch", "--topic", "mail", "--from", "oldest")
	}()
	time.AfterFunc(100*time.Millisecond, interrupt)
	if got := <-ended; got.code != exitOK {
		t.Errorf("interrupted: exit code %d, %s", got.code, got.err)
	}
}

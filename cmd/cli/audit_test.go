package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ddq-io/ddq/cmd/node"
)

func TestAuditLogsOfNodesAreListed(t *testing.T) {
	log := filepath.Join(t.TempDir(), "audit.log")
	ddq := on(t, startTestNode(t, func(cfg *node.Config) { cfg.Store, cfg.AuditLog = node.Memory, log }))
	ddq(exitOK, "topic", "create", "mail")
	ddq(exitFailed, "topic", "delete", "none", "--yes")
	type record struct {
		Method, Name, Outcome, Code, Caller string
		Altered                             bool
	}
	list := func(args ...string) (all []record) {
		t.Helper()
		for line := range strings.Lines(ddq(exitOK, append([]string{"audit", "list", "-o", "json"}, args...)...).out) {
			var r record
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				t.Fatal(err)
			}
			all = append(all, r)
		}
		return all
	}
	if all := list(); len(all) != 5 || all[0].Name != "none" || all[0].Outcome != "failed" || all[0].Code != "NO_TOPIC" || all[4].Outcome != "started" {
		t.Errorf("all are %+v", all)
	}
	if got := list("--resource", "mail", "--outcome", "done", "--after", "1h", "--caller", "local"); len(got) != 1 || got[0].Method != "/ddq.v1.AdminService/CreateTopic" {
		t.Errorf("done to mail: %+v", got)
	}
	if got := list("--limit", "2"); len(got) != 2 {
		t.Errorf("two are %+v", got)
	}
	if got := ddq(exitOK, "audit", "list", "--method", "DeleteTopic").out; !strings.Contains(got, "failed NO_TOPIC") || strings.Contains(got, "mail") {
		t.Errorf("the table is %s", got)
	}
	if got := ddq(exitOK, "audit", "list", "--before", "1h"); !strings.Contains(got.err, "No records match.") {
		t.Errorf("of before: %s%s", got.out, got.err)
	}
	for _, wrong := range [][]string{{"list", "x"}, {"list", "--outcome", "good"}, {"list", "--after", "soon"}, {"verify", "a", "b"}} {
		ddq(exitUsage, append([]string{"audit"}, wrong...)...)
	}

	if err := os.WriteFile(log, []byte(strings.Replace(read(t, log), "mail", "nail", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := list("--outcome", "refused"); len(got) != 1 || !got[0].Altered {
		t.Errorf("a line that was changed: %+v", got)
	}
	if got := ddq(exitFailed, "audit", "verify"); !strings.Contains(got.out, "broken") || !strings.Contains(got.out, "line 2") || !strings.Contains(got.err, "is broken") {
		t.Errorf("the chain is %s%s", got.out, got.err)
	}
}

func TestAuditLogsOfNodesAreVerified(t *testing.T) {
	ddq := on(t, startTestNode(t, func(cfg *node.Config) { cfg.Store, cfg.AuditLog = node.Memory, filepath.Join(t.TempDir(), "audit.log") }))
	var chain struct {
		State, Head string
		Records     int64
	}
	if got := ddq(exitOK, "audit", "verify", "-o", "json").out; json.Unmarshal([]byte(got), &chain) != nil || chain.State != "whole" || chain.Records != 1 || len(chain.Head) != 64 {
		t.Errorf("the chain is %s", got)
	}
}

func TestANodeWithoutAnAuditLogIsNamed(t *testing.T) {
	ddq := on(t, startTestNode(t, nil))
	if got := ddq(exitOK, "audit", "list"); !strings.Contains(got.err, "was started without an audit log") {
		t.Errorf("listed is %s%s", got.out, got.err)
	}
	if got := ddq(exitOK, "audit", "verify").out; !strings.Contains(got, "none") {
		t.Errorf("the chain is %s", got)
	}
}

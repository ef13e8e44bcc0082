//go:build unix

package cli

import (
	"strings"
	"testing"
)

// TestIndexedAttributeCommands declares an index for tasks that are there, waits for it, finds
// tasks by it and takes it back.
func TestIndexedAttributeCommands(t *testing.T) {
	ddq := on(t, startTestNode(t, nil))
	ddq(exitOK, "enqueue", "--topic", "mail", "--delay", "1h", "--count", "30", "--attr", "tenant=acme")
	ddq(exitOK, "enqueue", "--topic", "mail", "--delay", "1h", "--id", "other", "--attr", "tenant=tiny")
	set := ddq(exitOK, "topic", "set", "mail", "--index-attribute", "tenant", "--index-attribute", "path", "-o", "json")
	if !strings.Contains(set.out, `"indexed_attributes":["path","tenant"]`) {
		t.Errorf("set said %s", set.out)
	}
	await(t, "the index", func() bool {
		return strings.Contains(ddq(exitOK, "topic", "describe", "mail").out, "path, tenant (ready)")
	})
	list := func(filter ...string) int {
		t.Helper()
		return strings.Count(ddq(exitOK, append([]string{"task", "list", "--topic", "mail", "--limit", "0", "-o", "json"}, filter...)...).out, `"id":`)
	}
	ddq(exitOK, "enqueue", "--topic", "mail", "--delay", "1h", "--attr", "tenant=acme")
	if n := list("--attr", "tenant=acme"); n != 31 {
		t.Errorf("found %d tasks of acme, want 31", n)
	}
	if n := list("--attr-prefix", "tenant=ti"); n != 1 {
		t.Errorf("found %d tasks of ti..., want 1", n)
	}
	ddq(exitOK, "task", "delete", "--topic", "mail", "--attr", "tenant=tiny", "--yes")
	if n := list("--attr", "tenant=tiny"); n != 0 {
		t.Errorf("found %d deleted tasks", n)
	}
	if got := ddq(exitFailed, "topic", "set", "mail", "--index-attribute", "a", "--index-attribute", "a").err; !strings.Contains(got, "--index-attribute names") {
		t.Errorf("an attribute twice: %s", got)
	}
	if got := ddq(exitOK, "topic", "set", "mail", "--index-attribute", "none", "-o", "json").out; strings.Contains(got, "indexed_attributes") {
		t.Errorf("after none: %s", got)
	}
	if n := list("--attr", "tenant=acme"); n != 31 {
		t.Errorf("without the index found %d tasks of acme, want 31", n)
	}
}

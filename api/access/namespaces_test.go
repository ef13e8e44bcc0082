package access_test

import (
	"strings"
	"testing"

	"github.com/ddq-io/ddq/api/access"
)

func TestNamesOfNamespaces(t *testing.T) {
	for name, want := range map[string]string{
		"acme": "", "0": "", "a-b": "", strings.Repeat("a", 63): "",
		"": "BAD_NAME", "-a": "BAD_NAME", "A": "BAD_NAME", "a.b": "BAD_NAME", "../x": "BAD_NAME", "*": "BAD_NAME", "\u00e9": "BAD_NAME",
		strings.Repeat("a", 64): "NAME_TOO_LONG",
	} {
		got := ""
		if e := access.CheckNamespace("namespace", name); e != nil {
			got = e.Reason
		}
		if got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

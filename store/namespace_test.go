package store_test

import (
	"testing"

	"github.com/ddq-io/ddq/store"
)

func TestFullNamesAreReadBack(t *testing.T) {
	for _, c := range []struct{ namespace, name, full, flat string }{
		{store.DefaultNamespace, "mail", "mail", "mail"},
		{"acme", "mail", "acme/mail", "acme:mail"},
		{"acme", "acme", "acme/acme", "acme:acme"},
	} {
		if got := store.FullName(c.namespace, c.name); got != c.full {
			t.Errorf("%s of %s: %q, want %q", c.name, c.namespace, got, c.full)
		}
		if namespace, name := store.SplitName(c.full); namespace != c.namespace || name != c.name {
			t.Errorf("%s: %s of %s, want %s of %s", c.full, name, namespace, c.name, c.namespace)
		}
		if got := store.FlatName(c.full); got != c.flat || store.UnflatName(got) != c.full {
			t.Errorf("%s: flat %q, want %q", c.full, got, c.flat)
		}
	}
}

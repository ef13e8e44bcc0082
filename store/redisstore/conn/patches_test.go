package conn

import "testing"

func TestVersionsWithoutPatches(t *testing.T) {
	for _, tc := range []struct{ name, version, first string }{
		{"redis", "6.2.19", "6.2.20"},
		{"redis", "7.0.15", "7.2.11"}, // a line that has none
		{"redis", "7.2.4", "7.2.11"},
		{"redis", "7.2.11", ""},
		{"redis", "7.4.5", "7.4.6"},
		{"redis", "7.4.10", ""},
		{"redis", "8.0.3", "8.0.4"},
		{"redis", "8.2.1", "8.2.2"},
		{"redis", "8.2.2", ""},
		{"redis", "8.4.0", ""},
		{"redis", "9.0.0", ""},
		{"valkey", "8.1.3", "8.1.4"},
		{"valkey", "8.1.4", ""},
		{"valkey", "9.0.0", ""},
		{"redis", "", ""},
		{"redis", "unstable", ""},
		{"other", "1.0.0", ""},
	} {
		first, lacks := lacksPatch(tc.name, tc.version)
		if !lacks {
			first = ""
		}
		if first != tc.first {
			t.Errorf("%s %s lacks the patch of %q, want %q", tc.name, tc.version, first, tc.first)
		}
	}
}

package conn

import (
	"strings"
	"testing"
)

// A write of the append-only file that waited for a sync is told once, for the server
// that it was on.
func TestSlowDiskIsToldOf(t *testing.T) {
	look := func(a, b int) fleet {
		return fleet{
			{addr: "a", version: "7.0.15", policy: "noeviction", aof: true, fsync: "everysec", delayed: a},
			{addr: "b", version: "7.0.15", policy: "noeviction", aof: true, fsync: "everysec", delayed: b},
		}
	}
	last := look(3, 0)
	for _, c := range []struct {
		a, b int
		want string
	}{{3, 0, ""}, {3, 2, "b: the disk of redis does not keep up"}, {3, 2, ""}, {0, 2, ""}, {1, 2, "a: the disk of redis does not keep up"}} {
		now := look(c.a, c.b)
		now.compare(last)
		last = now
		got := strings.Join(now.info(false, wait{}).Warnings, "\n")
		if (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("after %d and %d: warnings %q, want %q", c.a, c.b, got, c.want)
		}
	}
}

package place

import (
	"testing"
)

func TestIDsOfAKeyRise(t *testing.T) {
	last := ""
	for range 10_000 {
		id := KeyedID("a")
		if id <= last || !MadeFor(id, "a") {
			t.Fatalf("%s follows %s", id, last)
		}
		last = id
	}
}

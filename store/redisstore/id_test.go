package redisstore

import (
	"cmp"
	"testing"

	"github.com/google/uuid"
)

var oddIDs = []string{
	"", "a", "ab", "0", "f", "g", "A", "order-1", "00000000", "00000000-", "00000000-0000-0000-0000-00000000000",
	"00000000-0000-0000-0000-000000000000", "00000000-0000-0000-0000-0000000000000", "00000000-0000-0000-0000-000000000000-",
	"ffffffff-ffff-ffff-ffff-ffffffffffff", "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF", "0190f3a4-7c1e-7b3a-9d52-3f6f0e8a1b2c",
	"0190f3a47c1e7b3a9d523f6f0e8a1b2c", "0190f3a4+7c1e-7b3a-9d52-3f6f0e8a1b2c", "0190f3a4-7C1e-7b3a-9d52-3f6f0e8a1b2c",
	"\x00", "\x00\x00", "\x01", "\xff", guard, "~", " ", "{", "0190f3a4-7c1e-7b3a-9d52-3f6f0e8a1b2g",
}

func FuzzID(f *testing.F) {
	for i, id := range oddIDs {
		f.Add(id, oddIDs[(i*7+3)%len(oddIDs)])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		storedA, storedB := string(appendID(nil, a)), string(appendID(nil, b))
		if got := parseID(storedA); got != a {
			t.Errorf("%q comes back as %q", a, got)
		}
		if got, want := cmp.Compare(storedA, storedB), cmp.Compare(a, b); got != want {
			t.Errorf("%q and %q compare as %d, stored as %x and %x as %d", a, b, want, storedA, storedB, got)
		}
		if storedA[0] == guard[0] {
			t.Errorf("%q is stored as %x, like the guard", a, storedA)
		}
		parseID(a) // whatever Redis holds
	})
}

func TestIDsKeepTheirOrder(t *testing.T) {
	for _, a := range oddIDs {
		for _, b := range oddIDs {
			got, want := cmp.Compare(string(appendID(nil, a)), string(appendID(nil, b))), cmp.Compare(a, b)
			if got != want {
				t.Errorf("%q and %q compare as %d, stored as %d", a, b, want, got)
			}
		}
	}
}

func TestUUIDFitsSmallAllocation(t *testing.T) {
	const most = 30 // Redis adds two bytes, and the allocator has a class of 32
	if n := len(appendID(nil, uuid.Must(uuid.NewV7()).String())); n > most {
		t.Errorf("a UUID takes %d bytes, want at most %d", n, most)
	}
}

func BenchmarkAppendID(b *testing.B) {
	id := uuid.Must(uuid.NewV7()).String()
	buf := make([]byte, 0, 64)
	for b.Loop() {
		buf = appendID(buf[:0], id)
	}
}

package position

import (
	"fmt"
	"slices"
	"testing"

	"github.com/ddq-io/ddq/actors/problem"
)

func TestBadCursorsAreRefused(t *testing.T) {
	good := Set{0: 5, 3: 1 << 40}.Cursor("mail")
	got, err := Parse("mail", Append(slices.Clone(good), 3, 7), 1<<20)
	if err != nil || got[0] != 5 || got[3] != 7 || len(got) != 2 {
		t.Errorf("read %v, %v", got, err)
	}
	bad := map[string][]byte{"empty": {}, "of another topic": Set{0: 5}.Cursor("other"), "followed by a half": append(slices.Clone(good), 1)}
	for i := range good {
		bad[fmt.Sprint("cut at ", i)] = good[:i]
		flipped := slices.Clone(good)
		flipped[i] ^= 4
		bad[fmt.Sprint("with a bit of byte ", i, " flipped")] = flipped
	}
	for what, cursor := range bad {
		if got, err := Parse("mail", cursor, 1<<20); err == nil || err.Field != "cursor" || err.Kind != problem.Invalid {
			t.Errorf("%s: read %v, %v", what, got, err)
		}
	}
}

func FuzzParseCursor(f *testing.F) {
	f.Add(Set{0: 5, 3: 1 << 40}.Cursor("mail"))
	f.Fuzz(func(t *testing.T, cursor []byte) {
		p, err := Parse("mail", cursor, 1<<20)
		if err != nil {
			return
		}
		again, err := Parse("mail", p.Cursor("mail"), 1<<20)
		if err != nil || len(again) != len(p) {
			t.Errorf("%v becomes %v: %v", p, again, err)
		}
	})
}

package position

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/ddq-io/ddq/actors/problem"
)

func TestBadCursorsAreRefused(t *testing.T) {
	set := Set{0: {5, 1_700_000_000_000_000}, 3: {Position: 1 << 40}}
	for moments, first := range map[bool]At{true: set[0], false: {Position: 5}} {
		got, err := Parse("mail", Append(set.Cursor("mail", moments), 3, 7), 1<<20)
		if err != nil || got[0] != first || got[3] != (At{Position: 7}) || len(got) != 2 {
			t.Errorf("read %v, %v", got, err)
		}
	}
	good := set.Cursor("mail", true)
	bad := map[string][]byte{"empty": {}, "of another topic": set.Cursor("other", true), "followed by a half": append(slices.Clone(good), 1)}
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
	for _, moments := range []bool{true, false} {
		f.Add(Set{0: {5, 1_700_000_000_000_000}, 3: {Position: 1 << 40}}.Cursor("mail", moments))
	}
	f.Fuzz(func(t *testing.T, cursor []byte) {
		p, err := Parse("mail", cursor, 1<<20)
		if err != nil {
			return
		}
		again, err := Parse("mail", p.Cursor("mail", true), 1<<20)
		if err != nil || !maps.Equal(again, p) {
			t.Errorf("%v becomes %v: %v", p, again, err)
		}
	})
}

package service

import (
	"fmt"
	"slices"
	"testing"

	"github.com/ddq-io/ddq/actors/problem"
)

func TestBadCursorsAreRefused(t *testing.T) {
	good := positions{0: 5, 3: 1 << 40}.cursor("mail")
	got, err := parseCursor("mail", appendPosition(slices.Clone(good), 3, 7))
	if err != nil || got[0] != 5 || got[3] != 7 || len(got) != 2 {
		t.Errorf("read %v, %v", got, err)
	}
	bad := map[string][]byte{"empty": {}, "of another topic": positions{0: 5}.cursor("other"), "followed by a half": append(slices.Clone(good), 1)}
	for i := range good {
		bad[fmt.Sprint("cut at ", i)] = good[:i]
		flipped := slices.Clone(good)
		flipped[i] ^= 4
		bad[fmt.Sprint("with a bit of byte ", i, " flipped")] = flipped
	}
	for what, cursor := range bad {
		if got, err := parseCursor("mail", cursor); err == nil || err.Field != "cursor" || err.Kind != problem.Invalid {
			t.Errorf("%s: read %v, %v", what, got, err)
		}
	}
}

func FuzzParseCursor(f *testing.F) {
	f.Add(positions{0: 5, 3: 1 << 40}.cursor("mail"))
	f.Fuzz(func(t *testing.T, cursor []byte) {
		p, err := parseCursor("mail", cursor)
		if err != nil {
			return
		}
		again, err := parseCursor("mail", p.cursor("mail"))
		if err != nil || len(again) != len(p) {
			t.Errorf("%v becomes %v: %v", p, again, err)
		}
	})
}

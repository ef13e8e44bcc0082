package node

import "testing"

func TestBackoffFlagReadsWhatItWrites(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{"fixed", "fixed,base=1s"},
		{"exponential,base=1s,max=1m,jitter=10", "exponential,base=1s,max=1m,jitter=10"},
		{"linear, base=500ms, jitter=5%", "linear,base=500ms,jitter=5"},
		{"quadratic,base=0s", "quadratic,base=0s"},
	} {
		var f, again Backoff
		if err := f.Set(tc.in); err != nil {
			t.Errorf("Set(%q): %v", tc.in, err)
			continue
		}
		if f.String() != tc.want {
			t.Errorf("Set(%q) reads %q, want %q", tc.in, f.String(), tc.want)
		}
		if err := again.Set(f.String()); err != nil || again != f {
			t.Errorf("%q does not survive writing and reading: %v, %v", tc.in, again, err)
		}
	}
}

func TestBackoffFlagRefuses(t *testing.T) {
	for _, in := range []string{"", "sometimes", "fixed,base=3", "fixed,base=-1s", "linear,jitter=101", "linear,jitter=x", "fixed,steps=3"} {
		f := Backoff{Kind: 1}
		if err := f.Set(in); err == nil {
			t.Errorf("Set(%q) is accepted as %v", in, f.String())
		}
		if f != (Backoff{Kind: 1}) {
			t.Errorf("Set(%q) failed and changed the flag", in)
		}
	}
}

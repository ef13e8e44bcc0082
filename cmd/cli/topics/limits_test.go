package topics

import "testing"

func TestRateFlagReadsWhatItWrites(t *testing.T) {
	for text, want := range map[string]string{
		"100/s": "100/s", "20/1m30s": "20/1m30s", "1000/h": "1000/h", "50/1d": "50/d", "5/250ms": "5/250ms", "10/10s": "10/10s", "none": "none",
	} {
		var r, again rateFlag
		if err := r.Set(text); err != nil || r.String() != want {
			t.Errorf("%s: %q, %v, want %q", text, r.String(), err, want)
		}
		if err := again.Set(r.String()); err != nil || again != r {
			t.Errorf("%s: %+v once more, %v, want %+v", text, again, err, r)
		}
	}
	for _, text := range []string{"", "100", "/s", "x/s", "100/", "100/x", "1.5/s"} {
		if err := new(rateFlag).Set(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

package topics

import (
	"strings"
	"testing"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// TestATopicSaysWhatHappened in words and numbers: what did not happen is left out, and a lateness of 0 is
// not.
func TestATopicSaysWhatHappened(t *testing.T) {
	busy := &ddqv1.Pulse{
		Minute: &ddqv1.PulseWindow{
			Delivered: []int64{0, 5}, PerSecond: &ddqv1.PulseRates{Delivered: 12.4, Failed: 0.002}, Lateness: &ddqv1.Lateness{P99Ms: 7, MaxMs: 61_000},
		},
		Hour: &ddqv1.PulseWindow{Delivered: []int64{1000, 235}, PerSecond: &ddqv1.PulseRates{Delivered: 0.345}},
	}
	for name, c := range map[string]struct {
		pulse     *ddqv1.Pulse
		has, none []string
	}{
		"busy":  {busy, []string{">12/s<", "&lt; 0.01/s", ">0.34/s<", ">0 ms<", ">7 ms<", ">1 min 1 s<", "delivered in the last hour: 1\u202f235", "<rect"}, []string{"NaN", "0.00/s"}},
		"quiet": {nil, []string{"enqueued", "late, p99"}, []string{"ms<", "/s<", "<rect"}},
	} {
		var out strings.Builder
		if err := pulseTable(c.pulse).Render(&out); err != nil {
			t.Fatal(err)
		}
		for _, text := range c.has {
			if !strings.Contains(out.String(), text) {
				t.Errorf("%s: no %q in\n%s", name, text, out.String())
			}
		}
		for _, text := range c.none {
			if strings.Contains(out.String(), text) {
				t.Errorf("%s: %q in\n%s", name, text, out.String())
			}
		}
	}
}

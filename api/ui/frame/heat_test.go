package frame

import (
	"math"
	"strings"
	"testing"
)

func TestNumbersAreShort(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0", 7: "7", 999: "999", 1000: "1.0k", 1234: "1.2k", 9949: "9.9k", 9950: "10k", 99_499: "99k", 999_499: "999k", 999_500: "1.0M", 1_234_567_890: "1.2G", math.MaxInt64: "9.2E",
	} {
		if got := shortText(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}

func TestMoreHasMoreColour(t *testing.T) {
	for _, most := range []int64{1, 2, 10, 1_000_000, math.MaxInt64} {
		last := 0
		for n := int64(1); n > 0 && n <= most; n *= 2 {
			level := heatLevel(n, most)
			if level < max(1, last) || level > heatLevels {
				t.Errorf("%d of %d has level %d after %d", n, most, level, last)
			}
			last = level
		}
		if got := heatLevel(most, most); got != heatLevels {
			t.Errorf("the most, %d, has level %d", most, got)
		}
	}
	if heatLevel(0, 0) != 0 || heatLevel(-5, 1) != 0 {
		t.Error("none has a colour")
	}
}

func TestCellsOfHeat(t *testing.T) {
	m := Heat{Title: "<Due>", Heads: []string{"day", "00", "01"}, Rows: []HeatRow{
		{"Monday", []HeatCell{{Count: 1200, Says: "1 200 <tasks>", Leads: Link("due", "from", "x"), Marked: true}, {Count: 3, Says: "three"}}},
		{"Tuesday", []HeatCell{{}, {Count: -1}}},
		{"Wednesday", nil},
	}}
	var text strings.Builder
	if err := m.Picture().Render(&text); err != nil {
		t.Fatal(err)
	}
	got := text.String()
	for _, want := range []string{
		`<td class="heat-9"><a href="/ui/due?from=x" title="1 200 &lt;tasks&gt;">1.2k<b>!</b></a></td>`, `<td class="heat-2" title="three">3</td>`, `<tr><th scope="row">Tuesday</th><td></td><td></td></tr>`, `<tr><th scope="row">Wednesday</th></tr>`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %s in\n%s", want, got)
		}
	}
	if strings.Contains(got, "style=") || strings.Contains(got, "<Due>") {
		t.Error(got)
	}
}

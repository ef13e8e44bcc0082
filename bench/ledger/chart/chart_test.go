package chart

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ddq-io/ddq/bench/ledger/verdict"
)

// TestChartNamesEveryRun: runs that do not fit a row go on in the next one.
func TestChartNamesEveryRun(t *testing.T) {
	long := &verdict.Verdict{Faults: []verdict.Band{{From: 10, To: 20}}, Series: []verdict.Point{{At: 0, P50: 1, Max: 3}, {At: rowSeconds - 10, P50: 0, Max: 1e9}}}
	runs := []Run{{"kill, embedded", long}, {"nothing came of it", &verdict.Verdict{}}, {"cut, redis", long}}
	if rows := layOut(runs); len(rows) != 2 || rows[1].from != seconds(long)+2 {
		t.Errorf("got %d rows", len(rows))
	}
	path := filepath.Join(t.TempDir(), "chart.svg")
	if err := Write(path, runs); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"kill, embedded", "cut, redis"} {
		if !strings.Contains(string(text), name) {
			t.Errorf("%q is not in the chart", name)
		}
	}
	if err := Write(path, runs[1:2]); err == nil {
		t.Error("a chart of nothing was written")
	}
}

package traces_test

import (
	"strings"
	"testing"

	"github.com/ddq-io/ddq/bench/traces"
)

func TestContextsAreRecordedByShare(t *testing.T) {
	if (traces.Options{}).Contexts() != nil {
		t.Error("tasks of a bench without traces have contexts")
	}
	for share, want := range map[string][2]int{"0": {0, 0}, "0.5": {300, 700}, "1": {1000, 1000}} {
		next, recorded := traces.Options{Traced: share}.Contexts(), 0
		for range 1000 {
			parent, _ := next(t.Context())
			if len(parent) != 55 || strings.Contains(parent, "-0000000000000000") {
				t.Fatalf("context %q", parent)
			}
			if strings.HasSuffix(parent, "-01") {
				recorded++
			}
		}
		if recorded < want[0] || recorded > want[1] {
			t.Errorf("share %v: %d of 1000 are recorded", share, recorded)
		}
	}
}

func TestOptionsThatCannotBe(t *testing.T) {
	for _, o := range []traces.Options{{Traced: "1.5"}, {Traced: "-0.1"}, {Traced: "NaN"}, {Traced: "all"}, {PerSecond: 1}, {PerSecond: -1, Collect: true}} {
		if o.Validate() == nil {
			t.Errorf("%+v is let through", o)
		}
	}
	if err := (traces.Options{}).Validate(); err != nil {
		t.Error(err)
	}
}

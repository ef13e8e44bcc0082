package metrics

import (
	"fmt"
	"testing"
)

func TestOnlyTheFirstNamesAreLabels(t *testing.T) {
	var n names
	for i := range 2 * mostNames {
		name := fmt.Sprint("order", i)
		want := name
		if i >= mostNames {
			want = otherName
		}
		if got := n.label(name); got != want {
			t.Fatalf("name %d is called %q, want %q", i, got, want)
		}
	}
	if got := n.label("order0"); got != "order0" {
		t.Errorf("the first name is called %q by now", got)
	}
}

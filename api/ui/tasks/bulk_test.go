package tasks

import (
	"strings"
	"testing"
)

func TestWhatIsNotCountedToTheEndIsCountedByAnOperation(t *testing.T) {
	for _, more := range []bool{true, false} {
		var text strings.Builder
		b := &bulk{topic: "mail", matched: matched{count: mostCounted, more: more}}
		if err := b.body().Render(&text); err != nil {
			t.Fatal(err)
		}
		if offered := strings.Contains(text.String(), "/dead/dryrun"); offered != more {
			t.Errorf("there is more: %t, and counting all of it is offered: %t", more, offered)
		}
	}
}

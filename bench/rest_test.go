package bench

import (
	"strings"
	"testing"
	"time"
)

func TestRestRefusesWhatCannotBe(t *testing.T) {
	fine := restOptions{Store: "embedded", Nodes: 1, Topics: 1, Shards: 1, For: time.Second}
	for _, test := range []struct {
		name, want string
		change     func(*restOptions)
	}{
		{"fine", "", func(*restOptions) {}},
		{"no topics", "--topics", func(o *restOptions) { o.Topics = 0 }},
		{"a fleet on an embedded store", "one server", func(o *restOptions) { o.Nodes = 2 }},
		{"too short", "--for", func(o *restOptions) { o.For = time.Millisecond }},
		{"unknown store", "--store", func(o *restOptions) { o.Store = "tape" }},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := fine
			test.change(&o)
			err := o.complete()
			switch {
			case test.want == "" && err != nil:
				t.Fatal(err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Fatalf("error is %v, want one about %q", err, test.want)
			}
		})
	}
}

package dispatch_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/ddq-io/ddq/actors/dispatch"
	"github.com/ddq-io/ddq/store"
)

// TestPlacesGoRound has one place at a time, and a backlog here and at two other nodes. It once went to the first of
// the others each time.
func TestPlacesGoRound(t *testing.T) {
	c, now := dispatch.NewTopic("t"), time.UnixMilli(1_700_000_000_000)
	c.Shards([]bool{true})
	c.Subscribe(now, &dispatch.Subscription{ID: 1, MaxInFlight: 1, Visibility: time.Minute})
	c.Link(now, 1, "a")
	c.Link(now, 1, "b")
	c.Demand(now, 1, "a", 100)
	c.Demand(now, 1, "b", 100)
	var es []store.Entry
	for i := range 100 {
		es = append(es, store.Entry{ID: fmt.Sprint(i), Due: store.Millis(i)})
	}
	c.Ready(now, 0, es)
	got := make(map[string]int)
	for range 60 {
		c.Grant(now, 1, 1)
		fx := c.Effects()
		for _, a := range fx.Ask {
			got[a.Node] += a.N
		}
		for _, h := range fx.Hold {
			got["here"] += len(h.Tasks)
		}
		c.Settled(now, 1, 1)
		c.Demand(now, 1, "a", 100)
		c.Demand(now, 1, "b", 100)
	}
	for _, node := range []string{"here", "a", "b"} {
		if got[node] < 15 || got[node] > 25 {
			t.Errorf("of 60 places one at a time went: %v", got)
			break
		}
	}
}

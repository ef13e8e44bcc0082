package dispatch

import (
	"time"

	"github.com/ddq-io/ddq/store"
)

// Effects are what a topic decided, to be carried out in this order. Of one kind they
// are in the order in which they were decided.
type Effects struct {
	Hold   []Hold      // to shards
	Take   []*TakeCall // what to ask the store for; one is in flight at a time
	Ask    []Ask       // to other nodes
	Void   []Void      // credit on demand that found no task
	WakeAt []time.Time // when to call Tick, each before the last
	Counts LimitCounts // what is to be counted
}

// Hold has a shard hold tasks for a subscription. Its slices are the receiver's to keep.
type Hold struct {
	Address
	Tasks      []store.Entry
	Admissions []*Admission // by task; nil: none of them is under limits
	Counted    bool         // each ends with Held, Unassign or ShardEnded
}

// Ask gives room of a subscription to tasks of another node.
type Ask struct {
	Sub  int64
	Node string
	N    int
}

// Void is credit that came to nothing.
type Void struct {
	Sub int64
	N   int
}

// fill is where effects go.
func (t *assigner) fill() *Effects { return &t.effects[t.filling] }

// Effects returns what was decided since it was called last. It is valid until the next
// call: what is decided meanwhile is kept apart.
func (t *assigner) Effects() *Effects {
	fx := t.fill()
	fx.Ask, t.core.asked = t.core.asked, fx.Ask[:0]
	fx.Void, t.core.voided = t.core.voided, fx.Void[:0]
	if g := t.limiter; g != nil {
		fx.Counts, g.counted = g.counted, LimitCounts{}
	}
	t.filling = 1 - t.filling
	t.fill().reset()
	return fx
}

// reset empties the effects for the next step.
func (fx *Effects) reset() {
	empty(&fx.Hold)
	empty(&fx.Take)
	empty(&fx.WakeAt)
}

// empty keeps the room of a slice, and nothing that was in it.
func empty[T any](s *[]T) {
	clear(*s)
	*s = (*s)[:0]
}

package metrics

import (
	"github.com/ddq-io/ddq/store"
)

// DepthOf adds up what shards have.
func DepthOf(stats []store.Stats) (d Depth) {
	for i := range stats {
		d = d.Plus(&stats[i])
	}
	return d
}

// Plus is d and what a shard has.
func (d Depth) Plus(st *store.Stats) Depth {
	d.Scheduled += st.Pending - st.Ready
	d.Ready += st.Ready
	d.Running += st.Running
	d.Done += st.Done
	d.Dead += st.Dead
	return d
}

// Depth counts the tasks of a topic by state.
type Depth struct {
	Scheduled, Ready, Running, Done, Dead int64
}

package audiences

import (
	"context"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// turns let one change of a shard after the other be made on this node: of two at once one
// would be in vain. They are shared by shards, but not by neighbours of one audience.
type turns [256]chan struct{}

func newTurns() *turns {
	t := new(turns)
	for i := range t {
		t[i] = make(chan struct{}, 1)
	}
	return t
}

// take waits for the turn of a shard, and returns what ends it.
func (t *turns) take(ctx context.Context, s store.Shard) (done func(), err error) {
	turn := t[(place.HashID(s.Topic)+uint64(s.N))%uint64(len(t))]
	select {
	case turn <- struct{}{}:
		return func() { <-turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

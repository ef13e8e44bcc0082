package audiences

import (
	"context"
	"hash/maphash"

	"github.com/ddq-io/ddq/store"
)

// turns let one change of a shard after the other be made on this node: of two at once one
// would be in vain. They are shared by shards.
type turns struct {
	seed  maphash.Seed
	taken [256]chan struct{}
}

func newTurns() *turns {
	t := &turns{seed: maphash.MakeSeed()}
	for i := range t.taken {
		t.taken[i] = make(chan struct{}, 1)
	}
	return t
}

// take waits for the turn of a shard, and returns what ends it.
func (t *turns) take(ctx context.Context, s store.Shard) (done func(), err error) {
	turn := t.taken[maphash.Comparable(t.seed, s)%uint64(len(t.taken))]
	select {
	case turn <- struct{}{}:
		return func() { <-turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

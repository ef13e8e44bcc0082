package actors

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ddq-io/ddq/store"
)

// keepingStore is a store that nobody can release a shard in while it keeps.
type keepingStore struct {
	store.Store
	keeps *atomic.Bool
}

func (k keepingStore) Release(ctx context.Context, s store.Shard, f store.Fence) error {
	if k.keeps.Load() {
		return store.ErrUnavailable
	}
	return k.Store.Release(ctx, s, f)
}

// A shard whose release failed would have no owner for as long as its last one lives.
func TestShardIsReleasedOnceTheStoreIsBack(t *testing.T) {
	fleetBubble(t, []string{"a"}, func(t *testing.T, f *testFleet) {
		var keeps atomic.Bool
		f.nodes["a"].store.Store = keepingStore{f.store, &keeps}
		w := f.work(f.nodes["a"], "mail", 100)
		keeps.Store(true)
		b := f.join("b")
		time.Sleep(time.Second)
		keeps.Store(false)
		time.Sleep(time.Second)
		w.enqueue(b, "mail", "t", 100, time.Second)
		w.run(2 * time.Second)
		w.done(20 * time.Millisecond)
		for n, owner := range f.owners("mail") {
			if want := b.View().Owner(store.Shard{Topic: "mail", N: n}); owner != want {
				t.Errorf("shard %d is owned by %s, want %s", n, owner, want)
			}
		}
	})
}

package actors

import (
	"testing"

	"github.com/ddq-io/ddq/store"
)

func TestWhatAnUndoneReshardLeaves(t *testing.T) {
	type spans = [store.MaxFormer]store.Span
	topic := func(life uint64, first, shards int, former ...store.Span) store.Topic {
		t := store.Topic{Life: life, First: first, Shards: shards}
		copy(t.Former[:], former)
		return t
	}
	for name, tt := range map[string]struct {
		was, stored store.Topic
		undone      bool
		former      spans
	}{
		"the same":                        {was: topic(1, 3, 2), stored: topic(1, 3, 2)},
		"a later one":                     {was: topic(1, 3, 2), stored: topic(1, 5, 4)},
		"the one before":                  {was: topic(1, 3, 2, store.Span{Shards: 3}), stored: topic(1, 0, 3), undone: true, former: spans{{Shards: 3}}},
		"one that was retired":            {was: topic(1, 3, 2), stored: topic(1, 0, 3), undone: true, former: spans{{Shards: 3}}},
		"two before":                      {was: topic(1, 5, 4, store.Span{First: 3, Shards: 2}), stored: topic(1, 0, 3), undone: true, former: spans{{Shards: 3}, {First: 3, Shards: 2}}},
		"created anew":                    {was: topic(1, 3, 2), stored: topic(2, 0, 3)},
		"another reshard took its number": {was: topic(1, 3, 2), stored: topic(1, 3, 4)},
		"and more of them": {
			was: topic(1, 7, 2, store.Span{First: 3, Shards: 4}), stored: topic(1, 3, 2, store.Span{Shards: 3}),
		},
		"too many": {
			was:    topic(1, 4, 1, store.Span{First: 1, Shards: 1}, store.Span{First: 2, Shards: 1}, store.Span{First: 3, Shards: 1}),
			stored: topic(1, 3, 1, store.Span{Shards: 1}, store.Span{First: 1, Shards: 1}, store.Span{First: 2, Shards: 1}),
		},
	} {
		got, undone := restored(&tt.was, &tt.stored)
		if undone != tt.undone || got.Former != tt.former || undone && got.Active() != tt.was.Active() {
			t.Errorf("%s: %v, %+v, want %v, %+v", name, undone, got.Former, tt.undone, tt.former)
		}
	}
}

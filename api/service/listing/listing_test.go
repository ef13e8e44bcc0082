package listing_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/service/listing"
	"github.com/ddq-io/ddq/store"
)

// numbers is a page of the numbers 1 to 3 of each shard, one a read.
type numbers struct {
	found []string
	size  int
	fails bool
}

func (n *numbers) Full() bool { return len(n.found) >= n.size }

func (n *numbers) Read(_ context.Context, t *store.Topic, shard store.Shard, after int) (int, bool, *problem.Error) {
	if n.fails {
		return after, false, problem.FromStore(errors.New("no store"))
	}
	if after >= 3 {
		return after, false, nil
	}
	n.found = append(n.found, fmt.Sprintf("%s/%d/%d", t.Name, shard.N, after+1))
	return after + 1, after+1 < 3, nil
}

func TestPagesGoThroughAllOnce(t *testing.T) {
	topics := []store.Topic{{Name: "a", Shards: 2}, {Name: "b", Shards: 1}, {Name: "c", Shards: 1}}
	var want []string
	for _, shard := range []string{"a/0", "a/1", "b/0", "c/0"} {
		for n := range 3 {
			want = append(want, fmt.Sprintf("%s/%d", shard, n+1))
		}
	}
	for size := 1; size <= len(want)+1; size++ {
		var all []string
		for at := (listing.Position[int]{}); ; {
			page := &numbers{size: size}
			stopped, err := listing.Fill(t.Context(), page, topics, at)
			if err != nil {
				t.Fatal(err)
			}
			if all = append(all, page.found...); !page.Full() {
				break
			}
			at = stopped
		}
		if !slices.Equal(all, want) {
			t.Errorf("pages of %d: %v", size, all)
		}
	}
}

func TestAPositionOutlivesItsTopic(t *testing.T) {
	page := &numbers{size: 2}
	at := listing.Position[int]{Topic: "b", Shard: 7, After: 2}
	if _, err := listing.Fill(t.Context(), page, []store.Topic{{Name: "a", Shards: 1}, {Name: "c", Shards: 1}}, at); err != nil {
		t.Fatal(err)
	}
	if want := []string{"c/0/1", "c/0/2"}; !slices.Equal(page.found, want) {
		t.Errorf("%v", page.found)
	}
	if _, err := listing.Fill(t.Context(), &numbers{size: 1, fails: true}, []store.Topic{{Name: "a", Shards: 1}}, listing.Position[int]{}); err == nil {
		t.Error("a read that failed was passed over")
	}
}

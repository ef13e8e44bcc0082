package access

import (
	"context"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// Dead is the role of the store for dead letters.
type Dead interface {
	RemoveDead(ctx context.Context, s store.Shard, ids []string) (store.Stamp, []store.Status, error)
}

// Discard deletes dead letters of a topic, in whichever of its shards they are, and returns those that are not
// there. To do that twice does no harm.
func Discard(ctx context.Context, st Dead, topic *store.Topic, ids []string) (missing []string, err error) {
	for _, id := range ids {
		found := false
		for _, shard := range place.Candidates(topic, id) {
			_, removed, err := st.RemoveDead(ctx, shard.For(topic.Life), []string{id})
			if err != nil {
				return nil, err
			}
			if found = removed[0] == store.OK; found {
				break
			}
		}
		if !found {
			missing = append(missing, id)
		}
	}
	return missing, nil
}

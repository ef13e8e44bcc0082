package access

import (
	"context"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// Tasks is the role of the store for the tasks of runs.
type Tasks interface {
	store.Reader
	RemoveDead(ctx context.Context, s store.Shard, ids []string) (store.Stamp, []store.Status, error)
}

// Discard deletes dead letters of runs of a schedule in a shard of a topic, and returns those that somebody has
// requeued before: what tells of that may come later. To do it twice does no harm.
func Discard(ctx context.Context, st Tasks, topic *store.Topic, home store.Shard, ids []string) (requeued []string, err error) {
	var missing []string
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
	if len(missing) == 0 {
		return nil, nil
	}
	there, err := Find(ctx, st, topic, home, missing)
	for i := range there {
		if there[i].State.Live() {
			requeued = append(requeued, there[i].ID)
		}
	}
	return requeued, err
}

// Find looks up tasks of runs of a schedule, and those that are not in its shard in the other ones of the topic: in one
// of before a reshard they may have begun, and to one of behind it a dead letter moves when it is requeued.
func Find(ctx context.Context, st store.Reader, topic *store.Topic, home store.Shard, ids []string) ([]store.Snapshot, error) {
	_, found, err := store.GetAll(ctx, st, home, ids)
	if err != nil {
		return nil, err
	}
	for i := range found {
		for _, s := range place.Candidates(topic, found[i].ID) {
			if s == home || found[i].State != store.StateUnknown {
				continue
			}
			_, there, err := st.Get(ctx, s, []string{found[i].ID})
			if err != nil {
				return nil, err
			}
			found[i] = there[0]
		}
	}
	return found, nil
}

package schedules

import (
	"context"

	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// Users looks through all schedules for those that have an audience.
type Users struct {
	Cells  store.Cells
	Topics Topics
}

// usePage is how many schedules are read at a time.
const usePage = 500

// Find returns a schedule that has an audience, with its topic; nothing when none does.
func (u *Users) Find(ctx context.Context, name string) (string, error) {
	topics, e := u.Topics(ctx, "")
	if e != nil {
		return "", e
	}
	for i := range topics {
		for _, shard := range place.Shards(&topics[i]) {
			found, err := u.findIn(ctx, shard, name)
			if found != "" || err != nil {
				return found, err
			}
		}
	}
	return "", nil
}

func (u *Users) findIn(ctx context.Context, shard store.Shard, name string) (string, error) {
	for cursor := ""; ; {
		cells, next, err := u.Cells.CellPage(ctx, shard, store.CellSchedule, cursor, usePage)
		if err != nil {
			return "", err
		}
		for _, c := range cells {
			s, err := schedule.FromCell(c)
			if err == nil && s.Audience != nil && s.Audience.Name == name {
				return shard.Topic + "/" + s.Name, nil
			}
		}
		if cursor = next; cursor == "" {
			return "", nil
		}
	}
}

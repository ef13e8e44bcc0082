package cells

import (
	"context"

	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/actors/workflow"
	"github.com/ddq-io/ddq/store"
)

// FirstWake returns when the owner of a shard has something to do about its cells; store.MaxDue:
// never. It is at once while there are open workflows, which are looked through all the time,
// and otherwise so long before the first cell wakes as runs are made ahead when there are many.
func FirstWake(ctx context.Context, st store.Cells, shard store.Shard) (store.Millis, error) {
	flows, err := st.Listed(ctx, shard, workflow.OpenList, store.Wake{}, 1)
	if err != nil || len(flows) > 0 {
		return 0, err
	}
	_, first, err := st.Wakes(ctx, shard, store.WakeQuery{To: store.MaxDue, Limit: 1})
	if err != nil || len(first) == 0 {
		return store.MaxDue, err
	}
	return first[0].At.Add(-schedule.MaxLead), nil
}

package access_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/ddq-io/ddq/actors/workflow"
	"github.com/ddq-io/ddq/actors/workflow/access"
	"github.com/ddq-io/ddq/actors/workflow/graph"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
)

// alone is a node that tells nobody.
type alone struct{}

func (alone) NowAt(store.Shard) store.Millis { return 1_000_000 }

func (alone) Resolve(_ context.Context, call func() error) (bool, error) { return false, call() }

func (alone) Committed(context.Context, store.Shard, *store.Commit, store.Stamp) {}

// one remembers the definition that it learned last.
type one struct {
	life uint64
	def  *graph.Definition
}

func (o *one) Known(life uint64) *graph.Definition {
	if life != o.life {
		return nil
	}
	return o.def
}

func (o *one) Learn(life uint64, d *graph.Definition) { o.life, o.def = life, d }

// TestWhatIsKnownMayBeForgottenMeanwhile has each workflow that is read be forgotten for the next.
func TestWhatIsKnownMayBeForgottenMeanwhile(t *testing.T) {
	st := memstore.New()
	topic := &store.Topic{Name: "mail", Shards: 1, Life: 1}
	a := access.Access{Store: st, Node: alone{}}
	var ids []store.CellID
	for i := range 3 {
		id := fmt.Sprint("w", i)
		d := &graph.Definition{Name: id, Steps: []graph.Step{{Name: "a", Task: &graph.Template{Task: store.Task{MaxRetries: -1}}}}}
		if _, err := a.Submit(t.Context(), topic, id, d); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, workflow.CellID(id))
	}
	shard, known := workflow.Shards(topic, "w0")[0], &one{}
	headers, err := st.Cells(t.Context(), shard, ids)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // then the last one is known
		loaded, err := access.Load(t.Context(), st, shard, headers, known)
		if err != nil {
			t.Fatal(err)
		}
		for i, l := range loaded {
			if l.Err != nil || l.Workflow.Def.Name != fmt.Sprint("w", i) {
				t.Errorf("workflow %d is %+v, %v", i, l.Workflow, l.Err)
			}
		}
	}
}

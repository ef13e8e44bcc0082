package runtime

import (
	"testing"

	"github.com/ddq-io/ddq/actors/workflow"
	"github.com/ddq-io/ddq/actors/workflow/graph"
	"github.com/ddq-io/ddq/store"
)

func TestWorkflowsThatWereUsedLastAreRemembered(t *testing.T) {
	of := func(id string, bytes int) *workflow.Stored {
		w := workflow.New(id, 7, &graph.Definition{}, 1)
		c := &store.Commit{Puts: []store.Put{{Cell: store.Cell{ID: workflow.CellID(id), Body: make([]byte, bytes)}}}}
		return workflow.After(&workflow.Stored{}, w, c, 0)
	}
	shard, other, m := store.Shard{Topic: "mail"}, store.Shard{Topic: "mail", N: 1}, NewWorkflows()
	for _, id := range []string{"a", "b"} {
		m.Learn(shard, of(id, 1))
	}
	if m.Known(shard, "wa") == nil || m.Known(other, "wa") != nil {
		t.Error("a workflow is remembered in another shard than its own")
	}
	for i := range 2 * workflowsBytes / workflowBytes {
		m.Known(shard, "wa")
		m.Learn(other, of(string(rune('a'+i)), workflowBytes/4))
	}
	if m.Known(shard, "wa") == nil || m.Known(shard, "wb") != nil || m.bytes > workflowsBytes {
		t.Errorf("what was used last is forgotten, or what was not is remembered; %d bytes are", m.bytes)
	}
	m.Learn(shard, of("a", workflowBytes))
	if m.Known(shard, "wa") != nil {
		t.Error("one that is too large is remembered, or what it was before")
	}
	m.Learn(shard, of("c", 1))
	if m.Forget(shard, "wc"); m.Known(shard, "wc") != nil {
		t.Error("one is remembered that was to be forgotten")
	}
}

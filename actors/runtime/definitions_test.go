package runtime

import (
	"testing"

	"github.com/ddq-io/ddq/actors/workflow/graph"
)

func TestDefinitionsThatWereUsedLastAreRemembered(t *testing.T) {
	of := func(bytes int) *graph.Definition { return &graph.Definition{Input: make([]byte, bytes)} }
	d := NewDefinitions()
	d.Learn(1, of(definitionBytes))
	if d.Known(1) != nil {
		t.Error("one that is too large is remembered")
	}
	first, second := of(definitionBytes/2), of(definitionBytes/2)
	d.Learn(1, first)
	d.Learn(2, second)
	for life := uint64(3); d.bytes+definitionBytes/2 < definitionsBytes-definitionBytes/2; life++ {
		d.Learn(life, of(definitionBytes/2))
	}
	d.Known(1)
	d.Learn(100, of(definitionBytes-1<<10))
	if d.Known(1) != first || d.Known(2) != nil || d.Known(100) == nil {
		t.Error("what was used last is forgotten, or what was not is remembered")
	}
	d.Learn(1, second)
	if d.Known(1) != first || d.bytes > definitionsBytes {
		t.Errorf("one that is known is learned again; %d bytes are remembered", d.bytes)
	}
}

package runtime

import "github.com/ddq-io/ddq/actors/workflow/graph"

const (
	definitionsBytes = 16 << 20 // of all definitions that are remembered, about
	definitionBytes  = 4 << 20  // of one
	mostDefinitions  = 1 << 16
)

// Definitions are those of the workflows that looks came across last, by the lives of the
// workflows. It is safe for concurrent use.
type Definitions struct {
	*recent[uint64, *graph.Definition]
}

// NewDefinitions returns a memory of definitions that has none.
func NewDefinitions() *Definitions {
	return &Definitions{newRecent[uint64, *graph.Definition](mostDefinitions, definitionsBytes, definitionBytes)}
}

// sizeOf is about how many bytes a definition has in memory.
func sizeOf(def *graph.Definition) int { return 256 + 512*len(def.Steps) + def.Size() }

// Known returns the definition of a workflow, nil when it is not remembered. It is not to be
// changed.
func (d *Definitions) Known(life uint64) *graph.Definition { return d.get(life) }

// Learn remembers the definition of a workflow, which never changes, and may forget others.
func (d *Definitions) Learn(life uint64, def *graph.Definition) {
	if d.get(life) == nil {
		d.put(life, def, sizeOf(def))
	}
}

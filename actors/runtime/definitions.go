package runtime

import (
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/ddq-io/ddq/actors/workflow/graph"
)

const (
	definitionsBytes = 16 << 20 // of all definitions that are remembered, about
	definitionBytes  = 4 << 20  // of one
	mostDefinitions  = 1 << 16
)

// Definitions are those of the workflows that looks came across last, by the lives of the
// workflows. It is safe for concurrent use.
type Definitions struct {
	mu    sync.Mutex // guards what follows
	known *simplelru.LRU[uint64, *graph.Definition]
	bytes int
}

// NewDefinitions returns a memory of definitions that has none.
func NewDefinitions() *Definitions {
	d := &Definitions{}
	known, err := simplelru.NewLRU(mostDefinitions, func(_ uint64, def *graph.Definition) { d.bytes -= sizeOf(def) })
	if err != nil {
		panic(err) // of a size that is not positive
	}
	d.known = known
	return d
}

// sizeOf is about how many bytes a definition has in memory.
func sizeOf(def *graph.Definition) int { return 256 + 512*len(def.Steps) + def.Size() }

// Known returns the definition of a workflow, nil when it is not remembered. It is not to be
// changed.
func (d *Definitions) Known(life uint64) *graph.Definition {
	d.mu.Lock()
	defer d.mu.Unlock()
	def, _ := d.known.Get(life)
	return def
}

// Learn remembers the definition of a workflow, which never changes, and may forget others.
func (d *Definitions) Learn(life uint64, def *graph.Definition) {
	size := sizeOf(def)
	if size > definitionBytes {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known.Contains(life) {
		return
	}
	d.known.Add(life, def)
	for d.bytes += size; d.bytes > definitionsBytes; {
		d.known.RemoveOldest()
	}
}

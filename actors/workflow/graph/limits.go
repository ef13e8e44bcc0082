package graph

import (
	"time"

	"github.com/ddq-io/ddq/store"
)

// Limits of one definition, and of what an ack adds.
const (
	MaxID         = 128           // bytes of the id of a workflow that is nobody's child
	MaxChildID    = 230           // bytes of the id of a child, which has those of its parents in it
	MaxName       = 64            // bytes of the name of a workflow, a step or a signal
	MaxStepName   = 512           // bytes of the name of a step that grew, which has that of its parent in it
	MaxUnits      = 10_000        // steps with their copies
	MaxDefinition = store.MaxCell // bytes, as it is stored
	MaxAfter      = 100           // conditions of one step
	MaxDepth      = 8             // of children in children
	MaxLabels     = 8
	MaxGrownSteps = 1000    // that one ack adds
	MaxGrowth     = 1 << 20 // bytes of that
	MaxResult     = 256 << 10
	MaxTime       = 366 * 24 * time.Hour // of timeouts, delays and retention
	MinRetention  = time.Second
)

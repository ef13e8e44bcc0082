package graph

import (
	"github.com/ddq-io/ddq/actors/workflow/refusal"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/record"
)

// Growth is what an ack of a step changes in its workflow.
type Growth struct {
	Steps []Step   // below the step: their names are behind its own, and they wait for each other only
	Skip  []string // steps that are left out, if they are not made yet
	Again *[]byte  // the workflow begins anew with this input when it is done; nil: it does not

	Suspend bool   // the step is not done: it goes on when Steps have ended
	Journal []byte // of its task, see Carry

	Trace *store.Trace // in which the worker recorded the attempt; nil: in none
}

// Carry has a step that is suspended go on with a journal.
func (g *Growth) Carry(journal []store.JournalEntry) { g.Journal = record.EncodeJournal(journal) }

// Suspends reports whether a step goes on; g may be nil.
func (g *Growth) Suspends() bool { return g != nil && g.Suspend }

// IsEmpty reports whether it changes nothing, though it may have a trace.
func (g *Growth) IsEmpty() bool { return len(g.Steps) == 0 && len(g.Skip) == 0 && g.Again == nil }

// In is the growth for a topic: what names that topic names none.
func (g *Growth) In(topic string) *Growth {
	in := *g
	in.Steps = (&Definition{Steps: g.Steps}).In(topic).Steps
	return &in
}

// Say returns growth that was checked as the ack tells it, nil for none. The end of a task that failed,
// and that of a child, tell a trace in the same way.
func (g *Growth) Say() ([]byte, *refusal.Error) {
	if g.IsEmpty() && g.Trace == nil {
		return nil, nil
	}
	say, err := g.Encode()
	if err != nil {
		return nil, refusal.New(refusal.BadGraph, "grow", "it cannot be stored: %v", err)
	}
	if len(say) > MaxGrowth {
		return nil, refusal.New(refusal.BadGraph, "grow", "it has %d bytes, of which %d are the journal; at most %d are allowed", len(say), len(g.Journal), MaxGrowth)
	}
	return say, nil
}

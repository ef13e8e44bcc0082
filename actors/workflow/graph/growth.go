package graph

import "github.com/ddq-io/ddq/actors/workflow/refusal"

// Growth is what an ack of a step changes in its workflow.
type Growth struct {
	Steps []Step   // below the step: their names are behind its own, and they wait for each other only
	Skip  []string // steps that are left out, if they are not made yet
	Again *[]byte  // the workflow begins anew with this input when it is done; nil: it does not
}

// In is the growth for a topic: what names that topic names none.
func (g *Growth) In(topic string) *Growth {
	in := *g
	in.Steps = (&Definition{Steps: g.Steps}).In(topic).Steps
	return &in
}

// Say returns growth that was checked as the ack tells it, nil for none.
func (g *Growth) Say() ([]byte, *refusal.Error) {
	if len(g.Steps) == 0 && len(g.Skip) == 0 && g.Again == nil {
		return nil, nil
	}
	say, err := g.Encode()
	if err != nil {
		return nil, refusal.New(refusal.BadGraph, "grow", "it cannot be stored: %v", err)
	}
	if len(say) > MaxGrowth {
		return nil, refusal.New(refusal.BadGraph, "grow", "it has %d bytes; at most %d are allowed", len(say), MaxGrowth)
	}
	return say, nil
}

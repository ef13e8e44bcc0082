package workflow

import (
	"slices"
	"unicode/utf8"

	"github.com/ddq-io/ddq/actors/workflow/graph"
	"github.com/ddq-io/ddq/actors/workflow/refusal"
)

// signal gives a signal to the wait that was made first of those for it, or keeps it.
func (p *transition) signal(e Signal) {
	w := p.w
	if e.ID != "" {
		if slices.Contains(w.Known, e.ID) {
			return
		}
		w.Known = lastOf(append(w.Known, e.ID), MaxKnownSignals)
	}
	if !w.Phase.Open() || w.keptOf(e.Name) >= MaxKeptSignals {
		w.Late = lastOf(append(w.Late, LateSignal{Name: e.Name, ID: e.ID, At: timeOf(e.At, p.Now)}), MaxLateSignals)
		return
	}
	v := p.value(e.Payload)
	if unit := p.waitFor(e.Name); unit >= 0 {
		p.done(unit, v)
		return
	}
	w.Kept = append(w.Kept, Kept{Name: e.Name, Value: v})
}

// waitFor finds the wait for a signal that was made first; -1: there is none.
func (p *transition) waitFor(name string) int {
	first := -1
	for unit := range p.w.Units {
		u := &p.w.Units[unit]
		if u.State != UnitMade || first >= 0 && u.Serial > p.w.Units[first].Serial {
			continue
		}
		if n := p.w.of().find(unit); n.Wait != nil && n.Wait.Signal == name {
			first = unit
		}
	}
	return first
}

func (w *Workflow) keptOf(name string) (n int) {
	for i := range w.Kept {
		if w.Kept[i].Name == name {
			n++
		}
	}
	return n
}

// takeKept takes the first signal of a name that is kept.
func (w *Workflow) takeKept(name string) (Value, bool) {
	i := slices.IndexFunc(w.Kept, func(k Kept) bool { return k.Name == name })
	if i < 0 {
		return Value{}, false
	}
	v := w.Kept[i].Value
	w.Kept = slices.Delete(w.Kept, i, i+1)
	return v, true
}

func lastOf[T any](list []T, n int) []T {
	return slices.Delete(list, 0, max(len(list)-n, 0))
}

// Check refuses a signal that no workflow takes.
func (s *Signal) Check() *refusal.Error {
	switch {
	case !graph.IsStepName(s.Name):
		return refusal.New(refusal.BadName, "signal", "signal must be 1 to %d letters, digits, _ or -", graph.MaxName)
	case len(s.ID) > graph.MaxID || !utf8.ValidString(s.ID):
		return refusal.New(refusal.BadName, "signal_id", "signal_id must be UTF-8 of at most %d bytes", graph.MaxID)
	case len(s.Payload) > MaxSignal:
		return refusal.New(refusal.SignalTooLarge, "payload", "payload has %d bytes; at most %d are allowed", len(s.Payload), MaxSignal)
	}
	return nil
}

package audience

import (
	"fmt"

	"github.com/ddq-io/ddq/actors/audience/cell"
	"github.com/ddq-io/ddq/store"
)

// Body is the walk as its cell has it.
func (w *Walk) Body() []byte { return encode(w.record()) }

func (w *Walk) record() *cell.Walk {
	c := &cell.Walk{
		Order: &cell.Order{
			Run: w.Run, Schedule: w.Schedule, At: int64(w.At), Occurrence: int64(w.Occurrence), Audience: w.Audience, Kind: w.Order.Kind, Quiet: int32(w.Order.Quiet),
			WindowMs: w.Window.Milliseconds(), GrainMs: w.Grain.Milliseconds(), SpreadFrom: w.SpreadFrom,
			Rotate: w.Rotate, Local: w.Local, Tracked: w.Tracked,
		},
		Phase: int32(w.Phase), Life: w.Life, Turn: uint64(w.Turn),
		Kind: int32(w.Taker.Kind.Number), KindOff: w.Taker.Kind.Off,
		Verdicts: w.Verdicts[:], Ends: w.Ends[:], Taken: w.Taken, Cancelled: w.Cancelled, Undo: w.Undo, Planned: w.Planned,
	}
	for _, s := range w.Starts {
		c.Starts = append(c.Starts, &cell.Start{At: int64(s.At), Zones: s.Zones})
	}
	for i := range w.Paths {
		p := &cell.Path{Began: w.Paths[i].Began}
		for _, t := range w.Paths[i].Tracks {
			p.Tracks = append(p.Tracks, &cell.Track{Next: uint64(t.Next), Bound: uint64(t.Bound), Done: t.Done})
		}
		c.Paths = append(c.Paths, p)
	}
	return c
}

// DecodeWalk reads the body of the cell of a walk.
func DecodeWalk(body []byte) (*Walk, error) {
	var c cell.Walk
	if err := c.UnmarshalVT(body); err != nil {
		return nil, fmt.Errorf("decode walk: %w", err)
	}
	return walkOf(&c)
}

func walkOf(c *cell.Walk) (*Walk, error) {
	o := c.GetOrder()
	w := &Walk{
		Order: Order{
			Run: o.GetRun(), Schedule: o.GetSchedule(), At: store.Millis(o.GetAt()), Occurrence: store.Millis(o.GetOccurrence()),
			Audience: o.GetAudience(), Kind: o.GetKind(), Quiet: QuietPolicy(o.GetQuiet()),
			Spread:     Spread{Window: store.FromMillis(o.GetWindowMs()), Grain: store.FromMillis(o.GetGrainMs()), Turn: Position(c.GetTurn())},
			SpreadFrom: o.GetSpreadFrom(), Rotate: o.GetRotate(), Local: o.GetLocal(), Tracked: o.GetTracked(),
		},
		Phase: Phase(c.GetPhase()), Life: c.GetLife(), Taken: c.GetTaken(), Cancelled: c.GetCancelled(), Undo: c.GetUndo(), Planned: c.GetPlanned(),
	}
	w.Taker = Taker{Kind: Kind{Number: int(c.GetKind()), Off: c.GetKindOff(), None: w.Order.Kind == ""}, Quiet: w.Order.Quiet}
	copy(w.Verdicts[:], c.GetVerdicts())
	copy(w.Ends[:], c.GetEnds())
	for _, s := range c.GetStarts() {
		w.Starts = append(w.Starts, Start{At: store.Millis(s.At), Zones: s.Zones})
	}
	for _, p := range c.GetPaths() {
		path := Path{Began: p.Began}
		for _, t := range p.Tracks {
			path.Tracks = append(path.Tracks, Track{Next: Position(t.Next), Bound: Position(t.Bound), Done: t.Done})
		}
		w.Paths = append(w.Paths, path)
	}
	return w, w.check()
}

// check returns what makes a walk none that can go on.
func (w *Walk) check() error {
	switch {
	case w.Run == "" || w.Schedule == "" || w.Phase > Over:
		return fmt.Errorf("decode walk: run %q of schedule %q in phase %d", w.Run, w.Schedule, w.Phase)
	case w.Window < 0 || w.Window > MaxWindow || w.Grain < 0 || w.Order.Quiet < Defer || w.Order.Quiet > Ignore:
		return fmt.Errorf("decode walk: window %v, grain %v, quiet hours %d", w.Window, w.Grain, w.Order.Quiet)
	case w.Taker.Kind.Number < 0 || w.Taker.Kind.Number >= MaxKinds || len(w.Paths) > MaxShards:
		return fmt.Errorf("decode walk: kind %d, %d shards", w.Taker.Kind.Number, len(w.Paths))
	}
	for i := range w.Paths {
		if n := len(w.Paths[i].Tracks); w.Local && n > len(w.Starts) || !w.Local && n > 1 {
			return fmt.Errorf("decode walk: %d tracks, %d starts", n, len(w.Starts))
		}
	}
	return nil
}

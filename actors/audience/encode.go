package audience

import (
	"fmt"
	"time"

	"github.com/ddq-io/ddq/actors/audience/cell"
	"github.com/ddq-io/ddq/store"
)

// Body is the walk as its cell has it.
func (w *Walk) Body() []byte {
	c := &cell.Walk{
		Order: &cell.Order{
			Run: w.Run, Schedule: w.Schedule, At: int64(w.At), Occurrence: int64(w.Occurrence), Audience: w.Audience, Kind: w.Order.Kind, Quiet: int32(w.Order.Quiet),
			WindowMs: w.Window.Milliseconds(), GrainMs: w.Grain.Milliseconds(), SpreadFrom: w.SpreadFrom,
			Rotate: w.Rotate, Local: w.Local, Tracked: w.Tracked,
		},
		Phase: int32(w.Phase), Life: w.Life, Turn: uint64(w.Turn),
		Kind: int32(w.Taker.Kind.Number), KindOff: w.Taker.Kind.Off,
		Verdicts: w.Verdicts[:], Ends: w.Ends[:], Taken: w.Taken, Cancelled: w.Cancelled,
	}
	for i := range w.Paths {
		p := &cell.Path{Began: w.Paths[i].Began}
		for _, t := range w.Paths[i].Tracks {
			p.Tracks = append(p.Tracks, &cell.Track{Zone: t.Zone, Begin: int64(t.Begin), Next: uint64(t.Next), Bound: uint64(t.Bound), Done: t.Done})
		}
		c.Paths = append(c.Paths, p)
	}
	return encode(c)
}

// DecodeWalk reads the body of the cell of a walk.
func DecodeWalk(body []byte) (*Walk, error) {
	var c cell.Walk
	if err := c.UnmarshalVT(body); err != nil {
		return nil, fmt.Errorf("decode walk: %w", err)
	}
	o := c.GetOrder()
	w := &Walk{
		Order: Order{
			Run: o.GetRun(), Schedule: o.GetSchedule(), At: store.Millis(o.GetAt()), Occurrence: store.Millis(o.GetOccurrence()),
			Audience: o.GetAudience(), Kind: o.GetKind(), Quiet: QuietPolicy(o.GetQuiet()),
			Spread:     Spread{Window: millis(o.GetWindowMs()), Grain: millis(o.GetGrainMs()), Turn: Position(c.Turn)},
			SpreadFrom: o.GetSpreadFrom(), Rotate: o.GetRotate(), Local: o.GetLocal(), Tracked: o.GetTracked(),
		},
		Phase: Phase(c.Phase), Life: c.Life, Taken: c.Taken, Cancelled: c.Cancelled,
	}
	w.Taker = Taker{Kind: Kind{Number: int(c.Kind), Off: c.KindOff, None: w.Order.Kind == ""}, Quiet: w.Order.Quiet}
	copy(w.Verdicts[:], c.Verdicts)
	copy(w.Ends[:], c.Ends)
	for _, p := range c.Paths {
		path := Path{Began: p.Began}
		for _, t := range p.Tracks {
			path.Tracks = append(path.Tracks, Track{Zone: t.Zone, Begin: store.Millis(t.Begin), Next: Position(t.Next), Bound: Position(t.Bound), Done: t.Done})
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
	return nil
}

func millis(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

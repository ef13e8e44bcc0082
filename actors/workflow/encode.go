package workflow

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/ddq-io/ddq/actors/workflow/cell"
	"github.com/ddq-io/ddq/actors/workflow/graph"
	"github.com/ddq-io/ddq/store"
)

// pageUnits is how many units the header has, and each page behind it.
const pageUnits = 64

// CellID names the header of a workflow.
func CellID(id string) store.CellID {
	return store.CellID([]byte{store.CellWorkflow}) + store.CellID(id)
}

// The kinds of cells that are parts of a workflow. They are named by its life: those of one
// that had its id before are others.
const (
	definitionPart = "D"
	pagePart       = "P"
	valuePart      = "R"
	growthPart     = "G"
)

func (w *Workflow) partID(kind string, n int64) store.CellID {
	return store.CellID(kind + strconv.FormatUint(w.Life, 36) + "/" + strconv.FormatInt(n, 36))
}

func pages(units int) int { return max(0, (units-1)/pageUnits) }

// header returns the body of the workflow's cell.
func (w *Workflow) header() ([]byte, error) {
	c := &cell.Workflow{
		Life: w.Life, Phase: int32(w.Phase), Paused: w.IsPaused, PausedBy: w.PausedBy, Note: w.Note, Cancelled: w.Cancelled,
		Cause: int32(w.Cause), Failed: w.Failed, Created: int64(w.Created), Started: int64(w.Started), Ended: int64(w.Ended), Starts: int32(w.Starts),
		Serial: w.Serial, Ends: w.Ends, AskTo: w.AskTo, Taken: w.Taken, Bytes: w.Bytes, Input: encodeValue(w.Input),
		Depth: int32(w.Depth), Known: w.Known, Count: int32(len(w.Units)), Units: w.encodeUnits(0),
		Name: w.Def.Name, Labels: cell.Labels(w.Def.Labels), RetentionMs: store.CeilMillis(w.Def.Retention), TimeoutMs: store.CeilMillis(w.Def.Timeout),
		ResultSize: int64(w.result().Size), Error: []byte(w.failure()), Doomed: w.Doomed, Ordered: w.Ordered,
	}
	if w.Again != nil {
		c.Again = encodeValue(*w.Again)
		if c.Again == nil {
			c.Again = &cell.Value{}
		}
	}
	c.Parent, c.Run = w.Parent.encode(), w.Run.encode()
	for _, g := range w.Grown {
		c.Grown = append(c.Grown, &cell.Grown{Parent: g.Parent, Part: g.Part, Size: int64(g.Size)})
	}
	for _, k := range w.Kept {
		c.Kept = append(c.Kept, &cell.Kept{Name: k.Name, Value: encodeValue(k.Value)})
	}
	for _, l := range w.Late {
		c.Late = append(c.Late, &cell.Late{Name: l.Name, Id: l.ID, At: int64(l.At)})
	}
	for _, n := range w.counts() {
		c.Counts = append(c.Counts, int32(n))
	}
	for _, t := range w.Trash {
		if t.Growth {
			c.TrashGrowth = append(c.TrashGrowth, t.Number)
		} else {
			c.TrashValues = append(c.TrashValues, t.Number)
		}
	}
	c.UndoFailed = w.undoFailed()
	return c.MarshalVT()
}

// page returns the body of a page, from 1.
func (w *Workflow) page(n int) ([]byte, error) {
	return (&cell.Page{Units: w.encodeUnits(n)}).MarshalVT()
}

func (w *Workflow) encodeUnits(page int) (c []*cell.Unit) {
	from := page * pageUnits
	to := min(from+pageUnits, len(w.Units))
	all := make([]cell.Unit, 0, to-from) // one piece of memory for all
	c = make([]*cell.Unit, 0, to-from)
	for i := from; i < to; i++ {
		u := &w.Units[i]
		all = append(all, cell.Unit{
			State: int32(u.State), Try: int32(u.Try), Serial: u.Serial, Asked: u.Asked, Why: int32(u.Why), WhyStep: u.WhyStep,
			Made: w.since(u.Made), Begun: w.since(u.Begun), Ended: w.since(u.Ended), Until: w.since(u.Until),
			Order: u.Order, Error: []byte(u.Error), Value: encodeValue(u.Value), Marked: u.Marked,
			Suspended: u.Suspended, Journal: encodeValue(u.Journal),
		})
		c = append(c, &all[len(all)-1])
	}
	return c
}

// since is a moment as units have it.
func (w *Workflow) since(at store.Millis) int64 {
	if at == 0 {
		return 0
	}
	return int64(max(at-w.Created, 0)) + 1
}

func (w *Workflow) moment(since int64) store.Millis {
	if since == 0 {
		return 0
	}
	return w.Created + store.Millis(since-1)
}

func encodeValue(v Value) *cell.Value {
	if v.Size == 0 && v.Part == 0 {
		return nil
	}
	return &cell.Value{Bytes: v.Bytes, Part: v.Part, Size: int64(v.Size)}
}

func decodeValue(c *cell.Value) Value {
	if c == nil {
		return Value{}
	}
	return Value{Bytes: c.Bytes, Part: c.Part, Size: int(c.Size)}
}

// Stored is a workflow in its cells. Those besides the header are read behind it.
type Stored struct {
	Cell store.Cell // the header
	body cell.Workflow
	w    *Workflow
	old  map[store.CellID][]byte // bodies of pages as they are stored
	by   uint64                  // the server that has committed it, where that is known: see After
}

// Read reads a header. The error wraps cell.ErrCorrupt.
func Read(c store.Cell) (*Stored, error) {
	s := &Stored{Cell: c, old: make(map[store.CellID][]byte)}
	if err := s.body.UnmarshalVT(c.Body); err != nil {
		return nil, fmt.Errorf("%w: %w", cell.ErrCorrupt, err)
	}
	b := &s.body
	var d cell.Decoder
	d.Check(b.Phase >= int32(Running) && b.Phase <= int32(Cancelled) && b.Phase != int32(Paused), "phase %d", b.Phase)
	d.Check(b.Cause >= 0 && b.Cause <= int32(CauseTooLarge), "cause %d", b.Cause)
	d.Check(b.Count > 0 && b.Count <= graph.MaxUnits && len(b.Units) == min(int(b.Count), pageUnits), "%d units", b.Count)
	s.w = &Workflow{ID: c.ID.Key(), Life: b.Life, Depth: int(b.Depth), Known: b.Known, Record: Record{
		Phase: State(b.Phase), IsPaused: b.Paused, PausedBy: b.PausedBy, Note: b.Note, Cancelled: b.Cancelled, Cause: Cause(b.Cause), Failed: b.Failed,
		Created: store.Millis(b.Created), Started: store.Millis(b.Started), Ended: store.Millis(b.Ended), Starts: int(b.Starts),
		Serial: b.Serial, Ends: b.Ends, AskTo: b.AskTo, Taken: b.Taken, Bytes: b.Bytes, Input: decodeValue(b.Input), Doomed: b.Doomed, Ordered: b.Ordered,
	}}
	if b.Again != nil {
		v := decodeValue(b.Again)
		s.w.Again = &v
	}
	s.w.Parent, s.w.Run = decodeParent(b.Parent), decodeRun(b.Run)
	for _, k := range b.Kept {
		s.w.Kept = append(s.w.Kept, Kept{Name: k.Name, Value: decodeValue(k.Value)})
	}
	for _, l := range b.Late {
		s.w.Late = append(s.w.Late, LateSignal{Name: l.Name, ID: l.Id, At: store.Millis(l.At)})
	}
	for _, n := range b.TrashValues {
		s.w.Trash = append(s.w.Trash, Dropped{Number: n})
	}
	for _, n := range b.TrashGrowth {
		s.w.Trash = append(s.w.Trash, Dropped{Number: n, Growth: true})
	}
	s.units(&d, b.Units)
	return s, d.Err
}

func (s *Stored) units(d *cell.Decoder, c []*cell.Unit) {
	w := s.w
	w.Units = slices.Grow(w.Units, len(c))
	for _, u := range c {
		d.Check(u.State >= 0 && u.State < int32(unitStates), "a unit in state %d", u.State)
		d.Check(u.Why >= 0 && u.Why <= int32(lastWhy), "a reason %d", u.Why)
		w.Units = append(w.Units, Unit{
			State: UnitState(u.State), Try: int(u.Try), Serial: u.Serial, Asked: u.Asked, Why: Why(u.Why), WhyStep: u.WhyStep,
			Made: w.moment(u.Made), Begun: w.moment(u.Begun), Ended: w.moment(u.Ended), Until: w.moment(u.Until),
			Order: u.Order, Error: string(u.Error), Value: decodeValue(u.Value), Marked: u.Marked,
			Suspended: u.Suspended, Journal: decodeValue(u.Journal),
		})
	}
}

// Life tells a workflow from others that had its id.
func (s *Stored) Life() uint64 { return s.w.Life }

// Needs are the cells that are to be read as well: pages, growth, and the definition unless it
// is known.
func (s *Stored) Needs(known *graph.Definition) (ids []store.CellID) {
	if known == nil {
		ids = append(ids, s.w.partID(definitionPart, 0))
	}
	for n := 1; n <= pages(int(s.body.Count)); n++ {
		ids = append(ids, s.w.partID(pagePart, int64(n)))
	}
	for _, g := range s.body.Grown {
		ids = append(ids, s.w.partID(growthPart, g.Part))
	}
	return ids
}

// Fill returns the workflow, of the cells of Needs. The error wraps cell.ErrCorrupt.
func (s *Stored) Fill(cells []store.Cell, known *graph.Definition) (*Workflow, error) {
	w, d := s.w, cell.Decoder{}
	d.Check(len(cells) == len(s.Needs(known)), "%d cells", len(cells))
	if d.Err != nil {
		return nil, d.Err
	}
	if w.Def = known; known == nil {
		def, err := graph.DecodeDefinition(cells[0].Body)
		if err != nil {
			return nil, err
		}
		w.Def, cells = def, cells[1:]
	}
	for n := range pages(int(s.body.Count)) {
		var page cell.Page
		if err := page.UnmarshalVT(cells[n].Body); err != nil {
			d.Check(false, "%w", err)
		}
		s.old[cells[n].ID] = cells[n].Body
		s.units(&d, page.Units)
	}
	cells = cells[pages(int(s.body.Count)):]
	for i, g := range s.body.Grown {
		growth, err := graph.DecodeGrowth(cells[i].Body)
		if err != nil {
			return nil, err
		}
		w.Grown = append(w.Grown, Grown{Parent: g.Parent, Part: g.Part, Size: int(g.Size), Steps: growth.Steps})
	}
	d.Check(len(w.Units) == int(s.body.Count), "%d units, not %d", len(w.Units), s.body.Count)
	if d.Err == nil {
		d.Check(w.of().units() == len(w.Units), "%d units of a graph of %d", len(w.Units), w.of().units())
	}
	return w, d.Err
}

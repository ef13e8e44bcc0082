package audience

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/ddq-io/ddq/actors/audience/cell"
	"github.com/ddq-io/ddq/store"
)

// Leaf are the recipients of one zone whose positions begin with the same bits.
type Leaf struct {
	Version int64 // of the cell
	Entries []Entry
}

// Entry is a recipient as runs see it: those that began at a version from From up to
// Until. One whose zone changed has an entry in each of the two while runs are open that
// began before.
type Entry struct {
	Recipient
	At         Position
	From       int64
	Until      int64 // 0: without an end
	Generation int64 // of the directory when it was put last
	Left       bool  // it was removed: runs only take back the task that they made for it
}

// Live reports whether it is what the recipient is now.
func (e *Entry) Live() bool { return e.Until == 0 }

// counts reports whether a run that began at a version takes this entry.
func (e *Entry) counts(version int64) bool {
	return e.From <= version && (e.Until == 0 || version < e.Until)
}

// compareEntries is the order within a leaf, and that of the walk.
func compareEntries(a, b Entry) int {
	return cmp.Or(cmp.Compare(a.At, b.At), strings.Compare(a.ID, b.ID), cmp.Compare(a.From, b.From))
}

// leafFormat says how leaves are written. It is never 0, so that no leaf is without a body,
// which would delete the cell.
const leafFormat = 1

var errBadLeaf = errors.New("the columns of a leaf do not fit together")

// DecodeLeaf reads the cell of a leaf of an audience of so many shards.
func DecodeLeaf(c store.Cell, shards int) (*Leaf, error) {
	var r cell.Leaf
	if err := r.UnmarshalVT(c.Body); err != nil {
		return nil, fmt.Errorf("decode leaf: %w", err)
	}
	zone := c.ID.Key()
	if cut := strings.LastIndexByte(zone, '/'); cut >= 0 {
		zone = zone[:cut]
	}
	l := &Leaf{Version: c.Version}
	if r.Format != leafFormat || r.Entries > store.MaxCell {
		return nil, fmt.Errorf("decode leaf: format %d, %d entries", r.Format, r.Entries)
	}
	for _, c := range columnsOf(&r) {
		if !fits(*c, int(r.Entries)) {
			return nil, fmt.Errorf("decode leaf: %w", errBadLeaf)
		}
	}
	ids, data := blob{r.Ids}, blob{r.Data}
	l.Entries = make([]Entry, r.Entries)
	for i := range l.Entries {
		e := &l.Entries[i]
		id, idOK := ids.next(numberAt(r.IdSizes, i))
		text, textOK := data.next(numberAt(r.DataSizes, i))
		preferred := numberAt(r.Preferred, i)
		if !idOK || !textOK || preferred >= uint64(len(r.Preferences)) {
			return nil, fmt.Errorf("decode leaf: %w", errBadLeaf)
		}
		e.ID, e.Zone, e.Data = string(id), zone, slices.Clone(text)
		e.Preferences = preferencesOf(r.Preferences[preferred])
		e.From, e.Until, e.Generation = int64(numberAt(r.From, i)), int64(numberAt(r.Until, i)), int64(numberAt(r.Generations, i))
		e.Left = numberAt(r.Left, i) != 0
		_, e.At = Locate(e.ID, shards)
	}
	return l, nil
}

// body writes the leaf in columns.
func (l *Leaf) body() []byte {
	r := cell.Leaf{Format: leafFormat, Entries: uint32(len(l.Entries))}
	known := make(map[Preferences]uint64)
	for i := range l.Entries {
		e := &l.Entries[i]
		preferred, there := known[e.Preferences]
		if !there {
			preferred = uint64(len(known))
			known[e.Preferences] = preferred
			r.Preferences = append(r.Preferences, recordOf(e.Preferences))
		}
		r.IdSizes, r.Ids = append(r.IdSizes, uint64(len(e.ID))), append(r.Ids, e.ID...)
		r.DataSizes, r.Data = append(r.DataSizes, uint64(len(e.Data))), append(r.Data, e.Data...)
		r.Preferred = append(r.Preferred, preferred)
		r.From, r.Until = append(r.From, uint64(e.From)), append(r.Until, uint64(e.Until))
		r.Generations = append(r.Generations, uint64(e.Generation))
		r.Left = append(r.Left, bit(e.Left))
	}
	for _, c := range columnsOf(&r) {
		*c = column(*c)
	}
	return encode(&r)
}

func columnsOf(r *cell.Leaf) []*[]uint64 {
	return []*[]uint64{&r.IdSizes, &r.DataSizes, &r.Preferred, &r.From, &r.Until, &r.Generations, &r.Left}
}

func preferencesOf(r *cell.Preferences) Preferences {
	return Preferences{
		Disabled: r.Disabled,
		Quiet:    Quiet{From: uint16(r.QuietFrom), To: uint16(r.QuietTo)},
		On:       r.On,
		Off:      r.Off,
	}
}

func recordOf(p Preferences) *cell.Preferences {
	return &cell.Preferences{Disabled: p.Disabled, QuietFrom: uint32(p.Quiet.From), QuietTo: uint32(p.Quiet.To), On: p.On, Off: p.Off}
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// column leaves out what a column of numbers need not have: see numberAt.
func column(numbers []uint64) []uint64 {
	for _, n := range numbers {
		if n != numbers[0] {
			return numbers
		}
	}
	if len(numbers) == 0 || numbers[0] == 0 {
		return nil
	}
	return numbers[:1]
}

// numberAt reads a column: empty, all are 0; with one number, all are that.
func numberAt(column []uint64, i int) uint64 {
	switch {
	case len(column) == 0:
		return 0
	case len(column) == 1:
		return column[0]
	}
	return column[i]
}

// fits reports whether a column is one of so many entries.
func fits(column []uint64, entries int) bool {
	return len(column) <= 1 || len(column) == entries
}

// blob is read piece by piece.
type blob struct{ rest []byte }

func (b *blob) next(size uint64) ([]byte, bool) {
	if size > uint64(len(b.rest)) {
		return nil, false
	}
	piece := b.rest[:size]
	b.rest = b.rest[size:]
	return piece, true
}

// message is one of package cell.
type message interface {
	SizeVT() int
	MarshalToSizedBufferVT([]byte) (int, error)
}

// encode writes a message, which never fails.
func encode(m message) []byte {
	b := make([]byte, m.SizeVT())
	if _, err := m.MarshalToSizedBufferVT(b); err != nil {
		panic(err)
	}
	return b
}

// From goes through the entries of recipients as they are now, in order, from a cursor
// on.
func (l *Leaf) From(c Cursor) iter.Seq[*Entry] {
	return func(yield func(*Entry) bool) {
		for i := range l.Entries {
			e := &l.Entries[i]
			if e.Live() && (e.Zone != c.Zone || e.At >= c.At) && !yield(e) {
				return
			}
		}
	}
}

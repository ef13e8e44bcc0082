package audience

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ddq-io/ddq/actors/audience/cell"
	"github.com/ddq-io/ddq/store"
)

// DirectoryID is the cell that the directory of a shard is.
const DirectoryID = store.CellID("Ddirectory")

// Limits of one shard of an audience.
const (
	// MaxZones bounds the time zones that the recipients of a shard are in: the shard's
	// directory, which is one value of the store, has an entry for each.
	MaxZones = 600

	// MaxRuns bounds the runs through a shard that have not ended.
	MaxRuns = 16
)

// directoryFormat says how directories are written. It is never 0, as for leaves.
const directoryFormat = 1

// Directory says where the recipients of one shard of an audience lie. Each change of the
// shard is one commit that puts it: so its version orders all that ever happened there,
// and of two who change the shard at once one begins again.
//
// Invariants:
//   - a leaf of a zone in it is there as a cell, if the directory is the latest
//   - each position is in one leaf of each zone
type Directory struct {
	Version int64 // of the cell; 0 when there is none yet
	Shards  int   // of the audience
	Zones   []*Zone
	Runs    []Run // that have not ended

	// Generation is the last replacement of all recipients, and Replacing says that it is
	// under way: what was not put since it began goes when it ends.
	Generation int64
	Replacing  bool
}

// Zone are the recipients of one zone.
type Zone struct {
	Name       string
	Recipients int64
	leaves     tree
}

// Run is a run that has not ended. Who was a recipient at its version is one for the run.
type Run struct {
	ID       string
	Topic    string // in which its walk is
	Schedule string // whose run it is
	Version  int64
}

// NewDirectory is that of a shard without recipients.
func NewDirectory(shards int) *Directory { return &Directory{Shards: shards} }

// DecodeDirectory reads the cell of a directory.
func DecodeDirectory(c store.Cell) (*Directory, error) {
	var r cell.Directory
	if err := r.UnmarshalVT(c.Body); err != nil {
		return nil, fmt.Errorf("decode directory: %w", err)
	}
	if r.Format != directoryFormat || r.Bits < 0 || r.Bits > int32(bitsOf(MaxShards)) {
		return nil, fmt.Errorf("decode directory: format %d, %d bits name the shard", r.Format, r.Bits)
	}
	d := &Directory{Version: c.Version, Shards: 1 << r.Bits, Generation: r.Generation, Replacing: r.Replacing}
	for _, z := range r.Zones {
		leaves, err := decodeTree(z.Tree)
		if err != nil {
			return nil, fmt.Errorf("decode directory: zone %q: %w", z.Name, err)
		}
		d.Zones = append(d.Zones, &Zone{Name: z.Name, Recipients: z.Recipients, leaves: leaves})
	}
	for _, run := range r.Runs {
		d.Runs = append(d.Runs, Run{ID: run.Id, Topic: run.Topic, Schedule: run.Schedule, Version: run.Version})
	}
	return d, nil
}

// put is the change that stores the directory.
func (d *Directory) put() store.Put {
	r := cell.Directory{Format: directoryFormat, Bits: int32(bitsOf(d.Shards)), Generation: d.Generation, Replacing: d.Replacing}
	for _, z := range d.Zones {
		r.Zones = append(r.Zones, &cell.Zone{Name: z.Name, Tree: z.leaves.encode(), Recipients: z.Recipients})
	}
	for _, run := range d.Runs {
		r.Runs = append(r.Runs, &cell.Run{Id: run.ID, Topic: run.Topic, Schedule: run.Schedule, Version: run.Version})
	}
	return store.Put{Cell: store.Cell{ID: DirectoryID, Body: encode(&r)}, If: d.Version}
}

// Recipients is how many there are.
func (d *Directory) Recipients() (n int64) {
	for _, z := range d.Zones {
		n += z.Recipients
	}
	return n
}

// zone returns a zone, or nil.
func (d *Directory) zone(name string) *Zone {
	if i, found := d.find(name); found {
		return d.Zones[i]
	}
	return nil
}

func (d *Directory) find(name string) (int, bool) {
	return slices.BinarySearchFunc(d.Zones, name, func(z *Zone, name string) int { return strings.Compare(z.Name, name) })
}

// leafOf is the leaf of a zone in which a position lies.
func (z *Zone) leafOf(at Position) store.CellID {
	return z.leaves[z.leaves.at(at)].id(z.Name)
}

// Covering returns the leaves in which recipients may lie, each once: one of each zone
// for each of them.
func (d *Directory) Covering(ids []string) []store.CellID {
	var cells []store.CellID
	for _, z := range d.Zones {
		leaves := make([]int, len(ids))
		for i, id := range ids {
			_, at := Locate(id, d.Shards)
			leaves[i] = z.leaves.at(at)
		}
		slices.Sort(leaves)
		for _, i := range slices.Compact(leaves) {
			cells = append(cells, z.leaves[i].id(z.Name))
		}
	}
	return cells
}

// Cursor is a place in the order of all recipients of a shard: by zone, then by position.
// The zero one is before the first.
type Cursor struct {
	Zone string
	At   Position
}

// Page returns leaves from a cursor on, and the cursor behind them; false when there are no
// more. A leaf that is split meanwhile is not missed.
func (d *Directory) Page(from Cursor, limit int) (leaves []store.CellID, next Cursor, more bool) {
	i, _ := d.find(from.Zone)
	for _, z := range d.Zones[i:] {
		first := Position(0)
		if z.Name == from.Zone {
			first = from.At
		}
		for _, p := range z.leaves.within(first, ^Position(0)) {
			if len(leaves) >= limit {
				return leaves, Cursor{z.Name, p.first}, true
			}
			leaves = append(leaves, p.id(z.Name))
		}
	}
	return leaves, Cursor{}, false
}

// Begin notes that a run begins, whatever version it has, and returns the version of the shard at which it does:
// who is a recipient then is one for the run. The commit has no puts when that is known
// already. It reports false when too many runs are open.
func (d *Directory) Begin(run Run) (version int64, c store.Commit, ok bool) {
	if i := slices.IndexFunc(d.Runs, func(r Run) bool { return r.ID == run.ID }); i >= 0 {
		return d.Runs[i].Version, store.Commit{}, true
	}
	if len(d.Runs) >= MaxRuns {
		return 0, store.Commit{}, false
	}
	run.Version = d.Version + 1
	d.Runs = append(d.Runs, run)
	return run.Version, store.Commit{Puts: []store.Put{d.put()}}, true
}

// End notes that a run has ended. The commit has no puts when that is known already.
func (d *Directory) End(run string) store.Commit {
	left := slices.DeleteFunc(d.Runs, func(r Run) bool { return r.ID == run })
	if len(left) == len(d.Runs) {
		return store.Commit{}
	}
	d.Runs = left
	return store.Commit{Puts: []store.Put{d.put()}}
}

// Replace begins a replacement of all recipients under a number, which is above those of
// before, and EndReplacement ends it once Sweep has seen all leaves. They report false when
// another one has begun.
func (d *Directory) Replace(generation int64) (c store.Commit, ok bool) {
	if generation < d.Generation || generation == d.Generation && !d.Replacing {
		return store.Commit{}, false
	}
	if generation == d.Generation {
		return store.Commit{}, true
	}
	d.Generation, d.Replacing = generation, true
	return store.Commit{Puts: []store.Put{d.put()}}, true
}

// EndReplacement ends the replacement of a number. The commit has no puts when that is
// known already.
func (d *Directory) EndReplacement(generation int64) (c store.Commit, ok bool) {
	if generation != d.Generation {
		return store.Commit{}, false
	}
	if !d.Replacing {
		return store.Commit{}, true
	}
	d.Replacing = false
	return store.Commit{Puts: []store.Put{d.put()}}, true
}

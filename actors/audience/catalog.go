package audience

import (
	"fmt"
	"slices"

	"github.com/ddq-io/ddq/actors/audience/cell"
	"github.com/ddq-io/ddq/store"
)

// Audiences are cells of one shard, in a list. That shard and those of audiences are of
// topics that no caller can name, that are in no catalog, and that nobody owns.
const (
	CatalogKind = 'a'
	CatalogList = "audiences"
)

// Catalog is the shard of all audiences.
func Catalog() store.Shard { return store.Shard{Topic: "~"} }

// Audience is a named set of recipients.
type Audience struct {
	Name         string
	Version      int64  // of the cell; 0 when there is none
	Life         uint64 // random, of this creation: its shards belong to it
	Shards       int    // a power of two
	FallbackZone string // of recipients who have none
	Kinds        []NamedKind
	Created      store.Millis

	// Generation is the last replacement of all recipients, which is under way when
	// Replacing says so.
	Generation int64
	Replacing  bool

	Leaving bool // it is looked for who has it, and ended if nobody does
	Ended   bool // it is being deleted
	Gone    bool // it is deleted. The record stays, so that its versions go on rising
}

// NamedKind is what tasks can be about. Its number is its position.
type NamedKind struct {
	Name string
	Off  bool // only those get it who said so
}

// RecordID is the cell of an audience in the catalog.
func RecordID(name string) store.CellID { return store.CellID(CatalogKind) + store.CellID(name) }

// Shard is one of the shards of the audience.
func (a *Audience) Shard(n int) store.Shard {
	return store.Shard{Topic: "~" + a.Name, N: n, Life: a.Life}
}

// Kind returns a kind by name.
func (a *Audience) Kind(name string) (Kind, bool) {
	i := slices.IndexFunc(a.Kinds, func(k NamedKind) bool { return k.Name == name })
	if i < 0 {
		return Kind{}, false
	}
	return Kind{Number: i, Off: a.Kinds[i].Off}, true
}

// Commit stores the audience, if it is what was read.
func (a *Audience) Commit() store.Commit {
	r := cell.Audience{
		Life: a.Life, Shards: int32(a.Shards), FallbackZone: a.FallbackZone, CreatedMs: int64(a.Created),
		Generation: a.Generation, Replacing: a.Replacing, Leaving: a.Leaving, Ended: a.Ended, Gone: a.Gone,
	}
	for _, k := range a.Kinds {
		r.Kinds = append(r.Kinds, &cell.Kind{Name: k.Name, Off: k.Off})
	}
	c := store.Cell{ID: RecordID(a.Name), List: CatalogList, Body: encode(&r)}
	if a.Gone {
		c.List = ""
	}
	return store.Commit{Puts: []store.Put{{Cell: c, If: a.Version}}}
}

// DecodeAudience reads the cell of an audience.
func DecodeAudience(c store.Cell) (*Audience, error) {
	var r cell.Audience
	if err := r.UnmarshalVT(c.Body); err != nil {
		return nil, fmt.Errorf("decode audience: %w", err)
	}
	if r.Shards < 1 || r.Shards > MaxShards || r.Shards&(r.Shards-1) != 0 || len(r.Kinds) > MaxKinds {
		return nil, fmt.Errorf("decode audience: %d shards, %d kinds", r.Shards, len(r.Kinds))
	}
	a := &Audience{
		Name: c.ID.Key(), Version: c.Version,
		Life: r.Life, Shards: int(r.Shards), FallbackZone: r.FallbackZone, Created: store.Millis(r.CreatedMs),
		Generation: r.Generation, Replacing: r.Replacing, Leaving: r.Leaving, Ended: r.Ended, Gone: r.Gone,
	}
	for _, k := range r.Kinds {
		a.Kinds = append(a.Kinds, NamedKind{Name: k.Name, Off: k.Off})
	}
	return a, nil
}

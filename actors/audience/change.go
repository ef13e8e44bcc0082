package audience

import (
	"slices"

	"github.com/ddq-io/ddq/store"
)

// Limits of a shard that a node sets.
type Limits struct {
	Leaf       int   // recipients of a leaf that is split; 0 means 256
	Recipients int64 // of the shard
}

const (
	splitAt = 256
	maxLeaf = store.MaxCell / 2 // bytes of one that cannot be split
)

// View is what was read of a shard of an audience: its directory, and leaves.
type View struct {
	Dir    *Directory
	Leaves map[store.CellID]*Leaf
}

// Change is what is to become of one recipient.
type Change struct {
	ID  string
	Put *Recipient // what it is from now on; nil: it is removed
}

// Outcome is what became of a change.
type Outcome uint8

const (
	Same    Outcome = iota + 1 // it is so already, or not there to be removed
	Added                      // it was none before
	Changed                    // its preferences, its data or its zone
	Removed
	Full // there is no room for another recipient, or for another zone
)

// Apply makes changes of recipients, and returns the commit that stores them; without
// puts when nothing changes. The view has all leaves that Directory.Covering names. It is
// used up: what is not committed is read again.
func (v *View) Apply(changes []Change, limits Limits) (store.Commit, []Outcome) {
	e := editor{View: v, limits: limits, touched: make(map[store.CellID]bool)}
	outcomes := make([]Outcome, len(changes))
	for i := range changes {
		if c := &changes[i]; c.Put != nil {
			outcomes[i] = e.put(c.Put)
		} else {
			outcomes[i] = e.remove(c.ID)
		}
	}
	return e.commit(), outcomes
}

// Sweep removes what is in some leaves of the view, and is needed no more: recipients whom a
// replacement that is at its end has not brought, and entries of before that no run looks at.
// The view has the leaves that Directory.Covering names of those who have Moved, too.
func (v *View) Sweep(leaves []store.CellID) (c store.Commit, removed int64) {
	e := editor{View: v, touched: make(map[store.CellID]bool)}
	for _, id := range leaves {
		l := v.Leaves[id]
		for i := range l.Entries {
			x := &l.Entries[i]
			if v.outdated(x) {
				e.leave(x, id)
				removed++
			}
			if v.Dir.unseen(x) {
				e.touched[id] = true
			}
		}
	}
	return e.commit(), removed
}

// Moved returns the recipients whom Sweep removes from some leaves, and who may lie in others as well,
// where runs look for them that began before they moved.
func (v *View) Moved(leaves []store.CellID) (ids []string) {
	for _, id := range leaves {
		for i := range v.Leaves[id].Entries {
			if x := &v.Leaves[id].Entries[i]; x.From > 0 && v.outdated(x) {
				ids = append(ids, x.ID)
			}
		}
	}
	return ids
}

// outdated reports whether an entry is of a recipient whom a replacement that ends has not brought.
func (v *View) outdated(e *Entry) bool {
	return v.Dir.Replacing && e.Live() && e.Generation < v.Dir.Generation
}

// unseen reports whether an entry is of before, and no run takes it.
func (d *Directory) unseen(e *Entry) bool {
	return !e.Live() && !slices.ContainsFunc(d.Runs, func(r Run) bool { return e.counts(r.Version) })
}

// editor is one Apply or Sweep on its way.
type editor struct {
	*View
	limits  Limits
	touched map[store.CellID]bool // leaves that are to be stored
}

// put makes a recipient what it is to be.
func (e *editor) put(r *Recipient) Outcome {
	found := e.find(r.ID)
	now := found.live()
	switch {
	case now == nil:
		return e.add(r)
	case now.Zone != r.Zone:
		return e.move(r, found)
	case now.same(r) && (!e.Dir.Replacing || now.Generation == e.Dir.Generation):
		return Same
	}
	outcome := Changed
	if now.same(r) {
		outcome = Same
	}
	e.prefer(r, found)
	return outcome
}

func (e *editor) add(r *Recipient) Outcome {
	if e.Dir.Recipients() >= e.limits.Recipients || !e.hasRoom(r) {
		return Full
	}
	e.insert(r)
	return Added
}

// move gives a recipient another zone. Runs that began before take it where it was.
func (e *editor) move(r *Recipient, found entries) Outcome {
	if !e.hasRoom(r) {
		return Full
	}
	e.prefer(r, found)
	now := found.live()
	now.Until = e.Dir.Version + 1
	e.Dir.zone(now.Zone).Recipients--
	e.insert(r) // after which found points to the wrong entries
	return Changed
}

// prefer gives all entries of a recipient its new preferences: they count as they are
// when a task is made.
func (e *editor) prefer(r *Recipient, found entries) {
	for _, f := range found {
		if f.Left {
			continue
		}
		f.Preferences, f.Data, f.Generation = r.Preferences, r.Data, e.Dir.Generation
		e.touched[f.leaf] = true
	}
}

func (e *editor) remove(id string) Outcome {
	found := e.find(id)
	now := found.live()
	if now == nil {
		return Same
	}
	e.leaveAll(now.Zone, found)
	return Removed
}

// leave removes a recipient by the entry that is what it is now. One that did not move has no other.
func (e *editor) leave(now *Entry, leaf store.CellID) {
	found := entries{{now, leaf}}
	if now.From > 0 {
		found = e.find(now.ID)
	}
	e.leaveAll(now.Zone, found)
}

// leaveAll removes a recipient, who is in a zone now, with all entries at once: a run finds one of them.
func (e *editor) leaveAll(zone string, found entries) {
	e.Dir.zone(zone).Recipients--
	for _, f := range found {
		e.Dir.leave(f.Entry)
		e.touched[f.leaf] = true
	}
}

// leave makes an entry one of a recipient who is none any more. It stays while runs are open that
// began before: one that is taken back has to find the task that it made. Nodes that know nothing of
// Left take it for one who wants none.
func (d *Directory) leave(e *Entry) {
	if e.Live() {
		e.Until = d.Version + 1
	}
	e.Left, e.Preferences, e.Data = true, Preferences{Disabled: true}, nil
}

// entries are those of one recipient.
type entries []found

type found struct {
	*Entry
	leaf store.CellID
}

func (e entries) live() *Entry {
	for _, f := range e {
		if f.Live() {
			return f.Entry
		}
	}
	return nil
}

// find returns the entries of a recipient, of all zones.
func (e *editor) find(id string) (found entries) {
	_, at := Locate(id, e.Dir.Shards)
	for _, z := range e.Dir.Zones {
		leaf := z.leafOf(at)
		found = e.Leaves[leaf].appendEntries(found, leaf, at, id)
	}
	return found
}

func (l *Leaf) appendEntries(to entries, leaf store.CellID, at Position, id string) entries {
	i, _ := slices.BinarySearchFunc(l.Entries, Entry{At: at, Recipient: Recipient{ID: id}}, compareEntries)
	for ; i < len(l.Entries) && l.Entries[i].ID == id; i++ {
		to = append(to, found{&l.Entries[i], leaf})
	}
	return to
}

// hasRoom reports whether a recipient can be inserted.
func (e *editor) hasRoom(r *Recipient) bool {
	z := e.Dir.zone(r.Zone)
	if z == nil {
		return len(e.Dir.Zones) < MaxZones
	}
	_, at := Locate(r.ID, e.Dir.Shards)
	p := z.leaves[z.leaves.at(at)]
	return p.bits < deepest || e.Leaves[p.id(z.Name)].bytes() < maxLeaf
}

// insert adds the entry of a recipient.
func (e *editor) insert(r *Recipient) {
	z := e.zoneFor(r.Zone)
	_, at := Locate(r.ID, e.Dir.Shards)
	id := z.leafOf(at)
	l := e.Leaves[id]
	entry := Entry{Recipient: *r, At: at, Generation: e.Dir.Generation}
	if len(e.Dir.Runs) > 0 {
		entry.From = e.Dir.Version + 1
	}
	i, _ := slices.BinarySearchFunc(l.Entries, entry, compareEntries)
	l.Entries = slices.Insert(l.Entries, i, entry)
	z.Recipients++
	e.touched[id] = true
}

// zoneFor returns a zone, which may be a new one.
func (e *editor) zoneFor(name string) *Zone {
	i, there := e.Dir.find(name)
	if there {
		return e.Dir.Zones[i]
	}
	z := &Zone{Name: name, leaves: newTree()}
	e.Dir.Zones = slices.Insert(e.Dir.Zones, i, z)
	e.Leaves[z.leafOf(0)] = &Leaf{}
	return z
}

func (l *Leaf) bytes() (n int) {
	for i := range l.Entries {
		n += len(l.Entries[i].ID) + len(l.Entries[i].Data) + 32
	}
	return n
}

// tidy removes entries that no run looks at, and what only open runs need to know.
func (e *editor) tidy(l *Leaf) {
	l.Entries = slices.DeleteFunc(l.Entries, func(x Entry) bool { return e.Dir.unseen(&x) })
	for i := range l.Entries {
		x := &l.Entries[i]
		if !slices.ContainsFunc(e.Dir.Runs, func(r Run) bool { return r.Version < x.From }) {
			x.From = 0
		}
	}
}

// commit stores the leaves that were touched, split where they are too large, and the
// directory.
func (e *editor) commit() store.Commit {
	if len(e.touched) == 0 {
		return store.Commit{}
	}
	c := store.Commit{Puts: []store.Put{{}}} // the directory comes first
	for _, z := range e.Dir.Zones {
		for i := 0; i < len(z.leaves); {
			p := z.leaves[i]
			id := p.id(z.Name)
			if !e.touched[id] {
				i++
				continue
			}
			l := e.Leaves[id]
			e.tidy(l)
			if len(l.Entries) > e.limits.leaf() && p.bits < deepest {
				e.split(z, i, &c)
				continue
			}
			c.Puts = append(c.Puts, store.Put{Cell: store.Cell{ID: id, Body: l.body()}, If: l.Version})
			i++
		}
	}
	c.Puts[0] = e.Dir.put()
	return c
}

// split puts two leaves in the place of one.
func (e *editor) split(z *Zone, i int, c *store.Commit) {
	id := z.leaves[i].id(z.Name)
	l := e.Leaves[id]
	if l.Version > 0 {
		c.Puts = append(c.Puts, store.Put{Cell: store.Cell{ID: id}, If: l.Version})
	}
	left, right := z.leaves.split(i)
	cut := slices.IndexFunc(l.Entries, func(x Entry) bool { return x.At >= right.first })
	if cut < 0 {
		cut = len(l.Entries)
	}
	e.place(left.id(z.Name), l.Entries[:cut])
	e.place(right.id(z.Name), l.Entries[cut:])
}

func (e *editor) place(id store.CellID, entries []Entry) {
	e.Leaves[id], e.touched[id] = &Leaf{Entries: entries}, true
}

func (l Limits) leaf() int {
	if l.Leaf == 0 {
		return splitAt
	}
	return l.Leaf
}

// Find returns a recipient as it is now, or nil.
func (v *View) Find(id string) *Recipient {
	e := editor{View: v}
	if now := e.find(id).live(); now != nil {
		return &now.Recipient
	}
	return nil
}

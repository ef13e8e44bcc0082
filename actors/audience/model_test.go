package audience

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ddq-io/ddq/store"
)

var zoneNames = []string{"America/New_York", "Asia/Kolkata", "Europe/Berlin", "Pacific/Kiritimati", "UTC"}

func drawRecipient(t *rapid.T) Recipient {
	r := Recipient{
		ID:   fmt.Sprint("r", rapid.IntRange(0, 199).Draw(t, "id")),
		Zone: rapid.SampledFrom(zoneNames).Draw(t, "zone"),
	}
	r.Disabled = rapid.IntRange(0, 9).Draw(t, "disabled") == 0
	if rapid.IntRange(0, 4).Draw(t, "off") == 0 {
		r.Off = 1
	}
	if rapid.Bool().Draw(t, "has data") {
		r.Data = []byte(rapid.SampledFrom([]string{"x", "yy"}).Draw(t, "data"))
	}
	return r
}

func (p prefix) cell(zone string, body []byte) store.Cell {
	return store.Cell{ID: p.id(zone), Version: 1, Body: body}
}

func zonesByName(name string) *time.Location {
	zone, err := time.LoadLocation(name)
	if err != nil {
		panic(err)
	}
	return zone
}

// shardOfTest is the cells of one shard of an audience.
type shardOfTest map[store.CellID]store.Cell

// commit applies a commit as stores do, and reports whether it was stale.
func (s shardOfTest) commit(t fataler, c store.Commit) bool {
	for _, p := range c.Puts {
		if p.If != store.AnyVersion && p.If != s[p.ID].Version {
			return false
		}
	}
	seen := make(map[store.CellID]bool)
	for _, p := range c.Puts {
		if seen[p.ID] {
			t.Fatalf("cell %q is put twice", p.ID)
		}
		seen[p.ID] = true
		version := s[p.ID].Version
		if len(p.Body) == 0 {
			delete(s, p.ID)
			continue
		}
		p.Version = version + 1
		s[p.ID] = p.Cell
	}
	return true
}

const shardsOfTest = 2

func (s shardOfTest) directory(t fataler) *Directory {
	cell := s[DirectoryID]
	if cell.Version == 0 {
		return NewDirectory(shardsOfTest)
	}
	d, err := DecodeDirectory(cell)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// leaf returns a leaf, or nil when it is not there any more.
func (s shardOfTest) leaf(t fataler, id store.CellID) *Leaf {
	cell := s[id]
	if cell.Version == 0 {
		return nil
	}
	l, err := DecodeLeaf(cell, shardsOfTest)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (s shardOfTest) view(t fataler, d *Directory, leaves []store.CellID) *View {
	v := &View{Dir: d, Leaves: make(map[store.CellID]*Leaf)}
	for _, id := range leaves {
		if v.Leaves[id] = s.leaf(t, id); v.Leaves[id] == nil {
			t.Fatalf("leaf %q of the latest directory is not there", id)
		}
	}
	return v
}

func (s shardOfTest) viewToSweep(t fataler, d *Directory, leaves []store.CellID) *View {
	v := s.view(t, d, leaves)
	maps.Copy(v.Leaves, s.view(t, d, d.Covering(v.Moved(leaves))).Leaves)
	return v
}

// model is what happens to an audience, said plainly.
type model struct {
	*rapid.T
	shard      shardOfTest
	now        map[string]Recipient
	brought    map[string]int64 // the replacement that brought a recipient last
	generation int64
	replacing  bool
	walks      []*walkOfTest
	runs       uint64
}

// walkOfTest is a walk that is under way, and who must get a task of it.
type walkOfTest struct {
	Walk
	dir    *Directory // as it read it last
	next   *Stretch   // that it is about to look at
	leaves []*Leaf    // those that it has read of it
	ids    []store.CellID
	got    map[string]bool
	began  map[string]bool // recipients when it began
	ever   map[string]bool // of those, who wanted a task at some time since
	always map[string]bool // and who did all the time, and never left
}

// TestEachRecipientGetsOneTask plays changes of recipients, of their zones and of leaves
// between the reads and the commits of several walks.
func TestEachRecipientGetsOneTask(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{T: t, shard: make(shardOfTest), now: make(map[string]Recipient), brought: make(map[string]int64)}
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			m.step()
		}
		for len(m.walks) > 0 {
			m.walk(m.walks[0])
		}
		m.compare()
	})
}

func (m *model) step() {
	switch kind := rapid.IntRange(0, 11).Draw(m.T, "step"); {
	case kind < 4 || len(m.now) == 0:
		m.change(rapid.IntRange(1, 40).Draw(m.T, "changes"))
	case kind == 4:
		m.begin()
	case kind == 5:
		m.replace()
	case kind == 6:
		m.sweep()
	case len(m.walks) > 0:
		m.walk(rapid.SampledFrom(m.walks).Draw(m.T, "walk"))
	}
}

// change puts and removes some recipients in one commit.
func (m *model) change(n int) {
	var changes []Change
	var ids []string
	for range n {
		r := drawRecipient(m.T)
		c := Change{ID: r.ID, Put: &r}
		if rapid.IntRange(0, 5).Draw(m.T, "remove") == 0 {
			c.Put = nil
		}
		changes, ids = append(changes, c), append(ids, r.ID)
	}
	d := m.shard.directory(m.T)
	v := m.shard.view(m.T, d, d.Covering(ids))
	c, outcomes := v.Apply(changes, Limits{Leaf: 8, Recipients: 1 << 40})
	for i := range changes {
		if want := m.apply(&changes[i]); outcomes[i] != want {
			m.Fatalf("%+v: %v, want %v", changes[i], outcomes[i], want)
		}
	}
	if !m.shard.commit(m.T, c) {
		m.Fatal("a commit on what was just read is stale")
	}
	m.compare()
}

func (m *model) apply(c *Change) Outcome {
	was, there := m.now[c.ID]
	if c.Put == nil {
		delete(m.now, c.ID)
		m.left(c.ID)
		if there {
			return Removed
		}
		return Same
	}
	m.now[c.ID], m.brought[c.ID] = *c.Put, m.generation
	m.prefers(c.Put)
	switch {
	case !there:
		return Added
	case was.Zone == c.Put.Zone && was.same(c.Put):
		return Same
	}
	return Changed
}

func (m *model) left(id string) {
	for _, w := range m.walks {
		delete(w.always, id)
	}
}

func (m *model) prefers(r *Recipient) {
	for _, w := range m.walks {
		if wants(r) {
			w.ever[r.ID] = w.began[r.ID]
		} else {
			delete(w.always, r.ID)
		}
	}
}

func wants(r *Recipient) bool { return !r.Disabled && r.Off&1 == 0 }

// compare reads all leaves.
func (m *model) compare() {
	d := m.shard.directory(m.T)
	got, cells := m.read(d)
	if len(got) != len(m.now) || d.Recipients() != int64(len(m.now)) {
		m.Fatalf("%d recipients, counted as %d, want %d", len(got), d.Recipients(), len(m.now))
	}
	for id, r := range m.now {
		if g := got[id]; g.Zone != r.Zone || !g.same(&r) {
			m.Fatalf("%s is %+v, want %+v", id, g, r)
		}
	}
	if stored := len(m.shard); len(d.Zones) > 0 && stored != cells+1 {
		m.Fatalf("%d cells, and the directory knows %d", stored, cells+1)
	}
}

// read returns the recipients of all leaves, and how many leaves there are.
func (m *model) read(d *Directory) (got map[string]Recipient, cells int) {
	got = make(map[string]Recipient)
	for cursor, more := (Cursor{}), true; more; {
		var leaves []store.CellID
		leaves, cursor, more = d.Page(cursor, 3)
		for _, l := range m.shard.view(m.T, d, leaves).Leaves {
			cells++
			if !slices.IsSortedFunc(l.Entries, compareEntries) {
				m.Fatalf("a leaf is out of order: %v", l.Entries)
			}
			for _, e := range l.Entries {
				if _, twice := got[e.ID]; e.Live() && twice {
					m.Fatalf("%s is there twice", e.ID)
				}
				if e.Live() {
					got[e.ID] = e.Recipient
				}
			}
		}
	}
	return got, cells
}

func (m *model) begin() {
	if len(m.walks) >= 3 {
		return
	}
	m.runs++
	w := &walkOfTest{got: make(map[string]bool), began: make(map[string]bool), ever: make(map[string]bool), always: make(map[string]bool)}
	w.Order = Order{
		Schedule: "s", Run: fmt.Sprint("run-", m.runs), At: store.Millis(1_900_000_000_000), Quiet: Ignore,
		Spread: Spread{Window: time.Minute, Grain: time.Second},
		Rotate: rapid.Bool().Draw(m.T, "rotate"), Local: rapid.Bool().Draw(m.T, "local"),
	}
	w.Occurrence = w.At
	d := m.shard.directory(m.T)
	version, c, ok := d.Begin(Run{ID: w.Run, Topic: "t", Schedule: w.Schedule})
	if !ok || !m.shard.commit(m.T, c) {
		m.Fatal("a run cannot begin")
	}
	w.Walk.Begin(&Audience{Shards: 1}, Kind{Number: 0}, int64(len(m.now)))
	w.BeginShard(0, version, m.shard.directory(m.T), zonesByName)
	for id, r := range m.now {
		w.began[id] = true
		if wants(&r) {
			w.ever[id], w.always[id] = true, true
		}
	}
	m.walks = append(m.walks, w)
}

// walk takes one of the three parts of a step: to read the directory, to read a leaf, to commit.
func (m *model) walk(w *walkOfTest) {
	pace := Pace{Lead: 48 * time.Hour, Batch: 10}
	switch {
	case w.next == nil:
		w.dir = m.shard.directory(m.T)
		n, _, ok := w.Due(pace)
		if !ok {
			m.over(w)
			return
		}
		s := w.Next(n, w.dir, w.At, pace)
		w.next, w.ids, w.leaves = &s, w.Leaves(s, w.dir), nil
	case len(w.ids) > 0:
		l := m.shard.leaf(m.T, w.ids[0])
		if l == nil { // split: begin again
			w.next = nil
			return
		}
		w.leaves, w.ids = append(w.leaves, l), w.ids[1:]
	default:
		for _, o := range w.Take(*w.next, w.leaves, pace, zonesByName) {
			id := o.Recipient.ID
			if w.got[id] {
				m.Fatalf("%s gets two", id)
			}
			if !w.ever[id] {
				m.Fatalf("%s gets one, and joined later or wanted none", id)
			}
			w.got[id] = true
			if _, at := Locate(o.Recipient.ID, shardsOfTest); !w.Local && o.Due != w.At.Add(w.Place(at)) {
				m.Fatalf("%s is due at %v", o.Recipient.ID, o.Due)
			}
		}
		w.next = nil
	}
}

// over compares what a walk made with who was there when it began.
func (m *model) over(w *walkOfTest) {
	m.walks = slices.DeleteFunc(m.walks, func(x *walkOfTest) bool { return x == w })
	for id := range w.always {
		if !w.got[id] {
			m.Fatalf("%s gets none: %+v", id, w.Walk)
		}
	}
	if !w.Settle() {
		m.Fatalf("a walk is at its end, and not over: %+v", w.Walk)
	}
	d := m.shard.directory(m.T)
	if !m.shard.commit(m.T, d.End(w.Run)) {
		m.Fatal("a run cannot end")
	}
}

func (m *model) replace() {
	d := m.shard.directory(m.T)
	c, ok := d.Replace(m.generation + 1)
	if !ok || !m.shard.commit(m.T, c) {
		m.Fatal("a replacement cannot begin")
	}
	m.generation, m.replacing = m.generation+1, true
}

// sweep ends a replacement, a few leaves at a time, with changes and walks in between.
func (m *model) sweep() {
	for cursor, more := (Cursor{}), true; more; {
		d := m.shard.directory(m.T)
		var leaves []store.CellID
		leaves, cursor, more = d.Page(cursor, 3)
		c, removed := m.shard.viewToSweep(m.T, d, leaves).Sweep(leaves)
		if !m.shard.commit(m.T, c) {
			m.Fatal("a sweep of what was just read is stale")
		}
		if got := m.swept(); got != removed {
			m.Fatalf("%d are gone, and a sweep says %d", got, removed)
		}
		m.meanwhile()
	}
	d := m.shard.directory(m.T)
	c, ok := d.EndReplacement(m.generation)
	if !ok || !m.shard.commit(m.T, c) {
		m.Fatal("a replacement cannot end")
	}
	for id := range m.now {
		if m.outdated(id) {
			m.Fatalf("%s outlasts a replacement that has not brought it", id)
		}
	}
	m.replacing = false
	m.compare()
}

// swept takes note of who is gone after a part of a sweep.
func (m *model) swept() (removed int64) {
	got, _ := m.read(m.shard.directory(m.T))
	for _, id := range slices.Sorted(maps.Keys(m.now)) {
		if _, there := got[id]; there {
			continue
		}
		if !m.outdated(id) {
			m.Fatalf("%s is swept away, and was brought", id)
		}
		delete(m.now, id)
		m.left(id)
		removed++
	}
	m.compare()
	return removed
}

func (m *model) outdated(id string) bool { return m.replacing && m.brought[id] < m.generation }

// meanwhile has something happen between two parts of a sweep.
func (m *model) meanwhile() {
	switch kind := rapid.IntRange(0, 3).Draw(m.T, "meanwhile"); {
	case kind == 0:
		m.change(rapid.IntRange(1, 5).Draw(m.T, "changes"))
	case kind > 1 && len(m.walks) > 0:
		w := rapid.SampledFrom(m.walks).Draw(m.T, "walk")
		for range rapid.IntRange(1, 20).Draw(m.T, "parts") {
			if slices.Contains(m.walks, w) {
				m.walk(w)
			}
		}
	}
}

// fataler is what *testing.T and *rapid.T have in common here.
type fataler interface {
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

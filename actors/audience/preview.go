package audience

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/ddq-io/ddq/store"
)

// Preview is what a run would do with the recipients as they are. It is made by the code of
// walks, and changes nothing.
type Preview struct {
	Begin      store.Millis
	Exact      bool // each recipient was looked at; else some were, and the counts are estimates
	Recipients int64
	Zones      map[string]int64 // recipients of each, exact
	Verdicts   [Verdicts]int64  // recipients by what becomes of them
	Width      time.Duration    // of a bucket
	Buckets    []Bucket         // when tasks are due; those without any are left out
	Examples   []Example
}

// Bucket counts the tasks that are due from a time on.
type Bucket struct {
	At    store.Millis
	Tasks int64
}

// Example is what becomes of one recipient.
type Example struct {
	ID, Zone string
	Verdict  Verdict
	Due      store.Millis // 0: it gets no task
}

// Tasks is how many there are.
func (p *Preview) Tasks() int64 { return p.Verdicts[Taken] + p.Verdicts[Deferred] }

const (
	examples   = 20
	maxBuckets = 60
)

// widths are those that buckets may have.
var widths = [...]time.Duration{
	time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute, 10 * time.Minute,
	30 * time.Minute, time.Hour, 2 * time.Hour,
}

// Previewer makes a Preview of the recipients that it is given.
type Previewer struct {
	walk    Walk
	out     Preview
	seen    int64
	noTime  int64 // of zones that do not have the time
	dues    map[store.Millis]int64
	chosen  []chosen
	zonesOf Zones
}

// chosen is an example, and how early it comes among all that could be.
type chosen struct {
	Example
	rank Position
}

// NewPreviewer begins the preview of what an order asks for, through an audience with these
// directories.
func NewPreviewer(o Order, a *Audience, kind Kind, dirs []*Directory, zones Zones) *Previewer {
	p := &Previewer{walk: Walk{Order: o}, dues: make(map[store.Millis]int64), zonesOf: zones}
	p.out = Preview{Begin: o.At, Zones: make(map[string]int64)}
	for _, d := range dirs {
		for _, z := range d.Zones {
			if z.Recipients > 0 {
				p.out.Zones[z.Name] += z.Recipients
				p.out.Recipients += z.Recipients
			}
		}
	}
	p.walk.Begin(a, kind, p.out.Recipients)
	for n, d := range dirs {
		p.walk.BeginShard(n, d.Version, d, zones)
	}
	p.noTime = p.walk.Verdicts[NoTime]
	return p
}

// Add looks at the recipients of a leaf.
func (p *Previewer) Add(l *Leaf) {
	for i := range l.Entries {
		if e := &l.Entries[i]; e.Live() {
			p.add(e)
		}
	}
}

func (p *Previewer) add(e *Entry) {
	x := Example{ID: e.ID, Zone: e.Zone, Verdict: NoTime}
	if track, there := p.walk.trackOf(e.Zone); there {
		verdict, t := p.walk.judge(track, e, p.zonesOf)
		p.walk.Verdicts[verdict]++
		p.seen++
		if x.Verdict = verdict; t.Due != 0 {
			x.Due = t.Due
			p.dues[t.Due/1000*1000]++
		}
	}
	// The rank is another hash of the id: examples are from all over the window.
	p.choose(chosen{x, e.At * 0x9e3779b97f4a7c15})
}

func (p *Previewer) choose(c chosen) {
	i, _ := slices.BinarySearchFunc(p.chosen, c, func(a, b chosen) int { return cmp.Compare(a.rank, b.rank) })
	if i < examples {
		p.chosen = slices.Insert(p.chosen, i, c)
		p.chosen = p.chosen[:min(len(p.chosen), examples)]
	}
}

// Preview is what was found, for all recipients.
func (p *Previewer) Preview() Preview {
	all := p.out.Recipients - p.noTime
	p.out.Exact = p.seen >= all
	scale := func(n int64) int64 {
		if p.out.Exact || p.seen == 0 {
			return n
		}
		return int64(float64(n)*float64(all)/float64(p.seen) + 0.5)
	}
	for v, n := range p.walk.Verdicts {
		if p.out.Verdicts[v] = n; Verdict(v) != NoTime {
			p.out.Verdicts[v] = scale(n)
		}
	}
	p.fill(scale)
	for _, c := range p.chosen {
		p.out.Examples = append(p.out.Examples, c.Example)
	}
	slices.SortFunc(p.out.Examples, func(a, b Example) int { return cmp.Or(cmp.Compare(a.Due, b.Due), cmp.Compare(a.ID, b.ID)) })
	return p.out
}

// fill makes the buckets: as narrow as they may be for their number.
func (p *Previewer) fill(scale func(int64) int64) {
	dues := slices.Sorted(maps.Keys(p.dues))
	if len(dues) == 0 {
		return
	}
	span := dues[len(dues)-1].Sub(dues[0])
	i := slices.IndexFunc(widths[:], func(w time.Duration) bool { return span/w < maxBuckets })
	if i < 0 {
		i = len(widths) - 1
	}
	p.out.Width = widths[i]
	width := store.Millis(p.out.Width.Milliseconds())
	for _, due := range dues {
		at, n := due/width*width, p.dues[due]
		if last := len(p.out.Buckets) - 1; last >= 0 && p.out.Buckets[last].At == at {
			p.out.Buckets[last].Tasks += n
			continue
		}
		p.out.Buckets = append(p.out.Buckets, Bucket{At: at, Tasks: n})
	}
	for i := range p.out.Buckets {
		p.out.Buckets[i].Tasks = scale(p.out.Buckets[i].Tasks)
	}
}

// sampled is of how many leaves a preview of many recipients looks at one.
const sampled = 100

// Sample chooses leaves of a directory: all of them, or some that are spread over zones and
// positions. Number is that of the shard.
func (d *Directory) Sample(number int, all bool) (leaves []store.CellID) {
	i := number * 37 // so that small zones are seen in some shards
	for _, z := range d.Zones {
		for _, p := range z.leaves {
			if i++; all || i%sampled == 0 {
				leaves = append(leaves, p.id(z.Name))
			}
		}
	}
	return leaves
}

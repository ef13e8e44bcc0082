package audience

import (
	"fmt"
	"testing"
	"time"

	"github.com/ddq-io/ddq/store"
)

// TestPreviewIsWhatARunDoes compares a preview with the walk of a run at the same time.
func TestPreviewIsWhatARunDoes(t *testing.T) {
	for _, local := range []bool{false, true} {
		shard := make(shardOfTest)
		for i := range 300 {
			id := fmt.Sprint("r", i)
			if n, _ := Locate(id, shardsOfTest); n != 0 {
				continue
			}
			r := &Recipient{ID: id, Zone: zoneNames[i%len(zoneNames)]}
			switch i % 7 {
			case 0:
				r.Off = 1
			case 1:
				r.Disabled = true
			case 2:
				r.Quiet = Quiet{From: 0, To: 12 * 60}
			}
			d := shard.directory(t)
			c, _ := shard.view(t, d, d.Covering([]string{id})).Apply([]Change{{ID: id, Put: r}}, Limits{Recipients: 1000, Leaf: 8})
			shard.commit(t, c)
		}
		d := shard.directory(t)
		o := Order{
			Run: "run", Schedule: "s", At: 1_900_000_000_000, Occurrence: 1_900_000_000_000, Quiet: Defer, Local: local,
			Spread: Spread{Window: time.Hour, Grain: time.Second},
		}
		leaves, _, _ := d.Page(Cursor{}, 10_000)
		p := NewPreviewer(o, &Audience{Shards: 1}, Kind{}, []*Directory{d}, zonesByName)
		for _, id := range leaves {
			p.Add(shard.leaf(t, id))
		}
		got := p.Preview()

		w := &Walk{Order: o}
		w.Begin(&Audience{Shards: 1}, Kind{}, d.Recipients())
		w.BeginShard(0, d.Version, d, zonesByName)
		dues, pace := make(map[string]store.Millis), Pace{Lead: 48 * time.Hour, Batch: 50}
		for {
			n, _, ok := w.Due(pace)
			if !ok {
				break
			}
			s := w.Next(n, d, o.At, pace)
			var read []*Leaf
			for _, id := range w.Leaves(s, d) {
				read = append(read, shard.leaf(t, id))
			}
			for _, ticket := range w.Take(s, read, pace, zonesByName) {
				dues[ticket.Recipient.ID] = ticket.Due
			}
		}
		if !got.Exact || got.Verdicts != w.Verdicts || got.Tasks() != int64(len(dues)) || got.Recipients != d.Recipients() {
			t.Errorf("local %v: the preview has %v, exact %v, the run %v", local, got.Verdicts, got.Exact, w.Verdicts)
		}
		in := int64(0)
		for _, b := range got.Buckets {
			in += b.Tasks
		}
		if in != got.Tasks() || len(got.Buckets) > maxBuckets || len(got.Examples) != examples {
			t.Errorf("local %v: %d tasks in %d buckets, %d examples", local, in, len(got.Buckets), len(got.Examples))
		}
		for _, x := range got.Examples {
			if dues[x.ID] != x.Due {
				t.Errorf("local %v: %+v, and its task is due at %v", local, x, dues[x.ID])
			}
		}
	}
}

// TestSampleEstimatesAll looks at one leaf in a hundred.
func TestSampleEstimatesAll(t *testing.T) {
	d := &Directory{Shards: 1, Version: 1}
	z := &Zone{Name: "UTC", leaves: newTree()}
	for i := 0; i < len(z.leaves) && len(z.leaves) < 2000; i += 2 {
		z.leaves.split(i)
		if i+2 >= len(z.leaves) {
			i = -2
		}
	}
	z.Recipients = int64(len(z.leaves)) * 10
	d.Zones = []*Zone{z}
	p := NewPreviewer(Order{At: 1, Quiet: Ignore, Spread: Spread{Window: time.Hour}}, &Audience{Shards: 1}, Kind{None: true}, []*Directory{d}, zonesByName)
	leaves := d.Sample(0, false)
	if n := len(z.leaves) / sampled; len(leaves) != n {
		t.Fatalf("%d leaves of %d", len(leaves), len(z.leaves))
	}
	for n := range leaves {
		l := &Leaf{}
		for i := range 10 {
			l.Entries = append(l.Entries, Entry{Recipient: Recipient{ID: fmt.Sprint(n, i), Zone: "UTC"}, At: Position(n * 1000)})
		}
		p.Add(l)
	}
	if got := p.Preview(); got.Exact || got.Tasks() != z.Recipients || got.Zones["UTC"] != z.Recipients {
		t.Errorf("estimated %d tasks of %d, exact %v", got.Tasks(), z.Recipients, got.Exact)
	}
}

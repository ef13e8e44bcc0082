package pulse

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/ddq-io/ddq/store"
)

// TestPulse runs the scenarios of testdata. Times are of one day; each node has a pulse.
func TestPulse(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		x := &scenario{nodes: make(map[string]*Pulse)}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			x.T, x.TestData = t, d
			return x.run()
		})
	})
}

type scenario struct {
	*testing.T
	*datadriven.TestData
	nodes map[string]*Pulse
}

var midnight = time.Date(2030, 6, 1, 0, 0, 0, 0, time.UTC)

func (x *scenario) at() store.Millis {
	var text string
	x.ScanArgs(x.T, "at", &text)
	at, err := time.Parse("15:04:05", text)
	if err != nil {
		x.Fatal(err)
	}
	return store.Millis(midnight.UnixMilli() + at.Sub(at.Truncate(24*time.Hour)).Milliseconds())
}

func (x *scenario) node() *Pulse {
	name := "a"
	x.MaybeScanArgs(x.T, "node", &name)
	if x.nodes[name] == nil {
		x.nodes[name] = New()
	}
	return x.nodes[name]
}

var names = [Events]string{"enqueued", "delivered", "acked", "failed", "dead"}

func (x *scenario) run() string {
	switch x.Cmd {
	case "count":
		var tally Tally
		for e, name := range names {
			x.MaybeScanArgs(x.T, name, &tally[e])
		}
		x.node().Count(x.at(), &tally)
	case "deliver":
		x.deliver()
	case "idle":
		return fmt.Sprintln(x.node().Idle(x.at()))
	case "report":
		return show(x.node().Report(x.at()))
	case "fleet":
		sum := NewReport(x.at())
		for _, name := range slices.Sorted(maps.Keys(x.nodes)) {
			r := x.nodes[name].Report(x.at() - x.behind(name))
			sum.Merge(&r)
		}
		return show(sum)
	default:
		x.Fatalf(x.T, "unknown command %s", x.Cmd)
	}
	return ""
}

// behind is by how much the clock of a node is behind.
func (x *scenario) behind(name string) store.Millis {
	ms := 0
	if x.HasArg("behind-" + name) {
		x.ScanArgs(x.T, "behind-"+name, &ms)
	}
	return store.Millis(ms)
}

func (x *scenario) deliver() {
	var late []store.Millis
	var text string
	x.ScanArgs(x.T, "late", &text)
	for _, one := range strings.Split(text, "/") {
		var ms store.Millis
		n := 1
		if _, err := fmt.Sscanf(one, "%dx%d", &n, &ms); err != nil {
			x.Fatal(err)
		}
		for range n {
			late = append(late, ms)
		}
	}
	x.node().Deliver(x.at(), late)
}

func show(r Report) string {
	var out strings.Builder
	for name, w := range map[string]*Window{"1 minute": &r.Minute, "2 hour": &r.Hour} {
		if w.empty() {
			continue
		}
		fmt.Fprintf(&out, "%s from %s:", name[2:], time.UnixMilli(int64(w.From)).UTC().Format(time.TimeOnly))
		for e, counts := range w.Counts {
			for i, n := range counts {
				if n > 0 {
					fmt.Fprintf(&out, " %s[%d]=%d", names[e], i, n)
				}
			}
		}
		for i, ms := range w.Latest {
			if ms > 0 {
				fmt.Fprintf(&out, " latest[%d]=%d", i, ms)
			}
		}
		fmt.Fprintf(&out, "; p50 %d p99 %d max %d ms; %.2f delivered a second\n", w.LateAt(50), w.LateAt(99), w.Max, w.Rate(Delivered))
	}
	lines := strings.SplitAfter(out.String(), "\n")
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(b, a) }) // minute before hour
	return strings.Join(lines, "")
}

// TestAPulseIsWhatHappened compares pulses of nodes with a list of all that happened.
func TestAPulseIsWhatHappened(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // it is to be repeated
		nodes := []*Pulse{New(), New(), New()}
		type event struct {
			at, late store.Millis
		}
		var all []event
		now := store.Millis(midnight.UnixMilli())
		for range 3000 {
			now += store.Millis(r.IntN(4000))
			e := event{now, store.Millis(r.ExpFloat64() * 500)}
			all = append(all, e)
			nodes[r.IntN(len(nodes))].Deliver(e.at, []store.Millis{e.late})
		}
		sum := NewReport(now)
		for _, n := range nodes {
			report := n.Report(now)
			sum.Merge(&report)
		}
		for _, w := range []*Window{&sum.Minute, &sum.Hour} {
			want, most := make([]int64, w.Steps), int64(0)
			end := w.From + w.Step*store.Millis(w.Steps)
			var late []int64
			for _, e := range all {
				if e.at >= w.From {
					most = max(most, int64(e.late))
				}
				if e.at >= w.From && e.at < end {
					want[(e.at-w.From)/w.Step]++
				}
				length := w.Step * store.Millis(w.Steps) / 4
				if e.at/length >= now/length-4 {
					late = append(late, int64(e.late))
				}
			}
			if !slices.Equal(w.Counts[Delivered], want) || w.Max != most {
				t.Fatalf("seed %d: %v, at most %d; want %v, %d", seed, w.Counts[Delivered], w.Max, want, most)
			}
			slices.Sort(late)
			for _, p := range []float64{50, 99} {
				exact := late[max(0, int(math.Ceil(float64(len(late))*p/100))-1)]
				if got := w.LateAt(p); exact <= w.Max && float64(got) < float64(exact)*.93-2 || float64(got) > float64(exact)*1.07+2 {
					t.Errorf("seed %d: p%v of %d is %d ms, want %d", seed, p, len(late), got, exact)
				}
			}
		}
	}
}

func BenchmarkDeliver(b *testing.B) {
	for _, n := range []int{1, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			p, late := New(), make([]store.Millis, n)
			now := store.Millis(midnight.UnixMilli())
			b.ReportAllocs()
			for b.Loop() {
				now++
				for i := range late {
					late[i] = store.Millis(i % 5)
				}
				p.Deliver(now, late)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/task")
		})
	}
}

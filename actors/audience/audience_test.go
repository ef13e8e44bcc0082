package audience

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/timer/timetable"
)

// TestAudience runs the scenarios of testdata, on one shard of an audience. Times are of
// 1 June 2030 in UTC unless they have a date; tasks are called by their recipients.
func TestAudience(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if !strings.HasSuffix(path, ".txt") {
			return // what a property left behind
		}
		x := &scenario{shard: make(shardOfTest)}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			x.T, x.TestData = t, d
			return x.run()
		})
	})
}

type scenario struct {
	*testing.T
	*datadriven.TestData

	shard shardOfTest
	walk  *Walk
	ids   map[string]string // task -> recipient
}

func (x *scenario) run() string {
	switch x.Cmd {
	case "change":
		return x.change()
	case "shard":
		return x.print()
	case "judge":
		return x.judge()
	case "replace":
		return x.replace()
	case "sweep":
		return x.sweep()
	case "begin":
		return x.begin()
	case "walk":
		return x.steps(x.time("now"))
	case "cancel":
		x.walk.Cancel(x.HasArg("undo"))
		return x.state()
	case "ended":
		var n int
		x.ScanArgs(x.T, "tasks", &n)
		x.walk.Ends[0] += int64(n)
		return x.state()
	case "end":
		x.shard.commit(x.T, x.shard.directory(x.T).End(x.walk.Run))
		return ""
	}
	x.Fatalf(x.T, "unknown command %s", x.Cmd)
	return ""
}

// recipient reads a line: id zone [disabled] [off=n] [on=n] [quiet=22:00-07:00].
func (x *scenario) recipient(words []string) *Recipient {
	r := &Recipient{ID: words[0], Zone: words[1]}
	for _, word := range words[2:] {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "disabled":
			r.Disabled = true
		case "off":
			r.Off |= 1 << (value[0] - '0')
		case "on":
			r.On |= 1 << (value[0] - '0')
		case "data":
			r.Data = []byte(value)
		case "quiet":
			from, to, _ := strings.Cut(value, "-")
			r.Quiet = Quiet{minuteOf(from), minuteOf(to)}
		default:
			x.Fatalf(x.T, "what is %s?", word)
		}
	}
	return r
}

func minuteOf(s string) uint16 {
	at, err := time.Parse("15:04", s)
	if err != nil {
		panic(err)
	}
	return uint16(at.Hour()*60 + at.Minute())
}

func (x *scenario) change() string {
	var changes []Change
	var ids []string
	for line := range strings.Lines(x.Input) {
		words := strings.Fields(line)
		switch words[0] {
		case "put":
			r := x.recipient(words[1:])
			changes = append(changes, Change{ID: r.ID, Put: r})
		case "remove":
			changes = append(changes, Change{ID: words[1]})
		}
		ids = append(ids, words[1])
	}
	limits := Limits{Leaf: 3, Recipients: 1000}
	if x.HasArg("recipients") {
		var n int
		x.ScanArgs(x.T, "recipients", &n)
		limits.Recipients = int64(n)
	}
	d := x.shard.directory(x.T)
	v := x.shard.view(x.T, d, d.Covering(ids))
	c, outcomes := v.Apply(changes, limits)
	x.shard.commit(x.T, c)
	var b strings.Builder
	for i, o := range outcomes {
		fmt.Fprintf(&b, "%s %s\n", ids[i], [...]string{"", "same", "added", "changed", "removed", "full"}[o])
	}
	for _, p := range c.Puts {
		what := "put"
		if len(p.Body) == 0 {
			what = "delete"
		}
		fmt.Fprintf(&b, "%s %s if %d\n", what, p.ID, p.If)
	}
	return b.String()
}

// print shows all leaves in order.
func (x *scenario) print() string {
	d := x.shard.directory(x.T)
	var b strings.Builder
	fmt.Fprintf(&b, "version %d, %d recipients\n", d.Version, d.Recipients())
	leaves, _, _ := d.Page(Cursor{}, 1000)
	for _, id := range leaves {
		fmt.Fprintf(&b, "%s\n", id)
		for _, e := range x.shard.leaf(x.T, id).Entries {
			fmt.Fprintf(&b, "  %04x %s", uint64(e.At)>>48, e.ID)
			if e.From > 0 || e.Until > 0 {
				fmt.Fprintf(&b, " [%d,%d)", e.From, e.Until)
			}
			if e.Left {
				b.WriteString(" left")
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

var verdictWords = [...]string{"", "taken", "deferred", "disabled", "opted out", "silent", "no time"}

func (x *scenario) judge() string {
	taker := Taker{Quiet: x.quiet(), Kind: Kind{None: true}}
	if x.HasArg("kind") {
		taker.Kind.None, taker.Kind.Off = false, x.HasArg("kind-off")
		x.ScanArgs(x.T, "kind", &taker.Kind.Number)
	}
	var b strings.Builder
	for line := range strings.Lines(x.Input) {
		words := strings.Fields(line)
		r := x.recipient(words[1:])
		verdict, due := taker.Judge(&r.Preferences, x.parse(words[0]), zonesByName(r.Zone))
		b.WriteString(verdictWords[verdict])
		if due != 0 {
			b.WriteString(" " + due.Time().Format("2006-01-02T15:04:05"))
		}
		b.WriteString("\n")
	}
	return b.String()
}

func (x *scenario) quiet() QuietPolicy {
	if !x.HasArg("quiet") {
		return Defer
	}
	var name string
	x.ScanArgs(x.T, "quiet", &name)
	return QuietPolicy(slices.Index([]string{"", "defer", "skip", "ignore"}, name))
}

func (x *scenario) replace() string {
	var n int
	x.ScanArgs(x.T, "generation", &n)
	c, ok := x.shard.directory(x.T).Replace(int64(n))
	if !ok {
		return "another one has begun"
	}
	x.shard.commit(x.T, c)
	return ""
}

func (x *scenario) sweep() string {
	d := x.shard.directory(x.T)
	leaves, _, _ := d.Page(Cursor{}, 1000)
	c, removed := x.shard.viewToSweep(x.T, d, leaves).Sweep(leaves)
	x.shard.commit(x.T, c)
	d = x.shard.directory(x.T)
	c, _ = d.EndReplacement(d.Generation)
	x.shard.commit(x.T, c)
	return fmt.Sprintf("%d removed", removed)
}

func (x *scenario) begin() string {
	w := &Walk{Order: Order{
		Schedule: "s", Run: "run", At: x.time("at"), Quiet: x.quiet(),
		Spread: Spread{Window: x.duration("window"), Grain: x.duration("grain")},
		Local:  x.HasArg("local"), Tracked: x.HasArg("tracked"), Rotate: x.HasArg("rotate"),
	}}
	if x.HasArg("spread-from") {
		var n int
		x.ScanArgs(x.T, "spread-from", &n)
		w.SpreadFrom = int64(n)
	}
	if w.Occurrence = w.At; w.Local { // at is what clocks show
		begins, _ := timetable.Instant(w.At.Time(), timetable.FirstZone)
		w.At = store.Millis(begins.UnixMilli())
		w.Occurrence = w.At
	}
	d := x.shard.directory(x.T)
	version, c, ok := d.Begin(Run{ID: w.Run, Topic: "t", Schedule: w.Schedule})
	if !ok {
		return "too many runs"
	}
	x.shard.commit(x.T, c)
	w.Begin(&Audience{Shards: 1}, Kind{None: true}, d.Recipients())
	w.BeginShard(0, version, x.shard.directory(x.T), zonesByName)
	x.walk, x.ids = w, make(map[string]string)
	return x.state()
}

// steps lets the walk go as far as it does at a time.
func (x *scenario) steps(now store.Millis) string {
	var b strings.Builder
	pace := Pace{Lead: 30 * time.Second, Batch: 4}
	for {
		d := x.shard.directory(x.T)
		n, at, ok := x.walk.Due(pace)
		if !ok {
			return b.String() + x.state()
		}
		if at > now {
			fmt.Fprintf(&b, "wake %s\n", at.Time().Format("15:04:05"))
			return b.String() + x.state()
		}
		s := x.walk.Next(n, d, now, pace)
		var leaves []*Leaf
		for _, id := range x.walk.Leaves(s, d) {
			leaves = append(leaves, x.shard.leaf(x.T, id))
		}
		for _, o := range x.walk.Take(s, leaves, pace, zonesByName) {
			x.ids[o.ID] = o.Recipient.ID
			if x.walk.Phase == Undoing {
				fmt.Fprintf(&b, "take back %s\n", o.Recipient.ID)
				continue
			}
			fmt.Fprintf(&b, "make %s due %s\n", o.Recipient.ID, o.Due.Time().Format("15:04:05"))
		}
	}
}

func (x *scenario) state() string {
	over := x.walk.Settle()
	x.walk = stored(x.T, x.walk)
	var b strings.Builder
	fmt.Fprintf(&b, "%s", [...]string{"ordered", "walking", "undoing", "waiting", "over"}[x.walk.Phase])
	for v, n := range x.walk.Verdicts {
		if n > 0 {
			fmt.Fprintf(&b, ", %d %s", n, verdictWords[v])
		}
	}
	if over != (x.walk.Phase == Over) {
		x.Fatalf(x.T, "over: %v, phase %v", over, x.walk.Phase)
	}
	return b.String() + "\n"
}

// stored is a walk as it is read from what was written of it.
func stored(t fataler, w *Walk) *Walk {
	got, err := DecodeWalk(w.Body())
	if err != nil || fmt.Sprint(got) != fmt.Sprint(w) {
		t.Fatalf("%+v became %+v, %v", w, got, err)
	}
	return got
}

func (x *scenario) time(key string) store.Millis {
	var s string
	x.ScanArgs(x.T, key, &s)
	return x.parse(s)
}

func (x *scenario) parse(s string) store.Millis {
	if !strings.Contains(s, "T") {
		s = "2030-06-01T" + s
	}
	if strings.Count(s, ":") == 1 {
		s += ":00"
	}
	at, err := time.Parse("2006-01-02T15:04:05", s)
	if err != nil {
		x.Fatalf(x.T, "%v", err)
	}
	return store.Millis(at.UnixMilli())
}

func (x *scenario) duration(key string) (d time.Duration) {
	if x.HasArg(key) {
		var s string
		x.ScanArgs(x.T, key, &s)
		d, _ = time.ParseDuration(s)
	}
	return d
}

func TestRecipientsOfOnePositionAreTakenTogether(t *testing.T) {
	w := &Walk{}
	all := []*Entry{{At: 1}, {At: 2}, {At: 2}, {At: 2}, {At: 3}}
	for batch, want := range []int{0, 1, 4, 4, 4, 5, 5} {
		if got := w.cut(all, batch); got != want {
			t.Errorf("a batch of %d takes %d, want %d", batch, got, want)
		}
	}
}

func TestRecipientsAreChecked(t *testing.T) {
	long := strings.Repeat("x", 300)
	for field, r := range map[string]Recipient{
		"id":    {ID: "", Zone: "UTC"},
		"zone":  {ID: "a"},
		"quiet": {ID: "a", Zone: "UTC", Preferences: Preferences{Quiet: Quiet{0, 1440}}},
		"kinds": {ID: "a", Zone: "UTC", Preferences: Preferences{On: 3, Off: 2}},
		"data":  {ID: "a", Zone: "UTC", Data: []byte(long)},
	} {
		var bad *BadRecipient
		if err := r.Check(); err == nil {
			t.Errorf("%+v is allowed", r)
		} else if bad = err.(*BadRecipient); bad.Field != field {
			t.Errorf("%+v: %v, want one of %s", r, err, field)
		}
	}
	if err := (&Recipient{ID: long[:128], Zone: "UTC", Data: []byte(long[:256])}).Check(); err != nil {
		t.Error(err)
	}
}

package checker

import (
	"slices"
	"testing"
	"time"

	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/ledger/verdict"
)

// watch has a watcher told of positions of a log of four tasks of two halves, at once.
func (p *tape) watch(tag string, positions ...int64) {
	p.put(ledger.Event{Kind: ledger.Watching, Watch: "w", Tag: tag})
	for _, n := range positions {
		x := markedLog()[n-1]
		p.put(ledger.Event{Kind: ledger.Told, Watch: "w", Task: x.Worker, Cursor: "c", Change: &x})
	}
}

// markedLog is a log with a marker at its end. Worker is the task that a change is of.
func markedLog() []ledger.Change {
	var log []ledger.Change
	for i, id := range []string{"t", "b", "c", "d", ledger.Marker + "1"} {
		x := ledger.Change{What: "enqueued", Position: int64(i) + 1, Due: epoch + 100, Version: 1, At: (epoch + 10*int64(i)) * 1000, Worker: id, Tag: "even"}
		if i%2 == 1 {
			x.Tag = "odd"
		}
		log = append(log, x)
	}
	return log
}

// watchedBy is a round with that log, and with what one watch or more saw of it.
func watchedBy(see func(*tape)) func(*tape) {
	return func(p *tape) {
		for _, x := range markedLog()[:4] {
			p.call(ledger.Event{Op: ledger.Enqueue, Task: x.Worker, Due: x.Due, Sum: "s", Tag: x.Tag}, ledger.OK, "", func(e *ledger.Event) { e.Task, e.Due = x.Worker, x.Due })
			p.put(ledger.Event{Kind: ledger.Found, Task: x.Worker, State: "scheduled", Due: x.Due})
		}
		p.at(50)
		see(p)
		p.at(100)
		for _, x := range markedLog() {
			p.put(ledger.Event{Kind: ledger.Logged, Task: x.Worker, Change: &x})
		}
	}
}

func TestCheckerFindsWrongWatches(t *testing.T) {
	playScenes(t, []scene{
		{"everything", watchedBy(func(p *tape) { p.watch("", 1, 2, 3, 4, 5) }), ""},
		{"by two processes, one after the other", watchedBy(func(p *tape) {
			p.watch("", 1, 2)
			p.watch("", 3, 4, 5)
		}), ""},
		{"by two processes, something twice", watchedBy(func(p *tape) {
			p.watch("", 1, 2)
			p.watch("", 2, 3, 4, 5)
		}), verdict.Mistold},
		{"by two processes, with a gap", watchedBy(func(p *tape) {
			p.watch("", 1, 2)
			p.watch("", 4, 5)
		}), verdict.Missed},
		{"out of order", watchedBy(func(p *tape) { p.watch("", 1, 2, 4, 3, 5) }), verdict.Missed},
		{"not the first", watchedBy(func(p *tape) { p.watch("", 2, 3, 4, 5) }), verdict.Missed},
		{"not the last", watchedBy(func(p *tape) { p.watch("", 1, 2, 3, 4) }), verdict.Missed},
		{"nothing", watchedBy(func(p *tape) { p.watch("") }), verdict.Missed},
		{"a log that nobody could read", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.found("scheduled", 100)
			p.watch("")
		}, verdict.Missed},
		{"another thing", watchedBy(func(p *tape) {
			p.watch("", 1, 2, 3, 4, 5)
			p.events[len(p.events)-2].Change.Version = 2
		}), verdict.Mistold},
		{"another task", watchedBy(func(p *tape) {
			p.watch("", 1, 2, 3, 4, 5)
			p.events[len(p.events)-2].Task = "t"
		}), verdict.Mistold},
		{"half of it", watchedBy(func(p *tape) { p.watch("even", 1, 3, 5) }), ""},
		{"more than its half", watchedBy(func(p *tape) { p.watch("even", 1, 2, 3, 5) }), verdict.Mistold},
		{"less than its half", watchedBy(func(p *tape) { p.watch("even", 1, 5) }), verdict.Missed},
		{"a gap that was announced for no reason", watchedBy(func(p *tape) {
			p.watch("", 1, 2)
			p.put(ledger.Event{Kind: ledger.Expired, Watch: "w"})
			p.watch("", 1, 2, 3, 4, 5)
		}), verdict.Missed},
		{"an end that is none", watchedBy(func(p *tape) {
			p.watch("", 1, 2)
			p.put(ledger.Event{Kind: ledger.Failed, Watch: "w", Reason: "why not"})
			p.watch("", 3, 4, 5)
		}), verdict.Wrong},
	})
}

// TestWatchesMayMissWhatAFaultUndid: nothing is excused but by an allowance, and only up
// to the first change after the fault.
func TestWatchesMayMissWhatAFaultUndid(t *testing.T) {
	expired := func(p *tape) {
		p.watch("", 1, 2)
		p.put(ledger.Event{Kind: ledger.Expired, Watch: "w"})
		p.watch("", 1, 2, 3, 4, 5)
	}
	none, allowed := Rules{}, Rules{Allowances: []Allowance{{Fault: "cut", Before: time.Millisecond}}}
	for _, test := range []struct {
		name     string
		see      func(*tape)
		from, to int64
		rules    Rules
		want     []verdict.Violation
	}{
		{"a gap after it", expired, 10, 15, allowed, nil},
		{"a gap after one without an allowance", expired, 10, 15, none, []verdict.Violation{verdict.Missed}},
		{"a gap after one that loses tokens", expired, 10, 15, Rules{TokensLost: []string{"cut"}}, []verdict.Violation{verdict.Missed}},
		{"a gap before it", expired, 60, 70, allowed, []verdict.Violation{verdict.Missed}},
		{"what was undone", func(p *tape) { p.watch("", 1, 2, 4, 5) }, 15, 25, allowed, nil},
		{"what came after it", func(p *tape) { p.watch("", 1, 2, 3, 5) }, 5, 8, allowed, []verdict.Violation{verdict.Missed}},
		{"what came after it, twice", func(p *tape) { p.watch("", 1, 2, 3, 4, 4, 5) }, 5, 8, allowed, []verdict.Violation{verdict.Mistold}},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := &tape{}
			p.at(test.from).put(ledger.Event{Kind: ledger.Fault, Fault: "cut"})
			p.at(test.to).put(ledger.Event{Kind: ledger.Healed, Fault: "cut"})
			p.at(0)
			watchedBy(test.see)(p)
			var got []verdict.Violation
			for _, o := range p.verdict(test.rules).Offences {
				got = append(got, o.Violation)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestCursorsGoOnWhereAWatcherWas(t *testing.T) {
	dir := t.TempDir()
	if got, err := ledger.Cursors(dir, "nobody"); err != nil || len(got) != 0 {
		t.Errorf("of nobody: %v, %v", got, err)
	}
	w, err := ledger.Create(dir, "w")
	if err != nil {
		t.Fatal(err)
	}
	w.Append(ledger.Event{Kind: ledger.Watching, Watch: "a"}, ledger.Event{Kind: ledger.Watching, Watch: "b", Cursor: "b1"}, ledger.Event{Kind: ledger.Watching, Watch: "c", Cursor: "c1"})
	w.Append(ledger.Event{Kind: ledger.Told, Watch: "a", Cursor: "a1"}, ledger.Event{Kind: ledger.Told, Watch: "c", Cursor: "c2"}, ledger.Event{Kind: ledger.Told, Watch: "a", Cursor: "a2"}, ledger.Event{Kind: ledger.Expired, Watch: "c"})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := ledger.Cursors(dir, "w")
	if err != nil || len(got) != 3 || got["a"] != "a2" || got["b"] != "b1" || got["c"] != "" {
		t.Errorf("got %v, %v", got, err)
	}
}

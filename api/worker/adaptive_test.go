package worker

import (
	"container/heap"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
)

// TestAdaptiveLimit runs the scenarios of testdata/adaptive: workers whose limit adapts take
// the tasks of one server, in fake time.
//
//	server tasks=N [refill=D] [rate=N] [bytes=N]  tasks that are ready, how long a frame takes
//	                                              there and back, tasks a second that it delivers
//	worker name=S handlers=N takes=D              connects
//	takes name=S D                                its handlers take so long from now on
//	run D                                         passes time, and says what came of it
func TestAdaptiveLimit(t *testing.T) {
	datadriven.Walk(t, "testdata/adaptive", func(t *testing.T, path string) {
		w := &adaptiveWorld{now: time.Unix(0, 0)}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var name string
			var n int
			d.MaybeScanArgs(t, "name", &name)
			switch d.Cmd {
			case "server":
				w.server(t, d)
			case "worker":
				d.ScanArgs(t, "handlers", &n)
				w.join(name, n, scenarioTime(t, d, "takes"))
			case "takes":
				w.named(name).takes = scenarioTime(t, d, "to")
			case "run":
				w.run(scenarioTime(t, d, "for"))
			default:
				t.Fatalf("unknown command %q", d.Cmd)
			}
			return w.describe()
		})
	})
}

func scenarioTime(t *testing.T, d *datadriven.TestData, arg string) time.Duration {
	var text string
	if d.MaybeScanArgs(t, arg, &text); text == "" {
		return 0
	}
	span, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return span
}

// adaptiveWorld is a server and its workers. What happens is a list of events by time.
type adaptiveWorld struct {
	now     time.Time
	events  eventHeap
	count   int
	ready   int
	bytes   int
	refill  time.Duration
	each    time.Duration // that the server takes for a task
	busy    time.Time     // until when it has work
	workers []*adaptiveWorker
	span    time.Duration // that the last run took
}

// adaptiveWorker is a worker as far as its limit sees it.
type adaptiveWorker struct {
	w       *adaptiveWorld
	name    string
	takes   time.Duration
	limit   *adaptiveLimit
	credit  int // granted, and not delivered
	offered int // of it, what the server knows of
	waiting int
	running int
	looking bool

	finished, released, most int // since the last report; most bytes in hand
}

func (w *adaptiveWorld) server(t *testing.T, d *datadriven.TestData) {
	d.MaybeScanArgs(t, "tasks", &w.ready)
	d.MaybeScanArgs(t, "bytes", &w.bytes)
	if d.HasArg("refill") {
		w.refill = scenarioTime(t, d, "refill")
	}
	rate := 0
	if d.MaybeScanArgs(t, "rate", &rate); rate > 0 {
		w.each = time.Second / time.Duration(rate)
	}
	w.serve()
}

func (w *adaptiveWorld) join(name string, handlers int, takes time.Duration) {
	a := &adaptiveWorker{w: w, name: name, takes: takes, limit: newAdaptiveLimit(handlers)}
	w.workers = append(w.workers, a)
	a.grant()
}

func (w *adaptiveWorld) named(name string) *adaptiveWorker {
	i := slices.IndexFunc(w.workers, func(a *adaptiveWorker) bool { return a.name == name })
	return w.workers[i]
}

// serve gives ready tasks to those with credit, in turns: a few at a time, as a server that
// is busy is done with one after the other.
func (w *adaptiveWorld) serve() {
	for some := true; some && w.ready > 0; {
		some = false
		for _, a := range w.workers {
			if n := min(a.offered, w.ready, 32); n > 0 {
				some = true
				a.offered -= n
				w.ready -= n
				w.after(w.work(n)+w.refill/2, func() { a.receive(n) })
			}
		}
	}
}

// work is how long the server takes for n tasks more, with what it does already.
func (w *adaptiveWorld) work(n int) time.Duration {
	if w.busy.Before(w.now) {
		w.busy = w.now
	}
	w.busy = w.busy.Add(time.Duration(n) * w.each)
	return w.busy.Sub(w.now)
}

func (a *adaptiveWorker) grant() {
	n := a.limit.most() - a.credit - a.waiting - a.running
	if n <= 0 {
		return
	}
	a.credit += n
	a.w.after(a.w.refill/2, func() {
		a.offered += n
		a.w.serve()
	})
}

func (a *adaptiveWorker) receive(n int) {
	for range n {
		a.limit.onReceived(a.w.now, a.w.bytes)
	}
	a.credit -= n
	a.waiting += n
	a.begin()
	for a.waiting > 0 && a.limit.overfull(a.waiting+a.running, int64(a.waiting+a.running)*int64(a.w.bytes)) {
		a.release(1)
	}
	a.most = max(a.most, (a.waiting+a.running)*a.w.bytes)
	if !a.looking && a.waiting > 0 {
		a.looking = true
		a.w.after(lookSpan, a.look)
	}
}

func (a *adaptiveWorker) begin() {
	for a.running < a.limit.concurrency && a.waiting > 0 {
		a.waiting--
		a.running++
		from, takes := a.w.now, a.takes
		a.w.after(takes, func() {
			a.running--
			a.finished++
			a.limit.onFinished(a.w.now, a.w.now.Sub(from), a.waiting)
			a.settle()
			a.begin()
		})
	}
}

// settle sends the outcome of a task, with new credit.
func (a *adaptiveWorker) settle() {
	a.grant()
	from := a.w.now
	a.w.after(a.w.refill+a.w.work(0), func() { a.limit.onAnswered(a.w.now, a.w.now.Sub(from)) })
}

func (a *adaptiveWorker) release(n int) {
	a.waiting -= n
	a.released += n
	a.w.after(a.w.refill/2, func() {
		a.w.ready += n
		a.w.serve()
	})
}

func (a *adaptiveWorker) look() {
	a.release(a.limit.look(a.w.now, a.waiting))
	a.grant()
	if a.looking = a.waiting > 0; a.looking {
		a.w.after(lookSpan, a.look)
	}
}

func (w *adaptiveWorld) run(span time.Duration) {
	end := w.now.Add(span)
	for len(w.events) > 0 && !w.events[0].at.After(end) {
		e := heap.Pop(&w.events).(simEvent)
		w.now = e.at
		e.do()
	}
	w.now, w.span = end, span
}

func (w *adaptiveWorld) after(d time.Duration, do func()) {
	w.count++
	heap.Push(&w.events, simEvent{w.now.Add(d), w.count, do})
}

func (w *adaptiveWorld) describe() string {
	var b strings.Builder
	for _, a := range w.workers {
		fmt.Fprintf(&b, "%s: limit %d, %d running, %d waiting, %d credit", a.name, a.limit.most(), a.running, a.waiting, a.credit)
		if w.span > 0 {
			fmt.Fprintf(&b, "; %.0f/s", float64(a.finished)/w.span.Seconds())
		}
		if a.released > 0 {
			fmt.Fprintf(&b, ", %d given back", a.released)
		}
		if w.bytes > 1000 && a.most > 0 {
			fmt.Fprintf(&b, ", %.1f MiB in hand at most", float64(a.most)/(1<<20))
		}
		b.WriteByte('\n')
		a.finished, a.released, a.most = 0, 0, 0
	}
	w.span = 0
	fmt.Fprintf(&b, "%d ready\n", w.ready)
	return b.String()
}

// simEvent is something that happens; those of one time happen in order.
type simEvent struct {
	at    time.Time
	count int
	do    func()
}

type eventHeap []simEvent

func (h eventHeap) Len() int { return len(h) }
func (h eventHeap) Less(i, j int) bool {
	return h[i].at.Before(h[j].at) || h[i].at.Equal(h[j].at) && h[i].count < h[j].count
}
func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *eventHeap) Push(x any)   { *h = append(*h, x.(simEvent)) }
func (h *eventHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	*h = old[:len(old)-1]
	return e
}

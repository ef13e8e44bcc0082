package bench

import (
	"slices"
	"testing"
	"time"

	"github.com/ddq-io/ddq/bench/lateness"
)

func TestRecorderReportsLateness(t *testing.T) {
	due := time.Now().Truncate(time.Millisecond)
	m := newMaker(1, 7, 200)
	r := NewRecorder(7, 1000)
	for i := range 1000 {
		start := due.Add(time.Duration(i) * time.Millisecond)
		r.Start(Delivery{Payload: m.task(i, due).Payload, Attempt: 1}, start)
	}
	report := mustReport(t, r)
	h, err := report.Histogram()
	if err != nil {
		t.Fatal(err)
	}
	got := lateness.Of(h)
	for _, p := range []struct {
		name      string
		got, want float64
	}{{"p50", got.P50, 500}, {"p90", got.P90, 900}, {"p99", got.P99, 990}, {"max", got.Max, 999}} {
		if p.got < p.want*0.998 || p.got > p.want*1.002 {
			t.Errorf("%s: got %v ms, want %v to three digits", p.name, p.got, p.want)
		}
	}
	if report.FirstStart != due.UnixNano() || report.LastStart != due.Add(999*time.Millisecond).UnixNano() {
		t.Errorf("first and last start: got %d and %d", report.FirstStart, report.LastStart)
	}
}

func TestRecorderKeepsRunsApart(t *testing.T) {
	r := NewRecorder(2, 10)
	for _, payload := range [][]byte{
		newMaker(1, 1, 200).task(0, time.Time{}).Payload,  // another run
		newMaker(1, 2, 200).task(10, time.Time{}).Payload, // beyond this one
		[]byte("not the harness's"),
	} {
		r.Start(Delivery{Payload: payload, Attempt: 1}, time.Now())
	}
	if got := mustReport(t, r); got.Stray != 3 || got.Tasks != 0 {
		t.Errorf("got %d stray and %d tasks, want 3 and 0", got.Stray, got.Tasks)
	}
}

func TestRecorderIsDoneWithTheLastAck(t *testing.T) {
	m, r := newMaker(1, 1, 200), NewRecorder(1, 2)
	start := func(i, attempt int) {
		r.Start(Delivery{Payload: m.task(i, time.Time{}).Payload, Attempt: attempt}, time.Now())
	}
	start(0, 1)
	r.Acked(1, time.Now())
	start(0, 2)
	r.Acked(1, time.Now()) // two acks, but of one task
	if closed(r.Done()) {
		t.Fatal("done before task 1 was delivered")
	}
	start(1, 1)
	if closed(r.Done()) {
		t.Fatal("done before the last ack")
	}
	r.Acked(1, time.Now())
	if !closed(r.Done()) {
		t.Fatal("not done after the last ack")
	}
	if got := mustReport(t, r); got.Repeat != 1 || got.Duplicate != 0 || !slices.Equal(got.Delivered, []uint64{3}) {
		t.Errorf("got %d repeats, %d duplicates, delivered %b; want 1, 0, 11", got.Repeat, got.Duplicate, got.Delivered)
	}
}

func TestRecorderMarksOnlyTasksDueAfterTheMark(t *testing.T) {
	mark := time.UnixMilli(5_000)
	m, r := newMaker(1, 1, 200), NewRecorder(1, 3)
	r.Mark(mark)
	r.Start(Delivery{Payload: m.task(0, mark.Add(-time.Second)).Payload, Attempt: 1}, mark.Add(time.Second))
	if got := mustReport(t, r).FirstMark; got != 0 {
		t.Fatalf("a task due before the mark counted: %d", got)
	}
	first := mark.Add(2 * time.Second)
	r.Start(Delivery{Payload: m.task(1, mark.Add(time.Second)).Payload, Attempt: 1}, first)
	r.Start(Delivery{Payload: m.task(2, mark.Add(time.Second)).Payload, Attempt: 1}, first.Add(1))
	if got := mustReport(t, r).FirstMark; got != first.UnixNano() {
		t.Errorf("first after the mark: got %d, want %d", got, first.UnixNano())
	}
}

func TestRecorderCountsOnlyTimedTasksAsEarly(t *testing.T) {
	m, r := newMaker(1, 1, 200), NewRecorder(1, 2)
	r.Start(Delivery{Payload: m.task(0, time.Time{}).Payload, Attempt: 1}, time.UnixMilli(0))
	r.Start(Delivery{Payload: m.task(1, time.UnixMilli(1)).Payload, Attempt: 1}, time.UnixMilli(0))
	if got := mustReport(t, r).Early; got != 1 {
		t.Errorf("early: got %d, want 1", got)
	}
}

func mustReport(t *testing.T, r *Recorder) Report {
	t.Helper()
	report, err := r.Report()
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

package bench

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/ddq-io/ddq/bench/lateness"
	"github.com/ddq-io/ddq/bench/tally"
)

// Recorder notes what a worker process sees of one run. It is safe for
// concurrent use.
type Recorder struct {
	run  uint32
	n    int
	done chan struct{} // closed when every task was delivered and acked

	mu     sync.Mutex // guards the rest
	tally  *tally.Tally
	late   *hdrhistogram.Histogram
	seen   int // distinct tasks
	acked  int
	stray  int
	mark   time.Time
	report Report
}

// Report is what a Recorder knows, as the worker process sends it. Moments are
// Unix nanoseconds, 0 when there was none.
type Report struct {
	Run        uint32   `json:"run"`
	Tasks      int      `json:"tasks"`     // delivered at least once
	Acked      int      `json:"acked"`     // acks accepted
	Early      int      `json:"early"`     // started before due
	Duplicate  int      `json:"duplicate"` // again, with no higher attempt
	Repeat     int      `json:"repeat"`    // again, with a higher attempt
	Stray      int      `json:"stray"`     // deliveries of other runs
	FirstStart int64    `json:"first_start"`
	LastStart  int64    `json:"last_start"`
	LastAck    int64    `json:"last_ack"`
	FirstMark  int64    `json:"first_mark"` // first start of a task due after the mark
	Late       []byte   `json:"late"`       // HDR histogram, V2 compressed, microseconds
	Delivered  []uint64 `json:"delivered"`  // bit i: task i was delivered
}

// NewRecorder records a run of n tasks.
func NewRecorder(run uint32, n int) *Recorder {
	return &Recorder{run: run, n: n, done: make(chan struct{}), tally: tally.New(n), late: lateness.New()}
}

// Start notes that a handler began on a delivery at now.
func (r *Recorder) Start(d Delivery, now time.Time) {
	s, ok := readStamp(d.Payload)
	r.mu.Lock()
	defer r.mu.Unlock()
	if !ok || s.run != r.run || int(s.index) >= r.n {
		r.stray++
		return
	}
	r.note(s, d.Attempt, now)
}

// note needs mu.
func (r *Recorder) note(s stamp, attempt int, now time.Time) {
	var due time.Time
	if s.timed {
		due = time.Unix(0, s.due)
	}
	if !r.tally.Has(int(s.index)) {
		r.seen++
		late := min(max((now.UnixNano()-s.due)/1000, 0), lateness.Ceiling)
		_ = r.late.RecordValue(late) // in range by the line above
	}
	r.tally.Deliver(int(s.index), attempt, due, now)
	at := now.UnixNano()
	if r.report.FirstStart == 0 || at < r.report.FirstStart {
		r.report.FirstStart = at
	}
	r.report.LastStart = max(r.report.LastStart, at)
	if !r.mark.IsZero() && r.report.FirstMark == 0 && due.After(r.mark) {
		r.report.FirstMark = at
	}
}

// Acked notes that n acks were accepted at now.
func (r *Recorder) Acked(n int, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.acked
	r.acked += n
	if before < r.n {
		r.report.LastAck = now.UnixNano()
	}
	r.finish()
}

// finish closes done once; it needs mu. Repeats are acked too, so the count of
// acks alone would finish a run too soon.
func (r *Recorder) finish() {
	if r.seen < r.n || r.acked < r.n {
		return
	}
	select {
	case <-r.done:
	default:
		close(r.done)
	}
}

// Mark asks for the first start of a task due after t.
func (r *Recorder) Mark(t time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mark = t
}

// Done is closed when every task of the run was delivered and acked.
func (r *Recorder) Done() <-chan struct{} { return r.done }

// Seen is how many tasks were delivered so far.
func (r *Recorder) Seen() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen
}

// Report is what the recorder knows now.
func (r *Recorder) Report() (Report, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	late, err := r.late.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return Report{}, err
	}
	out := r.report
	out.Run, out.Tasks, out.Acked, out.Stray = r.run, r.seen, r.acked, r.stray
	c := r.tally.Counts()
	out.Early, out.Duplicate, out.Repeat = c.Early, c.Duplicate, c.Repeat
	out.Late, out.Delivered = late, r.tally.Delivered()
	return out, nil
}

// Histogram is the lateness of first deliveries, in microseconds.
func (r Report) Histogram() (*hdrhistogram.Histogram, error) {
	if len(r.Late) == 0 {
		return lateness.New(), nil
	}
	return hdrhistogram.Decode(r.Late)
}

package sender

import (
	"slices"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// Bounds of one frame. A frame goes out at once when it is full, or when nothing
// is in flight; see frameGap for the others.
const (
	frameTasks = 512
	frameBytes = 1 << 20
)

// part is a run of one call's requests.
type part struct {
	call    *Call
	from, n int
}

// frameMaker turns pending parts into frames. Its buffers serve frame after
// frame; the writer owns it.
type frameMaker struct {
	request ddqv1.EnqueueStreamRequest
	parts   []part
}

// fill takes the next frame from p's pending parts. It returns false when all
// of them were abandoned.
func (f *frameMaker) fill(p *Pipeline) bool {
	f.parts = nil // the stream keeps them until the answer
	f.request.Tasks, f.request.InParts = f.request.Tasks[:0], true
	bytes, taken := 0, 0
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.pending {
		q := &p.pending[i]
		if q.call.abandoned() {
			taken++
			continue
		}
		n := f.take(q, &bytes)
		if n < q.n {
			q.from, q.n = q.from+n, q.n-n
			break
		}
		taken++
	}
	p.pending = slices.Delete(p.pending, 0, taken)
	if p.tasks -= len(f.request.Tasks); len(p.pending) == 0 {
		p.tasks = 0 // what was abandoned is not counted out one by one
	}
	return len(f.parts) > 0
}

// take adds as many requests of q as fit.
func (f *frameMaker) take(q *part, bytes *int) (n int) {
	for _, r := range q.call.requests[q.from : q.from+q.n] {
		full := len(f.request.Tasks) == frameTasks || *bytes+r.size > frameBytes
		if full && len(f.request.Tasks) > 0 {
			break
		}
		f.request.Tasks = append(f.request.Tasks, &r.Wire)
		*bytes += r.size
		n++
	}
	if n > 0 {
		f.parts = append(f.parts, part{q.call, q.from, n})
	}
	return n
}

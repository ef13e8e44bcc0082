package worker

import (
	"math"
	"time"
)

// What bounds the tasks in flight of a worker whose Config sets no number.
const (
	mostInFlight = 10_000                 // in all, and what servers allow
	mostAtOnce   = 2048                   // ahead of the handlers, unless they finish more in mostAhead
	refillSlack  = 5 * time.Millisecond   // of work ahead, besides that of two refills
	mostAhead    = 100 * time.Millisecond // of work is ahead, at most
	lookSpan     = mostAhead / 2          // over which finished tasks are counted
	mostBytes    = 8 << 20                // of payloads in hand, and as many unsent at the server
)

// adaptiveLimit says how many tasks of a topic a worker has in flight: in handlers, waiting
// for one, and granted as credit. They are what occupies the handlers, and ahead of that as
// many tasks as the handlers finish while the server refills what was settled. It has no
// clock, no goroutine and no lock; the subscription owns it.
//
// How long a handler takes says what the handlers could finish, also while they are short of
// tasks, so the limit does not have to be found by trying. What they did finish says how
// many tasks may be ahead: a server that is busy hands out for no longer than mostAhead what
// it has credit for, before it comes to a worker that joins.
//
// Invariants:
//   - most() is at least the concurrency and half of that again, unless payloads are large:
//     then it is at least the concurrency
//   - most() is at most mostInFlight
type adaptiveLimit struct {
	concurrency int

	handling decayingMean // seconds that a handler takes
	refill   decayingMean // seconds from settlements to the answer
	size     decayingMean // bytes of a payload

	begun         time.Time // the span that is not over
	running, last workSpan  // that span, and the one before
	before        workSpan  // the one before that
}

// workSpan is what handlers did over lookSpan, or longer when there was nothing to do.
type workSpan struct {
	finished float64 // tasks; in mostAhead, once the span is over
	dry      bool    // handlers waited for tasks
}

func newAdaptiveLimit(concurrency int) *adaptiveLimit {
	return &adaptiveLimit{concurrency: concurrency, running: workSpan{dry: true}}
}

// most is how many tasks may be in flight.
func (a *adaptiveLimit) most() int {
	n := min(a.concurrency+a.ahead(), max(a.concurrency, a.fitting()))
	return min(n, mostInFlight)
}

// ahead is how many tasks may be in flight besides those that occupy the handlers: work for
// the time of two refills. Before anything is known it is the least.
func (a *adaptiveLimit) ahead() int {
	if a.handling.n == 0 {
		return a.least()
	}
	rate := float64(a.concurrency) / max(a.handling.mean(), 1e-9)
	n := rate * (2*a.refill.mean() + refillSlack.Seconds())
	return max(a.least(), int(min(n, a.bound())))
}

func (a *adaptiveLimit) least() int { return (a.concurrency + 1) / 2 }

// bound is how many tasks may be ahead at most: what was finished in mostAhead. As long as
// handlers wait for tasks it is mostAtOnce at least, since they could have finished more.
// One slow span may have been a pause of the process; two are not.
func (a *adaptiveLimit) bound() float64 {
	n := max(a.last.finished, a.before.finished)
	if a.running.dry || a.last.dry || a.before.dry {
		return max(n, mostAtOnce)
	}
	return n
}

// fitting is how many payloads fit in mostBytes.
func (a *adaptiveLimit) fitting() int {
	return int(min(mostBytes/max(a.size.mean(), 1), mostInFlight))
}

// overfull reports whether a task more than there should be is in hand, of so many that have
// so many bytes: then the bytes are too many, and those of tasks for which no handler is free.
func (a *adaptiveLimit) overfull(tasks int, bytes int64) bool {
	return bytes > mostBytes && tasks > a.concurrency
}

// onReceived records the payload of a task.
func (a *adaptiveLimit) onReceived(now time.Time, bytes int) { a.size.add(now, float64(bytes)) }

// onAnswered records that the server took so long to answer settlements. It stores them as it
// stores the holds of the next deliveries: a refill takes as long.
func (a *adaptiveLimit) onAnswered(now time.Time, took time.Duration) {
	a.refill.add(now, took.Seconds())
}

// onFinished records that a handler returned after so long, and how many tasks wait for one.
func (a *adaptiveLimit) onFinished(now time.Time, took time.Duration, waiting int) {
	a.handling.add(now, took.Seconds())
	a.running.finished++
	a.running.dry = a.running.dry || waiting == 0
	a.roll(now)
}

// look is called every lookSpan while tasks wait, and returns how many of them are to be
// given back: handlers that have become slow would keep them from other workers. A few too
// many are not worth it.
func (a *adaptiveLimit) look(now time.Time, waiting int) (surplus int) {
	a.roll(now)
	if n := max(a.least(), int(a.bound())); waiting > 2*n {
		return waiting - n
	}
	return 0
}

// roll ends the span when it is over.
func (a *adaptiveLimit) roll(now time.Time) {
	took := now.Sub(a.begun)
	if took < lookSpan {
		return
	}
	a.running.finished *= mostAhead.Seconds() / took.Seconds()
	a.before, a.last = a.last, a.running
	a.begun, a.running = now, workSpan{}
}

// decayingMean is a mean in which what is old counts half as much after each meanSpan, and
// what is new counts at once: n quick tasks outweigh one slow one from before.
type decayingMean struct {
	n, sum float64
	span   time.Time // start of the span
}

const (
	meanSpan    = 50 * time.Millisecond
	meanSamples = 16 // are kept at least, however old
)

func (m *decayingMean) add(now time.Time, x float64) {
	if spans := now.Sub(m.span) / meanSpan; spans > 0 {
		if m.n > meanSamples {
			keep := max(math.Exp2(-float64(spans)), meanSamples/m.n)
			m.n, m.sum = m.n*keep, m.sum*keep
		}
		m.span = now
	}
	m.n, m.sum = m.n+1, m.sum+x
}

// mean returns it, 0 when there is none.
func (m *decayingMean) mean() float64 {
	if m.n == 0 {
		return 0
	}
	return m.sum / m.n
}

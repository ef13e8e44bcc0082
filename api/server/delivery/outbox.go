package delivery

import (
	"cmp"
	"log/slog"
	"sync"
	"time"

	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/wire"
)

// One frame carries at most this many deliveries, and ends with the one that
// takes it over the bytes: clients have a receive limit, and one slow
// frame delays everything behind it.
const (
	frameTasks   = 512
	frameBytes   = 1 << 20
	frameResults = 4096 // settle results, but for one large answer
	resultBytes  = 256  // counted for each of them
)

// handout are deliveries that the actor handed over together.
type handout struct {
	tasks []subscription.Delivery
	at    time.Time // monotonic
}

// outbox is the queue between the actor of a subscription and its stream. What
// it holds is bounded by the subscription's credit, and by the bytes that it may have
// unsent. It is an actors.Outbox, and
// like it never blocks.
type outbox struct {
	log     *slog.Logger
	grace   time.Duration // to drain in when nobody says
	wake    chan struct{} // has a token when there may be something to take
	inParts bool          // outcomes go out before all of their frame are there; set before there are any

	mu       sync.Mutex
	queue    []handout               // none is empty; guarded by mu, as is everything below
	answers  map[uint64]*answer      // sequences the actor has not answered in full
	settled  []*answer               // answered, not taken
	demand   *ddqv1.Demand           // to announce
	ready    int                     // as demanded last
	nodes    bool                    // to announce: nodes changed
	cancels  []*ddqv1.Cancel         // to announce
	drain    *time.Duration          // grace to announce
	drained  bool                    // announced, or about to be: nothing new goes out
	leaving  bool                    // the worker sends nothing more: nothing new goes out
	unwanted []subscription.Delivery // will not go out
}

// answer gathers the outcomes of one frame's settlements.
type answer struct {
	ddqv1.Settled
	weight int64 // of the frame, see weightOf
	left   int   // not answered
}

func newOutbox(log *slog.Logger, grace time.Duration) *outbox {
	return &outbox{log: log, grace: grace, wake: make(chan struct{}, 1), answers: make(map[uint64]*answer)}
}

// Deliver queues tasks for the stream, unless nothing new goes out.
func (o *outbox) Deliver(ds []subscription.Delivery) bool {
	if len(ds) == 0 {
		return true
	}
	now := time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.drained || o.leaving {
		return false
	}
	o.queue = append(o.queue, handout{ds, now})
	o.signal()
	return true
}

// expect announces a frame of n settlements. It comes before their outcomes.
func (o *outbox) expect(sequence uint64, n int, weight int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.answers[sequence] = &answer{Settled: ddqv1.Settled{Sequence: sequence}, weight: weight, left: n}
}

// Settled takes outcomes of the settlements of a frame, all at once or in
// parts. Nobody waits for those of a sequence that was not announced.
func (o *outbox) Settled(sequence uint64, results []subscription.Settled) {
	o.mu.Lock()
	defer o.mu.Unlock()
	a := o.answers[sequence]
	if a == nil {
		return
	}
	a.left -= len(results)
	to := a
	if a.left > 0 && o.inParts {
		to = &answer{Settled: ddqv1.Settled{Sequence: sequence, Part: true}}
	}
	for i := range results {
		if r := settleResult(o.log, &results[i], to.Part); r != nil {
			to.Results = append(to.Results, r)
		}
	}
	if a.left <= 0 {
		delete(o.answers, sequence)
	}
	if to.left <= 0 {
		o.settled = append(o.settled, to)
		o.signal()
	}
}

// Demand queues what is ready and what credit is void. Only the latest count of
// ready tasks matters.
func (o *outbox) Demand(ready, returned int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ready = ready
	o.ask(returned)
}

// returned queues credit that is void because deliveries came too late. They are
// ready again, so the count stands as it was said last, if not higher: what is
// granted for it in vain comes back with the one that is true.
func (o *outbox) returned(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ready = max(o.ready, n)
	o.ask(n)
}

// NodesChanged announces that the fleet is another one.
func (o *outbox) NodesChanged() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.nodes = true
	o.signal()
}

// Cancel queues that the cancellation of tasks was asked for, also while the node goes
// away: they may run for as long as the grace.
func (o *outbox) Cancel(asks []subscription.CancelAsk) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.cancels = append(o.cancels, cancelsWire(asks)...)
	o.signal()
}

// ask queues a demand. The caller holds mu.
func (o *outbox) ask(returned int) {
	if o.drained || o.leaving {
		return
	}
	if o.demand == nil {
		o.demand = &ddqv1.Demand{}
	}
	o.demand.Ready = int64(o.ready)
	o.demand.Returned += int32(returned)
	o.signal()
}

// Drain announces that the node goes away, once. Tasks that wait here are given
// back: another node has more time for them. A grace of 0 is the usual one.
func (o *outbox) Drain(grace time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.drained {
		return
	}
	grace = cmp.Or(grace, o.grace)
	o.drain, o.drained = &grace, true
	o.giveUp()
	o.signal()
}

// leave says that the worker will send nothing more: what it settled is
// answered, and nothing new goes out.
func (o *outbox) leave() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.leaving = true
	o.giveUp()
	o.signal()
}

// giveUp moves the queue to the unwanted, and forgets what to ask for: all credit
// is void when the stream ends. The caller holds mu.
func (o *outbox) giveUp() {
	o.demand = nil
	for _, h := range o.queue {
		o.unwanted = append(o.unwanted, h.tasks...)
	}
	o.queue = nil
}

func (o *outbox) draining() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.drained
}

// finished reports whether the worker has left and knows all it waits for.
func (o *outbox) finished() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.leaving && len(o.answers) == 0 && len(o.settled) == 0
}

// parcel is what goes out in one frame, and what is not worth sending.
type parcel struct {
	slab     *wireSlab // where its wire form goes
	tasks    []Handed
	settled  []*answer
	demand   *ddqv1.Demand
	nodes    bool
	cancels  []*ddqv1.Cancel
	drain    *time.Duration
	stale    []subscription.Delivery // too late for this worker, which has its credit back
	unwanted []subscription.Delivery // not for this stream any more
}

func (p *parcel) empty() bool {
	return p.quiet() && len(p.stale) == 0 && len(p.unwanted) == 0
}

// quiet reports whether there is nothing to say to the worker.
func (p *parcel) quiet() bool {
	return len(p.tasks) == 0 && len(p.settled) == 0 && p.drain == nil && p.demand == nil && !p.nodes && len(p.cancels) == 0
}

// bytes is what the tasks of p count of those that the subscription may have unsent.
func (p *parcel) bytes() (n int64) {
	for i := range p.tasks {
		n += p.tasks[i].Bytes()
	}
	return n
}

// take removes what fits into the next frame.
func (o *outbox) take(now time.Time) parcel {
	o.mu.Lock()
	defer o.mu.Unlock()
	settled, bytes := o.takeSettled()
	p := parcel{settled: settled, demand: o.demand, nodes: o.nodes, drain: o.drain, unwanted: o.unwanted}
	o.demand, o.nodes, o.drain, o.unwanted = nil, false, nil, nil
	o.takeTasks(&p, now, bytes)
	if len(o.queue) == 0 { // not before the tasks that they are about
		p.cancels, o.cancels = o.cancels, nil
	}
	return p
}

// takeTasks moves deliveries of the queue to a parcel that has some bytes already.
// The caller holds mu.
func (o *outbox) takeTasks(p *parcel, now time.Time, bytes int) {
	for len(o.queue) > 0 && len(p.tasks) < frameTasks && bytes < frameBytes {
		h := &o.queue[0]
		if p.tasks == nil {
			p.tasks = make([]Handed, 0, min(frameTasks, o.queued()))
		}
		d := Handed{h.tasks[0], h.at}
		if d.stale(now) {
			p.stale = append(p.stale, d.Delivery)
		} else {
			p.tasks = append(p.tasks, d)
			bytes += wire.TaskSize(d.Task)
		}
		if h.tasks = h.tasks[1:]; len(h.tasks) == 0 {
			o.queue[0] = handout{}
			o.queue = o.queue[1:]
		}
	}
	if len(o.queue) == 0 {
		o.queue = nil
	}
}

// queued is the number of deliveries in the queue. The caller holds mu.
func (o *outbox) queued() (n int) {
	for i := range o.queue {
		n += len(o.queue[i].tasks)
	}
	return n
}

// TakeSettled removes the answers of the next frame and says how many bytes they
// count. The caller holds mu.
func (o *outbox) takeSettled() ([]*answer, int) {
	results, n := 0, 0
	for n < len(o.settled) && (n == 0 || results+len(o.settled[n].Results) <= frameResults) {
		results += len(o.settled[n].Results)
		n++
	}
	taken := o.settled[:n:n]
	if o.settled = o.settled[n:]; len(o.settled) == 0 {
		o.settled = nil // taken owns the array now
	}
	return taken, results * resultBytes
}

// undelivered takes back tasks whose frame did not go out.
func (o *outbox) undelivered(tasks []Handed) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range tasks {
		o.unwanted = append(o.unwanted, tasks[i].Delivery)
	}
}

// close returns what never went out, and is the last use of the outbox but for
// the actor's.
func (o *outbox) close() []subscription.Delivery {
	o.leave()
	o.mu.Lock()
	defer o.mu.Unlock()
	rest := o.unwanted
	o.unwanted = nil
	return rest
}

// signal wakes the sender. The caller holds mu.
func (o *outbox) signal() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

package client

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// call is one caller's tasks and their answers. Calls are pooled: one that its
// caller waited for to the end is used again, with all its buffers.
//
// The caller owns requests and gone. Answers are the sender's until done.
type call struct {
	requests []*request
	answers  []answer      // one for each request
	done     chan struct{} // one signal, when the last answer is in
	timer    *time.Timer   // of limit
	until    time.Time     // the end of the limit, zero without

	mu   sync.Mutex
	left int  // answers to come; guarded by mu
	gone bool // the caller left, and answers are no longer written; guarded by mu
}

// answer is what became of one request. Exactly one field is set.
type answer struct {
	result *ddqv1.EnqueueResult
	err    *Error
}

// sender takes a call's tasks to the server and returns when each has an
// answer, be it an error.
type sender interface {
	send(ctx context.Context, k *call)
	close(ctx context.Context)
}

// callPool keeps calls for reuse. It belongs to one Client: what it keeps has
// channels, which must not cross from one synctest bubble to another.
type callPool struct{ pool sync.Pool }

// get returns a call without tasks.
func (p *callPool) get(tasks int) *call {
	k, ok := p.pool.Get().(*call)
	if !ok {
		k = &call{done: make(chan struct{}, 1)}
	}
	if cap(k.answers) < tasks {
		k.answers = make([]answer, 0, tasks)
	}
	k.requests, k.answers = k.requests[:0], k.answers[:0]
	k.until = time.Time{}
	return k
}

// keepPayload is the most payload of one task that a pooled call keeps room for.
const keepPayload = 16 << 10

// put takes k back, unless others may still look at it.
func (p *callPool) put(k *call) {
	if k.gone {
		return
	}
	for _, r := range k.requests {
		if cap(r.payload) > keepPayload {
			r.payload = nil
		}
	}
	clear(k.answers)
	p.pool.Put(k)
}

// add appends the request for t and returns its id. A task that cannot be
// encoded is not added.
func (k *call) add(t *Task) (id string, err error) {
	task := *t
	switch {
	case task.ID != "":
	case task.OrderingKey != "":
		task.ID, err = newKeyedID(task.OrderingKey)
	case task.Idempotency != nil:
		task.ID, err = newKeyedID(task.Idempotency.Key)
	default:
		task.ID, err = newID()
	}
	if err != nil {
		return "", err
	}
	n := len(k.requests)
	if n < cap(k.requests) {
		k.requests = k.requests[:n+1]
	} else {
		k.requests = append(k.requests, nil)
	}
	if k.requests[n] == nil {
		k.requests[n] = new(request)
	}
	if e := k.requests[n].fill(&task); e != nil {
		k.requests = k.requests[:n]
		return task.ID, e
	}
	k.answers = append(k.answers, answer{})
	return task.ID, nil
}

// limit bounds the waiting for answers, without the cost of a context.
func (k *call) limit(start time.Time, d time.Duration) {
	k.until = start.Add(d)
	if k.timer == nil {
		k.timer = time.NewTimer(d)
		return
	}
	k.timer.Reset(d)
}

// expect says that as many answers are to come as there are requests.
func (k *call) expect() {
	k.mu.Lock()
	k.left = len(k.requests)
	k.mu.Unlock()
}

// wait returns true once every request has its answer. It returns false when
// ctx or the limit ends first; requests without an answer have that error then.
func (k *call) wait(ctx context.Context) bool {
	var expired <-chan time.Time
	if !k.until.IsZero() {
		expired = k.timer.C
		defer k.timer.Stop()
	}
	select {
	case <-k.done:
		return true
	case <-ctx.Done():
		return k.leave(ctx.Err())
	case <-expired:
		return k.leave(context.DeadlineExceeded)
	}
}

// leave ends the waiting with err, or reports true when it came too late.
func (k *call) leave(err error) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.left == 0 {
		<-k.done
		return true
	}
	k.gone = true
	late := fromContext(err)
	for i := range k.answers {
		if k.answers[i] == (answer{}) {
			k.answers[i].err = late
		}
	}
	return false
}

// answer records results for the requests from index from on.
func (k *call) answer(from int, results []*ddqv1.EnqueueResult) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.gone {
		return
	}
	for i, r := range results {
		k.answers[from+i] = answer{result: r}
	}
	k.arrived(len(results))
}

// fail records err for n requests from index from on.
func (k *call) fail(from, n int, err *Error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.gone {
		return
	}
	for i := range n {
		k.answers[from+i] = answer{err: err}
	}
	k.arrived(n)
}

// arrived counts n answers; mu is held.
func (k *call) arrived(n int) {
	if k.left -= n; k.left == 0 {
		k.done <- struct{}{}
	}
}

// abandoned reports whether the caller is gone.
func (k *call) abandoned() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.gone
}

// passing returns an error after which a request of k should be repeated, nil
// when there is none.
func (k *call) passing() *Error {
	for _, a := range k.answers {
		if e := a.failure(); e != nil && e.repeatable(true) {
			return e
		}
	}
	return nil
}

// rest returns the requests of k to repeat as a call of their own, and where
// in k they stand.
func (k *call) rest() (part *call, from []int) {
	part = &call{done: make(chan struct{}, 1)}
	for i, a := range k.answers {
		if e := a.failure(); e != nil && e.repeatable(true) {
			part.requests = append(part.requests, k.requests[i])
			part.answers = append(part.answers, answer{})
			from = append(from, i)
		}
	}
	return part, from
}

// merge takes over the answers of part, made by rest.
func (k *call) merge(part *call, from []int) {
	for n, i := range from {
		k.answers[i] = part.answers[n]
	}
	k.gone = k.gone || part.gone // the sender may still look at k's requests
}

// giveUp marks what was to be repeated as repeated until end.
func (k *call) giveUp(end error) {
	for i, a := range k.answers {
		if e := a.failure(); e != nil && e.repeatable(true) {
			k.answers[i].err = e.until(end)
		}
	}
}

// failure returns the error of the request, nil when its task is stored.
func (a answer) failure() *Error {
	if a.err != nil {
		return a.err
	}
	return fromItem(a.result.GetError())
}

// receipt returns the answer in the caller's terms.
func (a answer) receipt(topic, id string) (Receipt, error) {
	r := Receipt{Topic: topic, ID: id}
	if e := a.failure(); e != nil {
		return r, e
	}
	if a.result == nil {
		return r, &Error{Code: codes.Internal, Message: "the server gave no answer"}
	}
	if a.result.GetId() != "" {
		r.ID = a.result.GetId()
	}
	r.Due = timeOf(a.result.GetExecuteTime())
	r.Deduplicated = a.result.GetDeduplicated()
	r.Key = KeyOutcome(a.result.GetIdempotencyOutcome())
	r.Replaced = State(a.result.GetReplacedState())
	if !r.Deduplicated && r.Key != KeyReturned && r.Key != KeyReplaced {
		r.Version = 1
	}
	return r, nil
}

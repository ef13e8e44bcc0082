package sender

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// Call is one caller's tasks and their answers. Calls are pooled: one that its
// caller waited for to the end is used again, with all its buffers.
//
// The caller owns requests and gone. Answers are the sender's until done.
type Call struct {
	requests []*Request
	Answers  []Answer      // one for each request
	done     chan struct{} // one signal, when the last answer is in
	timer    *time.Timer   // of limit
	until    time.Time     // the end of the limit, zero without
	repeated bool          // Again was called
	alone    bool          // no frame has its requests beside those of others

	mu   sync.Mutex
	left int  // answers to come; guarded by mu
	gone bool // the caller left, and answers are no longer written; guarded by mu
}

// Answer is what became of one request: what the server said of it, which may be an
// error, or why there is no word of the server.
type Answer struct {
	Result *ddqv1.EnqueueResult
	Err    error
}

// Sender takes a call's tasks to the server and returns when each has an
// answer, be it an error.
type Sender interface {
	Send(ctx context.Context, k *Call)
	Close(ctx context.Context)
}

// Pool keeps calls for reuse. It belongs to one Client: what it keeps has
// channels, which must not cross from one synctest bubble to another.
type Pool struct {
	// Poison overwrites what is put back, so that a test sees who still reads it.
	Poison bool

	pool sync.Pool
}

// Get returns a call without tasks.
func (p *Pool) Get(tasks int) *Call {
	k, ok := p.pool.Get().(*Call)
	if !ok {
		k = &Call{done: make(chan struct{}, 1)}
	}
	if cap(k.Answers) < tasks {
		k.Answers = make([]Answer, 0, tasks)
	}
	k.requests, k.Answers = k.requests[:0], k.Answers[:0]
	k.until, k.repeated = time.Time{}, false
	return k
}

// Put takes k back, unless others may still look at it.
func (p *Pool) Put(k *Call) {
	if k.gone {
		return
	}
	for _, r := range k.requests {
		if p.Poison {
			r.poison()
		}
		r.shrink()
	}
	clear(k.Answers)
	p.pool.Put(k)
}

// Next adds a request to k, for its caller to fill.
func (k *Call) Next() *Request {
	n := len(k.requests)
	if n < cap(k.requests) {
		k.requests = k.requests[:n+1]
	} else {
		k.requests = append(k.requests, nil)
	}
	if k.requests[n] == nil {
		k.requests[n] = new(Request)
	}
	k.Answers = append(k.Answers, Answer{})
	return k.requests[n]
}

// Drop takes back what Next added.
func (k *Call) Drop() {
	n := len(k.requests) - 1
	k.requests, k.Answers = k.requests[:n], k.Answers[:n]
}

// Limit bounds the waiting for answers, without the cost of a context.
func (k *Call) Limit(start time.Time, d time.Duration) {
	k.until = start.Add(d)
	if k.timer == nil {
		k.timer = time.NewTimer(d)
		return
	}
	k.timer.Reset(d)
}

// expect says that as many answers are to come as there are requests.
func (k *Call) expect() {
	k.mu.Lock()
	k.left = len(k.requests)
	k.mu.Unlock()
}

// wait returns true once every request has its answer. It returns false when
// ctx or the limit ends first; requests without an answer have that error then.
func (k *Call) wait(ctx context.Context) bool {
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
func (k *Call) leave(err error) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.left == 0 {
		<-k.done
		return true
	}
	k.gone = true
	late := status.FromContextError(err).Err()
	for i := range k.Answers {
		if k.Answers[i] == (Answer{}) {
			k.Answers[i].Err = late
		}
	}
	return false
}

// answer records results for the requests from index from on.
func (k *Call) answer(from int, results []*ddqv1.EnqueueResult) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.gone {
		return
	}
	for i, r := range results {
		k.Answers[from+i] = Answer{Result: r}
	}
	k.arrived(len(results))
}

// fail records err for n requests from index from on.
func (k *Call) fail(from, n int, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.gone {
		return
	}
	for i := range n {
		k.Answers[from+i] = Answer{Err: err}
	}
	k.arrived(n)
}

// arrived counts n answers; mu is held.
func (k *Call) arrived(n int) {
	if k.left -= n; k.left == 0 {
		k.done <- struct{}{}
	}
}

// abandoned reports whether the caller is gone.
func (k *Call) abandoned() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.gone
}

// Again returns the requests of k whose answers are to be had again as a call of
// their own, and where in k they stand. What broke a stream, or lost its answer twice, shares no
// stream with others any more: it might break each one that they are in.
func (k *Call) Again(which func(Answer) bool) (part *Call, from []int) {
	part = &Call{done: make(chan struct{}, 1)}
	for i, a := range k.Answers {
		if which(a) {
			part.alone = part.alone || suspect(a.Err, k.repeated)
			part.requests = append(part.requests, k.requests[i])
			part.Answers = append(part.Answers, Answer{})
			from = append(from, i)
		}
	}
	k.repeated = true
	return part, from
}

// Merge takes over the answers of part, made by Again.
func (k *Call) Merge(part *Call, from []int) {
	for n, i := range from {
		k.Answers[i] = after(k.Answers[i], part.Answers[n])
	}
	k.gone = k.gone || part.gone // the sender may still look at k's requests
}

// after is the answer to the repeat of a request that had an answer before. Where nobody knows whether the
// first try was stored, a refusal of the second does not tell: unless it is of what was asked for, the
// outcome stays unknown.
func after(before, again Answer) Answer {
	if code(before) != codes.Unknown {
		return again
	}
	switch code(again) {
	case codes.OK, codes.Unknown, codes.InvalidArgument, codes.OutOfRange, codes.AlreadyExists, codes.DeadlineExceeded, codes.Canceled:
		return again
	}
	return Answer{Err: &Lost{failure: failure{code: codes.Unknown, message: text(before) + "; asked again: " + text(again), cause: again.Err}, Of: again, Refused: true}}
}

func code(a Answer) codes.Code {
	if a.Err != nil {
		return status.Code(a.Err)
	}
	return codes.Code(a.Result.GetError().GetCode())
}

func text(a Answer) string {
	if a.Err != nil {
		return status.Convert(a.Err).Message()
	}
	return a.Result.GetError().GetMessage()
}

// Gone reports whether the call's waiting ended before all answers were in.
func (k *Call) Gone() bool { return k.gone }

package dispatch

import (
	"container/heap"
	"time"

	"github.com/ddq-io/ddq/store"
)

// Ticket is a task under limits that the limiter has not admitted yet.
type Ticket struct {
	readyTask
	arrival int64  // order among equals
	rateKey string // empty: under no rate but the topic's
	capKey  string
	tokens  [2]token  // of the rate of its key, and of the topic's
	since   time.Time // it had them both
	stage   stage
	queue   *waitQueue  // waiting: where
	cleared *waitQueue  // of a rate that let it out: it need not wait there again
	tried   []*capLimit // caps that let it out: it need not wait behind others there
	claims  []*capLimit // of those, in whose out it is
	sub     int64       // acquiring: for whom
	dropped bool        // acquiring: it is no use any more
	doomed  bool        // over a rate of a topic that lets none wait
}

// Sub is the subscription that permits are asked for.
func (t *Ticket) Sub() int64 { return t.sub }

// CapKey is the key of its cap; empty: under none but the topic's.
func (t *Ticket) CapKey() string { return t.capKey }

// stage is where a ticket's task is.
type stage uint8

const (
	outside   stage = iota // among the ready tasks of the dispatcher
	waiting                // in a queue
	acquiring              // its permits are being asked for
)

// token allows a hold from at on, until before.
type token struct{ at, before time.Time }

func (t token) good(now time.Time) bool { return !now.Before(t.at) && now.Before(t.before) }

// waitQueue are the tasks that wait for one limit, in the order in which those wait that
// are ready.
type waitQueue struct {
	readyQueue
	key   string
	out   int       // let out, and not back at the limiter yet
	wake  time.Time // when to look at it again; zero: it is told
	count *int      // tasks here and in other queues of the kind
}

// waitCounts are numbers of tasks that wait.
type waitCounts struct{ tokens, permits int }

func newWaitQueue(key string, every int, count *int) waitQueue {
	return waitQueue{key: key, readyQueue: readyQueue{every: every}, count: count}
}

func (l *waitQueue) len() int { return l.Waiting() }

func (l *waitQueue) join(t *Ticket) {
	t.stage, t.queue = waiting, l
	l.add([]readyTask{t.readyTask})
	*l.count++
}

// pop takes out the task that goes next.
func (l *waitQueue) pop() readyTask {
	*l.count--
	return l.take(1)[0]
}

// drop forgets the tasks of a shard.
func (l *waitQueue) drop(shard int) {
	had := l.len()
	l.readyQueue.Drop(shard)
	*l.count -= had - l.len()
}

// alarm is a moment at which a queue is to be looked at.
type alarm struct {
	at    time.Time
	queue *waitQueue
}

// alarms are those of all queues, the next on top. One that its queue does not have
// as wake any more is void.
type alarms []alarm

func (a alarms) Len() int           { return len(a) }
func (a alarms) Less(i, j int) bool { return a[i].at.Before(a[j].at) }
func (a alarms) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }

// Push is for heap only, as is Pop.
func (a *alarms) Push(x any) { *a = append(*a, x.(alarm)) }

// Pop takes the last one.
func (a *alarms) Pop() any {
	old := *a
	last := old[len(old)-1]
	*a = old[:len(old)-1]
	return last
}

// set has a queue looked at, at that moment at the latest.
func (a *alarms) set(l *waitQueue, at time.Time) {
	if l.wake.IsZero() || at.Before(l.wake) {
		l.wake = at
		heap.Push(a, alarm{at, l})
	}
}

// due returns the next queue whose moment has come, nil when there is none.
func (a *alarms) due(now time.Time) *waitQueue {
	for len(*a) > 0 && !(*a)[0].at.After(now) {
		if next := heap.Pop(a).(alarm); next.queue.wake.Equal(next.at) {
			next.queue.wake = time.Time{}
			return next.queue
		}
	}
	return nil
}

// next is the next moment, zero when there is none.
func (a *alarms) next() time.Time {
	for len(*a) > 0 {
		if first := (*a)[0]; first.queue.wake.Equal(first.at) {
			return first.at
		}
		heap.Pop(a)
	}
	return time.Time{}
}

// keysOf are the keys by which limits apply to a task.
func keysOf(e *store.Entry) (rate, concurrency string) {
	if e.Traits == nil {
		return "", ""
	}
	return e.Traits.RateKey, e.Traits.ConcurrencyKey
}

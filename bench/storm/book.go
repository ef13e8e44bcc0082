package storm

import (
	"fmt"
	"sync"
	"time"

	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/tap"
)

// book is what is known of one task, as short as it can be said: there are a million
// edits. Times are since the start of the storm.
type book struct {
	mu      sync.Mutex
	edits   []edit         // guarded by mu
	hands   []ledger.Event // what the worker had and said; guarded by mu
	created span
	due     int64 // as the enqueue was answered, Unix ms
}

// span is when a call was asked and answered.
type span struct{ from, to time.Duration }

// edit is one edit and its answer.
type edit struct {
	op       op
	answer   answer
	version  int32
	payload  uint32 // number of the new one, 0 for none
	asked    int64  // the new due time, Unix ms, 0 for none
	answered int64  // the due time that was answered
	span
}

type op uint8

const (
	update op = iota
	promote
	move
	remove
	ops
)

func (o op) ledger() ledger.Op {
	return []ledger.Op{ledger.Update, ledger.Promote, ledger.Reschedule, ledger.Delete}[o]
}

// answer is what an edit came to. Every one has to be one of the first three.
type answer uint8

const (
	changed answer = iota
	delivered
	gone
	unclear
	answers
)

func (a answer) String() string {
	return []string{"changed", "already delivered", "gone", "neither"}[a]
}

// clockOf is the start of the storm, on the clock of the machine.
type clockOf struct{ start time.Time }

// event dates an event.
func (c clockOf) event(at time.Duration, e ledger.Event) ledger.Event {
	e.Mono, e.Wall = int64(at)+1, c.start.UnixNano()+int64(at)
	e.Topic = topic
	return e
}

func (c clockOf) since() time.Duration { return time.Since(c.start) }

// tell writes the book of a task out, as the checker reads it. call numbers its calls.
func (b *book) tell(c clockOf, id string, call func() uint64) []ledger.Event {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := call()
	out := []ledger.Event{
		c.event(b.created.from, ledger.Event{Kind: ledger.Call, Op: ledger.Enqueue, Call: n, Task: id, Due: b.due, Sum: sumOf(0)}),
		c.event(b.created.to, ledger.Event{Kind: ledger.Answer, Op: ledger.Enqueue, Call: n, Task: id, Due: b.due, Result: ledger.OK}),
	}
	for i := range b.edits {
		e := &b.edits[i]
		n := call()
		ask := ledger.Event{Kind: ledger.Call, Op: e.op.ledger(), Call: n, Task: id, Due: e.asked}
		if e.payload != 0 {
			ask.Sum = sumOf(e.payload)
		}
		told := ledger.Event{Kind: ledger.Answer, Op: ask.Op, Call: n, Task: id, Due: e.answered, Version: int64(e.version)}
		switch e.answer {
		case changed:
			told.Result = ledger.OK
		case delivered:
			told.Result, told.Reason = ledger.Refused, ledger.Running
		case gone:
			told.Result, told.Reason = ledger.Refused, ledger.NoTask
		case unclear, answers:
			told.Result = ledger.Unknown
		}
		out = append(out, c.event(e.from, ask), c.event(e.to, told))
	}
	return append(out, b.hands...)
}

// payload is the number of a payload, as bytes.
func payload(n uint32) []byte { return fmt.Appendf(nil, "%024d", n) }

func sumOf(n uint32) string { return tap.Sum(payload(n)) }

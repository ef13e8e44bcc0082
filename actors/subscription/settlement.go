package subscription

import (
	"time"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/store"
)

// SettleKind is what a worker asks for one hold.
type SettleKind uint8

const (
	SettleAck SettleKind = iota + 1
	SettleNack
	SettleRelease // give back without spending the attempt
	SettleExtend
	SettleCheckpoint // the hold goes on
)

// Settlement is a worker's request about one hold.
type Settlement struct {
	Kind      SettleKind
	ID        string
	Token     []byte
	Error     string         // nack
	Delay     *time.Duration // nack, release: nil leaves it to the backoff (release: at once)
	Permanent bool           // nack: dead-letter
	Result    []byte         // ack: kept with the done task
	Say       []byte         // ack, nack: for the workflow that the task is a step of, when it ends
	Next      *Next          // ack: what it enqueues; nil for none
	Trace     store.TraceID  // ack, nack, release: in which the worker recorded the attempt; zero: in none
	TraceCut  bool           // it said so in a way that cannot be read
	Unseen    bool           // release: no worker has seen the task, which is no attempt
	Extend    time.Duration  // extend: 0 the topic's visibility timeout
	Name      string         // checkpoint: what returned Value
	Value     []byte

	// Refused is the answer to a settlement that is wrong in itself; nothing is done then.
	Refused *problem.Error

	Reason store.Reason // nack: dead-letter for this reason
}

// Next is what an ack enqueues, if and only if it ends its hold: tasks that are checked, and have
// their times.
type Next struct {
	Tasks []NextTask
	Bytes int // of payload
}

// NextTask is one of them.
type NextTask struct {
	Topic string
	Task  store.Task
	AnyID bool // the id that it has may be another one
}

// Settled is the outcome of one Settlement.
type Settled struct {
	ID      string
	Token   []byte
	Kind    SettleKind
	Name    string        // checkpoint
	Already bool          // ack: accepted before; checkpoint: the name has a value, which stays
	State   store.State   // nack, release: the task's state now
	Due     store.Millis  // nack, release: when it is due again
	HoldFor time.Duration // extend: what the hold lasts from now

	Cancelled bool // extend: the task's cancellation was asked for

	Err *problem.Error // nil: done
}

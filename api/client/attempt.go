package client

import (
	"encoding/hex"
	"time"

	"github.com/ddq-io/ddq/api/client/internal/fields"
	"github.com/ddq-io/ddq/api/client/internal/wire"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// AttemptOutcome is how an attempt ended.
type AttemptOutcome int32

// How attempts end.
const (
	AttemptRunning     AttemptOutcome = AttemptOutcome(ddqv1.AttemptOutcome_ATTEMPT_OUTCOME_UNSPECIFIED)
	AttemptAcked       AttemptOutcome = AttemptOutcome(ddqv1.AttemptOutcome_ATTEMPT_OUTCOME_ACKED)
	AttemptFailed      AttemptOutcome = AttemptOutcome(ddqv1.AttemptOutcome_ATTEMPT_OUTCOME_FAILED)
	AttemptReleased    AttemptOutcome = AttemptOutcome(ddqv1.AttemptOutcome_ATTEMPT_OUTCOME_RELEASED)     // the worker gave the task back
	AttemptHoldExpired AttemptOutcome = AttemptOutcome(ddqv1.AttemptOutcome_ATTEMPT_OUTCOME_HOLD_EXPIRED) // the worker did not settle the task in time
	AttemptCancelled   AttemptOutcome = AttemptOutcome(ddqv1.AttemptOutcome_ATTEMPT_OUTCOME_CANCELLED)    // it ended without success after that was asked for
)

// String returns the outcome in lower case, such as "hold_expired".
func (o AttemptOutcome) String() string {
	return wire.WordOr(ddqv1.AttemptOutcome(o).String(), "ATTEMPT_OUTCOME_", "running")
}

// Attempt is one delivery of a task. Times that are not known are zero.
type Attempt struct {
	Number  int            `json:"number"` // from 1; the next one after a release has the same
	Outcome AttemptOutcome `json:"outcome"`
	Worker  string         `json:"worker,omitempty"`
	Node    string         `json:"node,omitempty"`   // that took the task for the worker
	Due     time.Time      `json:"due_at,omitempty"` // when the task was due by then
	Started time.Time      `json:"started_at,omitempty"`
	Ended   time.Time      `json:"ended_at,omitempty"` // zero while it runs
	Error   string         `json:"error,omitempty"`
	TraceID string         `json:"trace_id,omitempty"` // in which the worker recorded it, in hex; empty when it did not
}

// MarshalJSON writes the form that `ddq task get -o json` prints.
func (a Attempt) MarshalJSON() ([]byte, error) { return fields.Write(a) }

// UnmarshalJSON reads it.
func (a *Attempt) UnmarshalJSON(b []byte) error { return fields.Read(b, a) }

func attemptsFrom(list []*ddqv1.Attempt) []Attempt {
	return wire.Each(list, func(a *ddqv1.Attempt) Attempt {
		return Attempt{
			Number:  int(a.GetNumber()),
			Worker:  a.GetWorker(),
			Node:    a.GetNode(),
			Started: wire.Time(a.GetStartedAt()),
			Ended:   wire.Time(a.GetEndedAt()),
			Outcome: AttemptOutcome(a.GetOutcome()),
			Error:   a.GetError(),
			Due:     wire.Time(a.GetDueAt()),
			TraceID: hex.EncodeToString(a.GetTraceId()),
		}
	})
}

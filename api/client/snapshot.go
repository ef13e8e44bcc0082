package client

import (
	"time"

	"github.com/ddq-io/ddq/api/client/internal/fields"
	"github.com/ddq-io/ddq/api/client/internal/wire"
	"github.com/ddq-io/ddq/api/client/journal"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// Snapshot is a stored task at the moment of the answer. Times that do not
// apply are zero.
type Snapshot struct {
	Topic             string            `json:"topic"`
	ID                string            `json:"id"`
	State             State             `json:"state"`
	Due               time.Time         `json:"execute_time"`
	CreatedAt         time.Time         `json:"created_at"`
	RetryCount        int               `json:"retry_count"` // deliveries so far, without the first; of a running task, without the present one
	MaxRetries        int               `json:"max_retries"` // the task's own or the topic's
	Payload           []byte            `json:"payload"`
	Attributes        map[string]string `json:"attributes,omitempty"`
	Expires           time.Time         `json:"expire_time,omitempty"`
	VisibilityTimeout time.Duration     `json:"visibility_timeout_ms,omitempty"` // the task's own; 0 when the topic's applies
	HandlerTimeout    time.Duration     `json:"handler_timeout_ms,omitempty"`    // the task's own; 0 when the worker decides
	Backoff           *Backoff          `json:"backoff,omitempty"`               // the task's own; nil when the topic's applies
	Priority          int               `json:"priority,omitempty"`
	TaskKeys
	Schedule        string          `json:"schedule,omitempty"`        // that made it; empty when it was enqueued
	Occurrence      time.Time       `json:"occurrence_time,omitempty"` // that it was made of
	Recipient       string          `json:"recipient,omitempty"`       // for whom it is, of a schedule that has an audience
	RecipientData   []byte          `json:"recipient_data,omitempty"`
	Cause           *Cause          `json:"cause,omitempty"`            // the task whose ack enqueued it; nil of others
	Traceparent     string          `json:"traceparent,omitempty"`      // of whoever enqueued it, in the form of W3C; empty when there is none
	Tracestate      string          `json:"tracestate,omitempty"`       // the same
	WaitingFor      WaitingFor      `json:"waiting_for,omitempty"`      // what a task that is due lacks, as far as is known
	NextToken       time.Time       `json:"next_token_time,omitempty"`  // waiting for a rate: when it has a token again
	LastError       string          `json:"last_error,omitempty"`       // of the last failed attempt
	DeadReason      DeadReason      `json:"dead_reason,omitempty"`      // of a dead or expired task
	FinishedAt      time.Time       `json:"finished_at,omitempty"`      // when it was done, dead or expired
	Worker          string          `json:"worker,omitempty"`           // that holds the task
	HoldDeadline    time.Time       `json:"hold_deadline,omitempty"`    // when that hold ends
	Version         int64           `json:"version"`                    // 1 when enqueued; rises by one with every edit
	CancelRequested bool            `json:"cancel_requested,omitempty"` // of a running task
	Result          []byte          `json:"result,omitempty"`           // of a done task; Get and Wait only
	Attempts        []Attempt       `json:"attempts,omitempty"`         // the last 20, the one that runs last; Get and Wait only
	Journal         []journal.Entry `json:"journal,omitempty"`          // what its handler did once, in the order in which that was kept; Get only
}

// Cause names the task whose ack enqueued another one.
type Cause struct {
	Topic string `json:"topic"`
	ID    string `json:"id"`
}

func causeFrom(c *ddqv1.TaskCause) *Cause {
	if c == nil {
		return nil
	}
	return &Cause{Topic: c.GetTopic(), ID: c.GetId()}
}

// TaskKeys are the keys that a task shares with others. Empty: none.
type TaskKeys struct {
	IdempotencyKey string `json:"idempotency_key,omitempty"`
	FairnessKey    string `json:"fairness_key,omitempty"`
	FairnessWeight int    `json:"fairness_weight,omitempty"`
	RateKey        string `json:"rate_key,omitempty"`
	ConcurrencyKey string `json:"concurrency_key,omitempty"`
	OrderingKey    string `json:"ordering_key,omitempty"`
}

// MarshalJSON writes the form that `ddq task get -o json` prints.
func (s Snapshot) MarshalJSON() ([]byte, error) { return fields.Write(s) }

// UnmarshalJSON reads it.
func (s *Snapshot) UnmarshalJSON(b []byte) error { return fields.Read(b, s) }

func snapshot(t *ddqv1.Task) Snapshot {
	return Snapshot{
		Topic:             t.GetTopic(),
		ID:                t.GetId(),
		Payload:           t.GetPayload(),
		Attributes:        wire.AttributesFrom(t.GetAttributes()),
		State:             State(t.GetState()),
		Due:               wire.Time(t.GetExecuteTime()),
		CreatedAt:         wire.Time(t.GetCreatedAt()),
		Expires:           wire.Time(t.GetExpireTime()),
		RetryCount:        int(t.GetRetryCount()),
		MaxRetries:        int(t.GetMaxRetries()),
		VisibilityTimeout: wire.Duration(t.GetVisibilityTimeoutMs()),
		HandlerTimeout:    wire.Duration(t.GetHandlerTimeoutMs()),
		Backoff:           backoffFrom(t.GetBackoff()),
		Priority:          int(t.GetPriority()),
		TaskKeys: TaskKeys{
			IdempotencyKey: t.GetIdempotencyKey(),
			FairnessKey:    t.GetFairnessKey(),
			FairnessWeight: int(t.GetFairnessWeight()),
			RateKey:        t.GetRateKey(),
			ConcurrencyKey: t.GetConcurrencyKey(),
			OrderingKey:    t.GetOrderingKey(),
		},
		Schedule:        t.GetSchedule(),
		Occurrence:      wire.Time(t.GetOccurrenceTime()),
		Recipient:       t.GetRecipient(),
		RecipientData:   t.GetRecipientData(),
		Cause:           causeFrom(t.GetCause()),
		Traceparent:     t.GetTraceparent(),
		Tracestate:      t.GetTracestate(),
		WaitingFor:      WaitingFor(t.GetWaitingFor()),
		NextToken:       wire.Time(t.GetNextTokenTime()),
		LastError:       t.GetLastError(),
		DeadReason:      DeadReason(t.GetDeadReason()),
		FinishedAt:      wire.Time(t.GetFinishedAt()),
		Worker:          t.GetWorker(),
		HoldDeadline:    wire.Time(t.GetHoldDeadline()),
		Version:         t.GetVersion(),
		CancelRequested: t.GetCancelRequested(),
		Result:          t.GetResult(),
		Attempts:        attemptsFrom(t.GetAttempts()),
		Journal:         journal.From(t.GetJournal()),
	}
}

func snapshots(tasks []*ddqv1.Task) []Snapshot { return wire.Each(tasks, snapshot) }

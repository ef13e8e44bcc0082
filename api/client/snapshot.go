package client

import (
	"time"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// Snapshot is a stored task at the moment of the answer. Times that do not
// apply are zero.
type Snapshot struct {
	Topic             string
	ID                string
	Payload           []byte
	Attributes        map[string]string
	State             State
	Due               time.Time
	CreatedAt         time.Time
	Expires           time.Time
	RetryCount        int           // deliveries so far, without the first; of a running task, without the present one
	MaxRetries        int           // the task's own or the topic's
	VisibilityTimeout time.Duration // the task's own; 0 when the topic's applies
	Backoff           *Backoff      // the task's own; nil when the topic's applies
	Priority          int
	IdempotencyKey    string // empty: none
	FairnessKey       string
	FairnessWeight    int
	RateKey           string
	ConcurrencyKey    string
	OrderingKey       string
	WaitingFor        WaitingFor // what a task that is due lacks, as far as is known
	NextToken         time.Time  // waiting for a rate: when it has a token again
	LastError         string     // of the last failed attempt
	DeadReason        DeadReason // of a dead or expired task
	FinishedAt        time.Time  // when it was done, dead or expired
	Worker            string     // that holds the task
	HoldDeadline      time.Time  // when that hold ends
	Version           int64      // 1 when enqueued; rises by one with every edit
	CancelRequested   bool       // of a running task
	Result            []byte     // of a done task; Get and Wait only
	Attempts          []Attempt  // the last 20, the one that runs last; Get and Wait only
}

func snapshot(t *ddqv1.Task) Snapshot {
	return Snapshot{
		Topic:             t.GetTopic(),
		ID:                t.GetId(),
		Payload:           t.GetPayload(),
		Attributes:        attributesFrom(t.GetAttributes()),
		State:             State(t.GetState()),
		Due:               timeOf(t.GetExecuteTime()),
		CreatedAt:         timeOf(t.GetCreatedAt()),
		Expires:           timeOf(t.GetExpireTime()),
		RetryCount:        int(t.GetRetryCount()),
		MaxRetries:        int(t.GetMaxRetries()),
		VisibilityTimeout: duration(t.GetVisibilityTimeoutMs()),
		Backoff:           backoffFrom(t.GetBackoff()),
		Priority:          int(t.GetPriority()),
		IdempotencyKey:    t.GetIdempotencyKey(),
		FairnessKey:       t.GetFairnessKey(),
		FairnessWeight:    int(t.GetFairnessWeight()),
		RateKey:           t.GetRateKey(),
		ConcurrencyKey:    t.GetConcurrencyKey(),
		OrderingKey:       t.GetOrderingKey(),
		WaitingFor:        WaitingFor(t.GetWaitingFor()),
		NextToken:         timeOf(t.GetNextTokenTime()),
		LastError:         t.GetLastError(),
		DeadReason:        DeadReason(t.GetDeadReason()),
		FinishedAt:        timeOf(t.GetFinishedAt()),
		Worker:            t.GetWorker(),
		HoldDeadline:      timeOf(t.GetHoldDeadline()),
		Version:           t.GetVersion(),
		CancelRequested:   t.GetCancelRequested(),
		Result:            t.GetResult(),
		Attempts:          attemptsFrom(t.GetAttempts()),
	}
}

func snapshots(tasks []*ddqv1.Task) []Snapshot {
	list := make([]Snapshot, len(tasks))
	for i, t := range tasks {
		list[i] = snapshot(t)
	}
	return list
}

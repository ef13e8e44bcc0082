package outbox

import (
	"math"
	"time"

	"github.com/ddq-io/ddq/api/client"
)

// options is what a row keeps of a task as JSON. The names are the protocol's, and those that
// ddq_outbox.enqueue takes in SQL.
type options struct {
	Attributes        map[string]string `json:"attributes,omitempty"`
	MaxRetries        *int              `json:"max_retries,omitempty"`
	VisibilityTimeout int64             `json:"visibility_timeout_ms,omitempty"`
	HandlerTimeout    int64             `json:"handler_timeout_ms,omitempty"`
	Backoff           *client.Backoff   `json:"backoff,omitempty"`
	Priority          int               `json:"priority,omitempty"`
	FairnessKey       string            `json:"fairness_key,omitempty"`
	FairnessWeight    int               `json:"fairness_weight,omitempty"`
	RateKey           string            `json:"rate_key,omitempty"`
	ConcurrencyKey    string            `json:"concurrency_key,omitempty"`
	OrderingKey       string            `json:"ordering_key,omitempty"`
	Slack             int64             `json:"slack_ms,omitempty"`
	Latest            time.Time         `json:"latest_time,omitzero"`
	Expires           time.Time         `json:"expire_time,omitzero"`
	ExpireAfter       int64             `json:"expire_after_ms,omitempty"`

	// Of an idempotency key of the caller's.
	Window     int64  `json:"window_ms,omitempty"`
	OnConflict string `json:"on_conflict,omitempty"`
}

func optionsOf(t client.Task) options {
	o := options{
		Attributes: t.Attributes, MaxRetries: t.MaxRetries, Backoff: t.Backoff,
		VisibilityTimeout: toMillis(t.VisibilityTimeout), HandlerTimeout: toMillis(t.HandlerTimeout),
		Priority: t.Priority, FairnessKey: t.FairnessKey, FairnessWeight: t.FairnessWeight,
		RateKey: t.RateKey, ConcurrencyKey: t.ConcurrencyKey, OrderingKey: t.OrderingKey,
		Slack: toMillis(t.Slack), Latest: t.Latest, Expires: t.Expires, ExpireAfter: toMillis(t.ExpireAfter),
	}
	if k := t.Idempotency; k != nil {
		o.Window = toMillis(k.Window)
		if k.OnConflict == client.ConflictReject {
			o.OnConflict = k.OnConflict.String()
		}
	}
	return o
}

// task has what the options say, and nothing else.
func (o options) task() client.Task {
	return client.Task{
		Attributes: o.Attributes, MaxRetries: o.MaxRetries, Backoff: o.Backoff,
		VisibilityTimeout: millis(o.VisibilityTimeout), HandlerTimeout: millis(o.HandlerTimeout),
		Priority: o.Priority, FairnessKey: o.FairnessKey, FairnessWeight: o.FairnessWeight,
		RateKey: o.RateKey, ConcurrencyKey: o.ConcurrencyKey, OrderingKey: o.OrderingKey,
		Slack: millis(o.Slack), Latest: o.Latest, Expires: o.Expires, ExpireAfter: millis(o.ExpireAfter),
	}
}

// toMillis rounds up, as the protocol does.
func toMillis(d time.Duration) int64 {
	n := d.Milliseconds()
	if d > time.Duration(n)*time.Millisecond {
		n++
	}
	return n
}

// millis are n milliseconds; those beyond a duration are the longest one of their sign.
func millis(n int64) time.Duration {
	const most = math.MaxInt64 / int64(time.Millisecond)
	return time.Duration(max(-most, min(n, most))) * time.Millisecond
}

package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/ddq-io/ddq/api/client"
)

// The views are what -o json prints. Scripts depend on them: fields may be
// added, and neither renamed nor removed. Times are RFC 3339 in UTC with
// milliseconds, durations integers of milliseconds.

type taskView struct {
	Topic               string            `json:"topic"`
	ID                  string            `json:"id"`
	State               string            `json:"state"`
	ExecuteTime         string            `json:"execute_time"`
	CreatedAt           string            `json:"created_at"`
	RetryCount          int               `json:"retry_count"`
	MaxRetries          int               `json:"max_retries"`
	Payload             *string           `json:"payload,omitempty"` // when it is UTF-8
	PayloadBase64       []byte            `json:"payload_base64,omitempty"`
	Attributes          map[string]string `json:"attributes,omitempty"`
	ExpireTime          string            `json:"expire_time,omitempty"`
	VisibilityTimeoutMs int64             `json:"visibility_timeout_ms,omitempty"`
	Backoff             *backoffView      `json:"backoff,omitempty"`
	Priority            int               `json:"priority,omitempty"`
	IdempotencyKey      string            `json:"idempotency_key,omitempty"`
	FairnessKey         string            `json:"fairness_key,omitempty"`
	FairnessWeight      int               `json:"fairness_weight,omitempty"`
	RateKey             string            `json:"rate_key,omitempty"`
	ConcurrencyKey      string            `json:"concurrency_key,omitempty"`
	WaitingFor          string            `json:"waiting_for,omitempty"`
	NextTokenTime       string            `json:"next_token_time,omitempty"`
	LastError           string            `json:"last_error,omitempty"`
	DeadReason          string            `json:"dead_reason,omitempty"`
	FinishedAt          string            `json:"finished_at,omitempty"`
	Worker              string            `json:"worker,omitempty"`
	HoldDeadline        string            `json:"hold_deadline,omitempty"`
	Version             int64             `json:"version"`
	CancelRequested     bool              `json:"cancel_requested,omitempty"`
	Result              *string           `json:"result,omitempty"` // when it is UTF-8
	ResultBase64        []byte            `json:"result_base64,omitempty"`
	Attempts            []attemptView     `json:"attempts,omitempty"`
}

func viewTask(t client.Snapshot) taskView {
	v := taskView{
		Topic:               t.Topic,
		ID:                  t.ID,
		State:               t.State.String(),
		ExecuteTime:         clock(t.Due),
		CreatedAt:           clock(t.CreatedAt),
		RetryCount:          t.RetryCount,
		MaxRetries:          t.MaxRetries,
		Attributes:          t.Attributes,
		ExpireTime:          clock(t.Expires),
		VisibilityTimeoutMs: t.VisibilityTimeout.Milliseconds(),
		Backoff:             viewBackoff(t.Backoff),
		Priority:            t.Priority,
		IdempotencyKey:      t.IdempotencyKey,
		FairnessKey:         t.FairnessKey,
		FairnessWeight:      t.FairnessWeight,
		RateKey:             t.RateKey,
		ConcurrencyKey:      t.ConcurrencyKey,
		WaitingFor:          t.WaitingFor.String(),
		NextTokenTime:       clock(t.NextToken),
		LastError:           t.LastError,
		DeadReason:          t.DeadReason.String(),
		FinishedAt:          clock(t.FinishedAt),
		Worker:              t.Worker,
		HoldDeadline:        clock(t.HoldDeadline),
		Version:             t.Version,
		CancelRequested:     t.CancelRequested,
		Attempts:            viewAttempts(t.Attempts),
	}
	if len(t.Result) > 0 {
		v.Result, v.ResultBase64 = viewPayload(t.Result)
	}
	v.Payload, v.PayloadBase64 = viewPayload(t.Payload)
	return v
}

// viewPayload shows text as text and anything else in base64.
func viewPayload(p []byte) (text *string, raw []byte) {
	if !utf8.Valid(p) {
		return nil, p
	}
	return new(string(p)), nil
}

func (v taskView) rows() []table.Row {
	rows := []table.Row{
		{"id", v.ID}, {"topic", v.Topic}, {"state", v.State}, {"due", v.ExecuteTime}, {"created", v.CreatedAt},
		{"retries", v.RetryCount}, {"max retries", v.MaxRetries}, {"version", v.Version},
	}
	for _, o := range []table.Row{
		{"fairness key", printable(v.FairnessKey)}, {"rate key", printable(v.RateKey)}, {"concurrency key", printable(v.ConcurrencyKey)},
		{"waiting for", v.WaitingFor}, {"next token", v.NextTokenTime}, {"expires", v.ExpireTime}, {"worker", printable(v.Worker)}, {"hold ends", v.HoldDeadline}, {"last error", printable(v.LastError)},
		{"dead because", v.DeadReason}, {"finished", v.FinishedAt}, {"backoff", v.Backoff.text()},
	} {
		if o[1] != "" {
			rows = append(rows, o)
		}
	}
	if v.IdempotencyKey != "" {
		rows = append(rows, table.Row{"idempotency key", printable(v.IdempotencyKey)})
	}
	if v.Priority > 0 {
		rows = append(rows, table.Row{"priority", v.Priority})
	}
	if v.VisibilityTimeoutMs > 0 {
		rows = append(rows, table.Row{"visibility timeout", lasting(millis(v.VisibilityTimeoutMs))})
	}
	for _, key := range sortedKeys(v.Attributes) {
		rows = append(rows, table.Row{"attribute " + printable(key), printable(v.Attributes[key])})
	}
	if v.CancelRequested {
		rows = append(rows, table.Row{"cancellation", "asked for"})
	}
	for _, a := range v.Attempts {
		rows = append(rows, table.Row{fmt.Sprintf("attempt %d", a.Number), a.text()})
	}
	if v.Result != nil || v.ResultBase64 != nil {
		rows = append(rows, table.Row{"result", bytesText(v.Result, v.ResultBase64)})
	}
	return append(rows, table.Row{"payload", v.payloadText()})
}

// payloadText is the payload for people.
func (v taskView) payloadText() string { return bytesText(v.Payload, v.PayloadBase64) }

// bytesText is what viewPayload made, for people.
func bytesText(text *string, raw []byte) string {
	if text != nil {
		return printable(*text)
	}
	return byteCount(int64(len(raw))) + " that are no text; see -o json"
}

type depthView struct {
	Scheduled int64 `json:"scheduled"`
	Ready     int64 `json:"ready"`
	Running   int64 `json:"running"`
	Done      int64 `json:"done"`
	Dead      int64 `json:"dead"`
}

type topicView struct {
	Name                string       `json:"name"`
	Shards              int          `json:"shards"`
	FormerShards        int          `json:"former_shards,omitempty"` // of before a reshard
	VisibilityTimeoutMs int64        `json:"visibility_timeout_ms"`
	MaxRetries          int          `json:"max_retries"`
	Backoff             *backoffView `json:"backoff"`
	MaxDelayMs          int64        `json:"max_delay_ms"`
	MaxPayloadBytes     int          `json:"max_payload_bytes"`
	DoneRetentionMs     int64        `json:"done_retention_ms"`
	DeadRetentionMs     int64        `json:"dead_retention_ms"`
	MaxDead             int          `json:"max_dead"`
	MaxBacklog          int          `json:"max_backlog"`
	PriorityAgeing      int          `json:"priority_ageing"`
	WatchRetentionMs    int64        `json:"watch_retention_ms,omitempty"`
	WatchMaxEvents      int          `json:"watch_max_events,omitempty"`
	Rate                *rateView    `json:"rate,omitempty"`
	KeyRate             *rateView    `json:"key_rate,omitempty"`
	Concurrency         int          `json:"concurrency,omitempty"`
	KeyConcurrency      int          `json:"key_concurrency,omitempty"`
	OverLimit           string       `json:"over_limit,omitempty"`
	IndexedAttributes   []string     `json:"indexed_attributes,omitempty"`
	DeliveryPaused      bool         `json:"delivery_paused"`
	EnqueuePaused       bool         `json:"enqueue_paused"`
	ResumedAt           string       `json:"resumed_at,omitempty"` // when a ramp began
	RampMs              int64        `json:"ramp_ms,omitempty"`
	Version             int64        `json:"version"`
	Depth               *depthView   `json:"depth,omitempty"` // describe only, as what follows
	Subscriptions       *int         `json:"subscriptions,omitempty"`
	Durability          string       `json:"durability,omitempty"`
	IndexingShards      int          `json:"indexing_shards,omitempty"` // whose index is not ready
}

func viewTopic(t client.Topic) topicView {
	p := t.Policy
	v := topicView{
		Name:                t.Name,
		Shards:              value(p.Shards),
		FormerShards:        t.FormerShards,
		VisibilityTimeoutMs: value(p.VisibilityTimeout).Milliseconds(),
		MaxRetries:          value(p.MaxRetries),
		Backoff:             viewBackoff(p.Backoff),
		MaxDelayMs:          value(p.MaxDelay).Milliseconds(),
		MaxPayloadBytes:     value(p.MaxPayload),
		DoneRetentionMs:     value(p.DoneRetention).Milliseconds(),
		DeadRetentionMs:     value(p.DeadRetention).Milliseconds(),
		MaxDead:             value(p.MaxDead),
		MaxBacklog:          value(p.MaxBacklog),
		ResumedAt:           clock(t.Resumed),
		RampMs:              t.Ramp.Milliseconds(),
		PriorityAgeing:      value(p.PriorityAgeing),
		IndexedAttributes:   value(p.IndexedAttributes),
		Rate:                viewRate(p.Rate),
		KeyRate:             viewRate(p.KeyRate),
		Concurrency:         value(p.Concurrency),
		KeyConcurrency:      value(p.KeyConcurrency),
		OverLimit:           viewOver(p.OverLimit),
		DeliveryPaused:      t.DeliveryPaused,
		EnqueuePaused:       t.EnqueuePaused,
		Version:             t.Version,
	}
	if v.WatchRetentionMs = value(p.WatchRetention).Milliseconds(); v.WatchRetentionMs > 0 {
		v.WatchMaxEvents = value(p.WatchMax)
	}
	return v
}

func viewTopicStatus(s client.TopicStatus) topicView {
	v := viewTopic(s.Topic)
	v.Depth = (*depthView)(&s.Depth)
	v.Subscriptions = &s.Subscriptions
	v.Durability = s.Durability
	v.IndexingShards = s.IndexingShards
	return v
}

func (v topicView) rows() []table.Row {
	rows := []table.Row{
		{"name", v.Name}, {"paused", v.paused()}, {"shards", v.shards()},
		{"visibility timeout", lasting(millis(v.VisibilityTimeoutMs))}, {"max retries", v.MaxRetries}, {"backoff", v.Backoff.text()},
		{"max delay", lasting(millis(v.MaxDelayMs))}, {"max payload", byteCount(int64(v.MaxPayloadBytes))},
		{"done retention", lasting(millis(v.DoneRetentionMs))}, {"dead retention", lastingOr(v.DeadRetentionMs, "for ever")},
		{"max dead", countOr(v.MaxDead, "any number")}, {"max backlog", countOr(v.MaxBacklog, "any number")}, {"priority ageing", v.PriorityAgeing}, {"version", v.Version},
	}
	if v.RampMs > 0 {
		rows = append(rows, table.Row{"resumed", fmt.Sprintf("%s, rising for %s", v.ResumedAt, lasting(millis(v.RampMs)))})
	}
	if v.WatchRetentionMs > 0 {
		rows = append(rows, table.Row{"watch retention", fmt.Sprintf("%s, %d changes a shard", lasting(millis(v.WatchRetentionMs)), v.WatchMaxEvents)})
	}
	rows = append(rows, v.limitRows()...)
	if len(v.IndexedAttributes) > 0 || v.IndexingShards > 0 {
		rows = append(rows, table.Row{"indexed attributes", v.indexed()})
	}
	if d := v.Depth; d != nil {
		rows = append(rows, table.Row{"durability", v.Durability}, table.Row{"subscriptions here", *v.Subscriptions},
			table.Row{"scheduled", d.Scheduled}, table.Row{"ready", d.Ready}, table.Row{"running", d.Running},
			table.Row{"done", d.Done}, table.Row{"dead", d.Dead})
	}
	return rows
}

// indexed are the names, and whether all tasks are found by them.
func (v topicView) indexed() string {
	names := strings.Join(v.IndexedAttributes, ", ")
	switch {
	case v.IndexingShards > 0:
		return strings.TrimSpace(fmt.Sprintf("%s (building: %d shards to go)", names, v.IndexingShards))
	case v.Depth != nil:
		return names + " (ready)"
	}
	return names
}

// lastingOr and countOr put what 0 means into words.
func lastingOr(ms int64, zero string) string {
	if ms == 0 {
		return zero
	}
	return lasting(millis(ms))
}

func countOr(n int, zero string) string {
	if n == 0 {
		return zero
	}
	return strconv.Itoa(n)
}

// shards is their number, and how many are left of before a reshard.
func (v topicView) shards() string {
	if v.FormerShards == 0 {
		return strconv.Itoa(v.Shards)
	}
	return fmt.Sprintf("%d, and %d former ones", v.Shards, v.FormerShards)
}

func (v topicView) paused() string {
	var what []string
	if v.DeliveryPaused {
		what = append(what, "delivery")
	}
	if v.EnqueuePaused {
		what = append(what, "enqueue")
	}
	return orElse(strings.Join(what, ", "), "no")
}

type backoffView struct {
	Kind          string `json:"kind"`
	BaseMs        int64  `json:"base_ms"`
	MaxMs         int64  `json:"max_ms"`
	JitterPercent int    `json:"jitter_percent"`
}

func viewBackoff(b *client.Backoff) *backoffView {
	if b == nil {
		return nil
	}
	return &backoffView{b.Kind.String(), b.Base.Milliseconds(), b.Max.Milliseconds(), b.JitterPercent}
}

// text writes a backoff as --backoff takes it.
func (b *backoffView) text() string {
	if b == nil {
		return ""
	}
	return backoffText(b.Kind, millis(b.BaseMs), millis(b.MaxMs), b.JitterPercent)
}

func millis(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// value is what p points to, or the zero value.
func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

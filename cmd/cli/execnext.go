package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"time"
	"unicode/utf8"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/worker"
	"github.com/ddq-io/ddq/cmd/cli/workflowfile"
	"github.com/ddq-io/ddq/cmd/node"
)

// nextLine is a task as a command asks for it.
type nextLine struct {
	Topic          string            `json:"topic"`
	ID             string            `json:"id"`
	Payload        string            `json:"payload"`
	PayloadBase64  []byte            `json:"payload_base64"`
	Delay          string            `json:"delay"`
	ExecuteTime    time.Time         `json:"execute_time"`
	Attributes     map[string]string `json:"attributes"`
	MaxRetries     *int              `json:"max_retries"`
	Priority       int               `json:"priority"`
	OrderingKey    string            `json:"ordering_key"`
	FairnessKey    string            `json:"fairness_key"`
	RateKey        string            `json:"rate_key"`
	ConcurrencyKey string            `json:"concurrency_key"`
	IdempotencyKey string            `json:"idempotency_key"`
}

// growLine is what a command adds to the workflow of its step.
type growLine struct {
	Grow json.RawMessage `json:"grow"`
}

// takeNext takes a line for the ack of t: what is added to its workflow, or a task.
func takeNext(t worker.Task, line []byte) error {
	if !utf8.Valid(line) { // JSON would be read with other bytes in their place
		return errors.New("it is not UTF-8; payload_base64 takes other bytes")
	}
	var asked growLine
	if json.Unmarshal(line, &asked) == nil && len(asked.Grow) > 0 {
		if err := strictly(line, &asked); err != nil {
			return err
		}
		more, err := workflowfile.ReadGrowth(asked.Grow)
		if err != nil {
			return err
		}
		return t.GrowWire(more)
	}
	next, err := parseNext(line, t.Topic)
	if err != nil {
		return err
	}
	return t.Enqueue(next)
}

// strictly reads a line that has no other fields.
func strictly(line []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// parseNext reads a task; one that names no topic is for that of the task which the command is for.
func parseNext(line []byte, topic string) (client.Task, error) {
	asked := nextLine{Topic: topic}
	if err := strictly(line, &asked); err != nil {
		return client.Task{}, err
	}
	t := client.Task{
		Topic: asked.Topic, ID: asked.ID, Payload: []byte(asked.Payload), Due: asked.ExecuteTime, Attributes: asked.Attributes,
		MaxRetries: asked.MaxRetries, Priority: asked.Priority, OrderingKey: asked.OrderingKey, FairnessKey: asked.FairnessKey,
		RateKey: asked.RateKey, ConcurrencyKey: asked.ConcurrencyKey,
	}
	if len(asked.PayloadBase64) > 0 {
		t.Payload = asked.PayloadBase64
	}
	if asked.IdempotencyKey != "" {
		t.Idempotency = &client.Idempotency{Key: asked.IdempotencyKey}
	}
	if asked.Delay == "" {
		return t, nil
	}
	var err error
	t.Delay, err = node.ParseDuration(asked.Delay)
	return t, err
}

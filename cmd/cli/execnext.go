package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/worker"
	"github.com/ddq-io/ddq/cmd/cli/workflowfile"
	"github.com/ddq-io/ddq/cmd/node"
)

// maxNextLine is how long a line of file descriptor 3 may be: base64 of all that an ack may enqueue.
const maxNextLine = 2 * worker.MaxEnqueueBytes

// nextLines takes what a command writes to file descriptor 3, line by line. What comes behind a line that
// is refused is not wanted.
type nextLines struct {
	take    func(line []byte) error
	part    []byte // of a line
	number  int    // of lines
	refused error
}

func (n *nextLines) Write(p []byte) (int, error) {
	if n.refused != nil {
		return len(p), nil
	}
	n.part = append(n.part, p...)
	for n.refused == nil {
		line, rest, whole := bytes.Cut(n.part, []byte{'\n'})
		if !whole {
			break
		}
		n.line(line)
		n.part = rest
	}
	if n.refused == nil && len(n.part) > maxNextLine {
		n.refused = fmt.Errorf("file descriptor 3: %w", bufio.ErrTooLong)
	}
	return len(p), nil
}

func (n *nextLines) line(line []byte) {
	n.number++
	if line = bytes.TrimSpace(line); len(line) == 0 {
		return
	}
	if err := n.take(line); err != nil {
		n.refused = fmt.Errorf("line %d of file descriptor 3: %w", n.number, err)
	}
}

// end takes a last line that has no end, and says which was refused.
func (n *nextLines) end() error {
	if n.refused == nil && len(n.part) > 0 {
		n.line(n.part)
	}
	return n.refused
}

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

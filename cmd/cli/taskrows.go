package cli

import (
	"cmp"
	"fmt"
	"iter"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/cmd/node"
)

// printTask prints one task: as JSON, or a table for people.
func (c *cli) printTask(t client.Snapshot) error { return c.record(t, taskRows(&t)...) }

func taskRows(t *client.Snapshot) []table.Row {
	rows := []table.Row{
		{"id", t.ID}, {"topic", t.Topic}, {"state", t.State.String()}, {"due", clock(t.Due)}, {"created", clock(t.CreatedAt)},
		{"retries", t.RetryCount}, {"max retries", t.MaxRetries}, {"version", t.Version},
	}
	for _, o := range []table.Row{
		{"fairness key", printable(t.FairnessKey)}, {"rate key", printable(t.RateKey)}, {"concurrency key", printable(t.ConcurrencyKey)},
		{"ordering key", printable(t.OrderingKey)},
		{"waiting for", t.WaitingFor.String()}, {"next token", clock(t.NextToken)}, {"expires", clock(t.Expires)}, {"worker", printable(t.Worker)},
		{"hold ends", clock(t.HoldDeadline)}, {"last error", printable(t.LastError)},
		{"dead because", t.DeadReason.String()}, {"finished", clock(t.FinishedAt)}, {"backoff", backoffText(t.Backoff)},
	} {
		if o[1] != "" {
			rows = append(rows, o)
		}
	}
	if t.IdempotencyKey != "" {
		rows = append(rows, table.Row{"idempotency key", printable(t.IdempotencyKey)})
	}
	if t.Priority > 0 {
		rows = append(rows, table.Row{"priority", t.Priority})
	}
	if t.VisibilityTimeout > 0 {
		rows = append(rows, table.Row{"visibility timeout", node.DurationText(t.VisibilityTimeout)})
	}
	for _, key := range sortedKeys(t.Attributes) {
		rows = append(rows, table.Row{"attribute " + printable(key), printable(t.Attributes[key])})
	}
	if t.CancelRequested {
		rows = append(rows, table.Row{"cancellation", "asked for"})
	}
	for _, a := range t.Attempts {
		rows = append(rows, table.Row{fmt.Sprintf("attempt %d", a.Number), attemptText(&a)})
	}
	if len(t.Result) > 0 {
		rows = append(rows, table.Row{"result", bytesText(t.Result)})
	}
	return append(rows, table.Row{"payload", bytesText(t.Payload)})
}

// bytesText is a payload or a result for people.
func bytesText(b []byte) string {
	if utf8.Valid(b) {
		return printable(string(b))
	}
	return byteCount(int64(len(b))) + " that are no text; see -o json"
}

// attemptText is an attempt for people, on one line.
func attemptText(a *client.Attempt) string {
	text := a.Outcome.String()
	if !a.Ended.IsZero() {
		text += " " + clock(a.Ended)
	}
	if took := a.Ended.Sub(a.Started); took > 0 && !a.Started.IsZero() {
		text += fmt.Sprintf(" after %v", took)
	}
	text += fmt.Sprintf(" by %s on %s", printable(cmp.Or(a.Worker, "?")), printable(cmp.Or(a.Node, "?")))
	if a.Error != "" {
		text += ": " + printable(a.Error)
	}
	return text
}

// tasks adds tasks up to limit, all when it is 0.
func (l *listing) tasks(all iter.Seq2[client.Snapshot, error], limit int, row func(client.Snapshot) []any) error {
	n := 0
	for t, err := range all {
		if err != nil {
			return err
		}
		if err := l.add(t, row(t)...); err != nil {
			return err
		}
		if n++; n == limit {
			break
		}
	}
	return nil
}

package cli

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/client/journal"
	"github.com/ddq-io/ddq/cmd/cli/session"
	"github.com/ddq-io/ddq/cmd/cli/terminal"
	"github.com/ddq-io/ddq/cmd/node"
)

// print prints one task: as JSON, or a table for people.
func (c taskCommands) print(t client.Snapshot) error { return c.Record(t, taskRows(&t)...) }

func taskRows(t *client.Snapshot) []table.Row {
	rows := fieldRows(reflect.ValueOf(*t))
	for _, key := range terminal.SortedKeys(t.Attributes) {
		rows = append(rows, table.Row{"attribute " + key, t.Attributes[key]})
	}
	for _, a := range t.Attempts {
		rows = append(rows, table.Row{fmt.Sprintf("attempt %d", a.Number), attemptText(&a)})
	}
	rows = append(rows, journalRows(t.Journal)...)
	if len(t.Result) > 0 {
		rows = append(rows, table.Row{"result", terminal.BytesText(t.Result)})
	}
	return append(rows, table.Row{"payload", terminal.BytesText(t.Payload)})
}

// rowNames are those of rows that read better than the field's name in JSON.
var rowNames = map[string]string{
	"execute_time": "due", "created_at": "created", "retry_count": "retries", "expire_time": "expires", "next_token_time": "next token",
	"hold_deadline": "hold ends", "dead_reason": "dead because", "finished_at": "finished", "cancel_requested": "cancel requested",
}

// fieldRows has a row for each field that -o json prints and that fits on a line.
func fieldRows(v reflect.Value) (rows []table.Row) {
	for i := range v.NumField() {
		field, value := v.Type().Field(i), v.Field(i)
		if field.Anonymous {
			rows = append(rows, fieldRows(value)...)
			continue
		}
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if options == "omitempty" && value.IsZero() {
			continue
		}
		if text := rowText(value.Interface()); text != nil {
			rows = append(rows, table.Row{cmp.Or(rowNames[name], strings.ReplaceAll(strings.TrimSuffix(name, "_ms"), "_", " ")), text})
		}
	}
	return rows
}

// rowText is a value for people, nil for one that needs more than a line.
func rowText(v any) any {
	switch v := v.(type) {
	case string:
		return v
	case int, int64, bool:
		return v
	case time.Time:
		return terminal.Clock(v)
	case time.Duration:
		return node.DurationText(v)
	case *client.Backoff:
		return session.BackoffText(v)
	case fmt.Stringer:
		return v.String()
	}
	return nil
}

// Of a journal a table has so many entries, and of each value so many bytes; -o json has all.
const (
	entriesShown = 50
	valueShown   = 200
)

// journalRows are what handlers of a task did once.
func journalRows(entries []journal.Entry) (rows []table.Row) {
	for _, e := range entries[:min(len(entries), entriesShown)] {
		rows = append(rows, table.Row{"kept " + e.Name, entryText(&e)})
	}
	if more := len(entries) - len(rows); more > 0 {
		rows = append(rows, table.Row{"kept", fmt.Sprintf("%d more; see -o json", more)})
	}
	return rows
}

// entryText is an entry of a journal for people, on one line.
func entryText(e *journal.Entry) string {
	text := terminal.ByteCount(int64(e.Size)) + " " + terminal.Clock(e.Kept)
	if len(e.Value) > 0 {
		text += ": " + terminal.Shorten(terminal.BytesText(e.Value), valueShown)
	}
	return text
}

// attemptText is an attempt for people, on one line.
func attemptText(a *client.Attempt) string {
	text := a.Outcome.String()
	if !a.Ended.IsZero() {
		text += " " + terminal.Clock(a.Ended)
	}
	if took := a.Ended.Sub(a.Started); took > 0 && !a.Started.IsZero() {
		text += fmt.Sprintf(" after %v", took)
	}
	text += fmt.Sprintf(" by %s on %s", cmp.Or(a.Worker, "?"), cmp.Or(a.Node, "?"))
	if a.Error != "" {
		text += ": " + a.Error
	}
	return text
}

package cli

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/cmd/cli/session"
	"github.com/ddq-io/ddq/cmd/cli/terminal"
	"github.com/ddq-io/ddq/cmd/node"
)

// print prints one task: as JSON, or a table for people.
func (c taskCommands) print(t client.Snapshot) error { return c.Record(t, taskRows(&t)...) }

func taskRows(t *client.Snapshot) []table.Row {
	rows := fieldRows(reflect.ValueOf(*t))
	for _, key := range terminal.SortedKeys(t.Attributes) {
		rows = append(rows, table.Row{"attribute " + terminal.Printable(key), terminal.Printable(t.Attributes[key])})
	}
	for _, a := range t.Attempts {
		rows = append(rows, table.Row{fmt.Sprintf("attempt %d", a.Number), attemptText(&a)})
	}
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
		return terminal.Printable(v)
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

// attemptText is an attempt for people, on one line.
func attemptText(a *client.Attempt) string {
	text := a.Outcome.String()
	if !a.Ended.IsZero() {
		text += " " + terminal.Clock(a.Ended)
	}
	if took := a.Ended.Sub(a.Started); took > 0 && !a.Started.IsZero() {
		text += fmt.Sprintf(" after %v", took)
	}
	text += fmt.Sprintf(" by %s on %s", terminal.Printable(cmp.Or(a.Worker, "?")), terminal.Printable(cmp.Or(a.Node, "?")))
	if a.Error != "" {
		text += ": " + terminal.Printable(a.Error)
	}
	return text
}

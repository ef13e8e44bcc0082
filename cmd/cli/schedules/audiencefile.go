package schedules

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/cmd/cli/session"
)

// recipientLine is one line of a file of recipients.
type recipientLine struct {
	number int
	client.Recipient
}

// badLine says what is wrong with a line. Whoever reads on gets the next one.
type badLine struct {
	number int
	reason string
}

func (e *badLine) Error() string { return fmt.Sprintf("line %d: %s", e.number, e.reason) }

// recipientReader reads recipients one by one: io.EOF at the end, a *badLine in between.
type recipientReader interface {
	next() (recipientLine, error)
}

// newRecipientReader reads a format: csv or ndjson.
func newRecipientReader(format string, in io.Reader) (recipientReader, error) {
	switch format {
	case "csv":
		return newCSVRecipients(in)
	case "ndjson":
		lines := bufio.NewScanner(in)
		lines.Buffer(nil, 1<<20)
		return &jsonRecipients{lines: lines}, nil
	}
	return nil, session.Usagef("--format is csv or ndjson, not %q", format)
}

// csvColumns are those that a file may have. Several kinds are parted by semicolons.
var csvColumns = []string{"id", "zone", "disabled", "quiet_from", "quiet_to", "on", "off", "data"}

type csvRecipients struct {
	rows    *csv.Reader
	columns []string
}

func newCSVRecipients(in io.Reader) (*csvRecipients, error) {
	rows := csv.NewReader(in)
	rows.ReuseRecord = true
	header, err := rows.Read()
	if err != nil {
		return nil, fmt.Errorf("the first line has the names of the columns: %w", err)
	}
	c := &csvRecipients{rows: rows, columns: slices.Clone(header)}
	for i, name := range c.columns {
		if name = strings.TrimPrefix(name, "\ufeff"); !slices.Contains(csvColumns, name) {
			return nil, fmt.Errorf("column %q is none of %s", name, strings.Join(csvColumns, ", "))
		}
		if c.columns[i] = name; slices.Contains(c.columns[:i], name) {
			return nil, fmt.Errorf("column %q is there twice", name)
		}
	}
	if !slices.Contains(c.columns, "id") {
		return nil, errors.New("there is no column id")
	}
	return c, nil
}

func (c *csvRecipients) next() (line recipientLine, err error) {
	row, err := c.rows.Read()
	if bad := (*csv.ParseError)(nil); errors.As(err, &bad) {
		return line, &badLine{bad.StartLine, bad.Err.Error()}
	}
	if err != nil {
		return line, err
	}
	line.number, _ = c.rows.FieldPos(0)
	for i, value := range row {
		if err := line.set(c.columns[i], value); err != nil {
			return line, &badLine{line.number, err.Error()}
		}
	}
	return line, nil
}

func (l *recipientLine) set(column, value string) (err error) {
	switch column {
	case "id":
		l.ID = value
	case "zone":
		l.Zone = value
	case "disabled":
		if value != "" {
			l.Disabled, err = strconv.ParseBool(value)
		}
	case "quiet_from":
		l.QuietFrom = value
	case "quiet_to":
		l.QuietTo = value
	case "on":
		l.On = kindsOf(value)
	case "off":
		l.Off = kindsOf(value)
	case "data":
		l.Data = []byte(value)
	}
	return err
}

func kindsOf(text string) (kinds []string) {
	for kind := range strings.SplitSeq(text, ";") {
		if kind = strings.TrimSpace(kind); kind != "" {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

type jsonRecipients struct {
	lines  *bufio.Scanner
	number int
}

// recipientNames has the names that a line may have; data_base64 is data that is no UTF-8.
var recipientNames = append([]string{"data_base64"}, csvColumns...)

func (j *jsonRecipients) next() (line recipientLine, err error) {
	for j.lines.Scan() {
		j.number++
		text := bytes.TrimSpace(j.lines.Bytes())
		if len(text) == 0 {
			continue
		}
		line.number = j.number
		var names map[string]json.RawMessage
		if err := json.Unmarshal(text, &names); err != nil {
			return line, &badLine{j.number, err.Error()}
		}
		for name := range names {
			if !slices.Contains(recipientNames, name) {
				return line, &badLine{j.number, fmt.Sprintf("%q is none of %s", name, strings.Join(recipientNames, ", "))}
			}
		}
		if err := json.Unmarshal(text, &line.Recipient); err != nil {
			return line, &badLine{j.number, err.Error()}
		}
		return line, nil
	}
	if err := j.lines.Err(); err != nil {
		return line, fmt.Errorf("line %d: %w", j.number+1, err)
	}
	return line, io.EOF
}

package outbox

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/ddq-io/ddq/api/client"
)

// row is a task in an outbox.
type row struct {
	seq     int64 // the order; given by the database
	id      string
	key     string
	topic   string
	payload []byte
	due     time.Time // in milliseconds; zero: when it arrives
	options []byte    // JSON

	fault error // why a row that was read has no more than its seq; nil otherwise
}

// tooLarge is the fault of a row of so many bytes, whose texts are left in the database.
func tooLarge(size int64) error {
	return invalid("options", "ROW_TOO_LARGE", "the row has %d bytes; at most %d are read", size, maxRow)
}

// notDue is the fault of a row with a due time that is none.
func notDue(due any) error {
	return invalid("execute_time", "BAD_TIME", "the due time is %v; it must be of the years 1970 to %d, or null", due, maxYear)
}

// newRow checks a task and gives it an id and a key. A delay counts from now.
func newRow(t client.Task, now time.Time) (row, error) {
	if err := check(t); err != nil {
		return row{}, err
	}
	text, err := json.Marshal(optionsOf(t))
	if err != nil {
		return row{}, err
	}
	if t.Idempotency == nil {
		t.Idempotency = &client.Idempotency{Key: newKey()}
	}
	if t, err = t.Named(); err != nil {
		return row{}, err
	}
	r := row{id: t.ID, key: t.Idempotency.Key, topic: t.Topic, payload: t.Payload, due: t.Due, options: text}
	if t.Delay > 0 {
		r.due = now.Add(t.Delay)
	}
	r.due = roundUp(r.due)
	if r.payload == nil {
		r.payload = []byte{} // not null
	}
	return r, nil
}

// newRows does so for many; the error names the task at fault.
func newRows(tasks []client.Task, now time.Time) ([]row, error) {
	rows := make([]row, len(tasks))
	for i, t := range tasks {
		var err error
		if rows[i], err = newRow(t, now); err != nil {
			return nil, inTasks(i, err)
		}
	}
	return rows, nil
}

// inTasks says which of many tasks an error is of.
func inTasks(i int, err error) error {
	e := (*client.Error)(nil)
	if !errors.As(err, &e) {
		return err
	}
	named := *e
	named.Field = fmt.Sprintf("tasks[%d].%s", i, e.Field)
	return &named
}

func idsOf(rows []row) []string {
	ids := make([]string, len(rows))
	for i, r := range rows {
		ids[i] = r.id
	}
	return ids
}

// newKey makes a key that no other row has.
func newKey() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// roundUp is the first millisecond that is not before t: nothing is early.
func roundUp(t time.Time) time.Time {
	if cut := t.Truncate(time.Millisecond); cut.Before(t) {
		return cut.Add(time.Millisecond)
	}
	return t
}

// badOptions is of options that somebody wrote by hand.
func badOptions(err error) error {
	if e := (*json.UnmarshalTypeError)(nil); errors.As(err, &e) {
		if e.Field == "" {
			return invalid("options", "BAD_OPTIONS", "options must be an object, not of the type %s", e.Value)
		}
		return invalid("options", "BAD_OPTIONS", "option %s must not be a %s", e.Field, e.Value)
	}
	return invalid("options", "BAD_OPTIONS", "options: %v", err)
}

// decode reads the options of a row. What encoding/json would replace in silence, bytes that are no UTF-8 and halves
// of a surrogate pair, is refused by the decoder of protobuf.
func decode(text []byte) (o options, err error) {
	if !utf8.Valid(text) || bytes.Contains(text, []byte(`\u`)) {
		if err := protojson.Unmarshal(text, new(structpb.Value)); err != nil {
			return o, err
		}
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&o); err != nil {
		return o, err
	}
	if _, err := d.Token(); err != io.EOF {
		return o, errors.New("there is more than one value")
	}
	return o, nil
}

// task is what the relay enqueues, under a key that is taken for window unless the caller
// chose one. It is checked again, as somebody may have written the row by hand: what cannot be sent would fail
// with all that is sent beside it.
func (r row) task(window time.Duration) (client.Task, error) {
	t, err := r.unchecked(window)
	if err != nil {
		return client.Task{}, err
	}
	if !storable(r.id) {
		return client.Task{}, invalid("id", "BAD_ID", "the id must be UTF-8 without the character 0")
	}
	return t, cmp.Or(checkKey(r.key), checkContents(t))
}

func (r row) unchecked(window time.Duration) (client.Task, error) {
	if r.fault != nil {
		return client.Task{}, r.fault
	}
	o, err := decode(r.options)
	if err != nil {
		return client.Task{}, badOptions(err)
	}
	t := o.task()
	t.ID, t.Topic, t.Payload, t.Due = r.id, r.topic, r.payload, r.due
	t.Idempotency = &client.Idempotency{Key: r.key, Window: window}
	if o.Window > 0 {
		t.Idempotency.Window = millis(o.Window)
	}
	if o.OnConflict == "reject" {
		t.Idempotency.OnConflict = client.ConflictReject
	}
	return t, nil
}

// Package journal has what handlers of a task did once, as the server shows it to those who look at
// the task. Handlers have it by worker.Task.Once.
package journal

import (
	"time"

	"github.com/ddq-io/ddq/api/client/internal/fields"
	"github.com/ddq-io/ddq/api/client/internal/wire"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// Entry is what a name of a task returned.
type Entry struct {
	Name  string    `json:"name"`
	Size  int       `json:"size"` // bytes of the value
	Kept  time.Time `json:"kept_at"`
	Value []byte    `json:"value,omitempty"` // empty for those who may not see payloads
}

// MarshalJSON writes the form that `ddq task get -o json` prints.
func (e Entry) MarshalJSON() ([]byte, error) { return fields.Write(e) }

// UnmarshalJSON reads it.
func (e *Entry) UnmarshalJSON(b []byte) error { return fields.Read(b, e) }

// From reads the journal of a task.
func From(list []*ddqv1.JournalEntry) []Entry {
	return wire.Each(list, func(e *ddqv1.JournalEntry) Entry {
		return Entry{Name: e.GetName(), Size: int(e.GetSize()), Kept: wire.Time(e.GetKeptAt()), Value: e.GetValue()}
	})
}

package audience

import (
	"bytes"
	"fmt"
	"time"
	"unicode/utf8"
)

// Limits of one recipient.
const (
	MaxID    = 128 // bytes
	MaxData  = 256 // bytes
	MaxKinds = 64  // of an audience
	MaxZone  = 64  // bytes of the name of a zone
)

// Recipient is one of those who each get a task of a run.
type Recipient struct {
	ID   string
	Zone string // in the IANA database
	Preferences
	Data []byte // of the caller, which goes into the task
}

// Preferences say which tasks a recipient gets, and when.
type Preferences struct {
	Disabled bool // gets none
	Quiet    Quiet
	On, Off  uint64 // kinds by number, a bit each; the others are as the audience has them
}

// Quiet are hours of the local day in which a recipient wants no task, in minutes from
// midnight: from From up to To, over midnight when From is the later one. None when the
// two are the same.
type Quiet struct{ From, To uint16 }

const minutesOfDay = 24 * 60

// BadRecipient says what is wrong with a recipient, and where.
type BadRecipient struct {
	Field  string // id, zone, quiet, kinds, data
	Reason string // for people
}

// Error returns the field and the reason.
func (e *BadRecipient) Error() string { return e.Field + ": " + e.Reason }

// Check returns a *BadRecipient when there can be no such recipient. Whether the zone
// exists is for the caller to say.
func (r *Recipient) Check() error {
	switch {
	case r.ID == "" || len(r.ID) > MaxID:
		return &BadRecipient{"id", fmt.Sprintf("has %d bytes; it must have 1 to %d", len(r.ID), MaxID)}
	case !utf8.ValidString(r.ID):
		return &BadRecipient{"id", "is not UTF-8"}
	case r.Zone == "" || len(r.Zone) > MaxZone:
		return &BadRecipient{"zone", fmt.Sprintf("has %d bytes; it must have 1 to %d", len(r.Zone), MaxZone)}
	case r.Quiet.From >= minutesOfDay || r.Quiet.To >= minutesOfDay:
		return &BadRecipient{"quiet", "is not within a day"}
	case r.On&r.Off != 0:
		return &BadRecipient{"kinds", "a kind is both on and off"}
	case len(r.Data) > MaxData:
		return &BadRecipient{"data", fmt.Sprintf("has %d bytes; at most %d are possible", len(r.Data), MaxData)}
	}
	return nil
}

// same reports whether nothing differs but the zone.
func (r *Recipient) same(other *Recipient) bool {
	return r.Preferences == other.Preferences && bytes.Equal(r.Data, other.Data)
}

// covers reports whether a minute of the day is in the quiet hours.
func (q Quiet) covers(minute uint16) bool {
	if q.From <= q.To {
		return q.From <= minute && minute < q.To
	}
	return q.From <= minute || minute < q.To
}

// end is the wall time at which the quiet hours end that cover a wall time.
func (q Quiet) end(wall time.Time) time.Time {
	day := time.Date(wall.Year(), wall.Month(), wall.Day(), 0, int(q.To), 0, 0, time.UTC)
	if day.After(wall) {
		return day
	}
	return day.AddDate(0, 0, 1)
}

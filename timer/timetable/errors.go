package timetable

import "fmt"

// Fault is a way in which a timetable cannot be used.
type Fault int

// The faults.
const (
	BadCron     Fault = iota + 1 // an expression that does not parse, or an entry that is not one thing
	BadZone                      // a zone that is none of the IANA database
	OutOfRange                   // a number, a count or an order of times
	NeverOccurs                  // no occurrence at all
)

// Error says what is wrong with a timetable, and where.
type Error struct {
	Fault  Fault
	Field  string // such as "entries[0].cron" or "zone"
	Reason string // for people, without the field

	// Of an expression of another dialect: which one it looks like, and what to write in
	// its place, an expression or a flag; empty when there is nothing.
	Dialect, Write string
}

// Error returns the field and the reason.
func (e *Error) Error() string { return e.Field + ": " + e.Reason }

func fault(f Fault, field, format string, args ...any) *Error {
	return &Error{Fault: f, Field: field, Reason: fmt.Sprintf(format, args...)}
}

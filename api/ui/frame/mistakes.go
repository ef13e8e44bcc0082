package frame

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// Mistakes are what is wrong with fields of a form, by the names of the fields. Each is said at its
// field, and the rest of what was sent stays.
type Mistakes map[string]string

// Add says what is wrong with a field; what was said first stays.
func (m Mistakes) Add(name, text string) {
	if m[name] == "" {
		m[name] = text
	}
}

// Take adds what the server says of a field, and reports whether it did. names are fields of the form
// by those of the server.
func (m Mistakes) Take(err error, names map[string]string) bool {
	return m.TakeAs(err, func(field string) string { return names[field] })
}

// TakeAs is Take where as finds the field of the form; none has an empty name.
func (m Mistakes) TakeAs(err error, as func(field string) string) bool {
	for _, d := range status.Convert(err).Details() {
		bad, ok := d.(*errdetails.BadRequest)
		if !ok {
			continue
		}
		for _, v := range bad.GetFieldViolations() {
			if name := as(v.GetField()); name != "" {
				m.Add(name, strings.TrimPrefix(v.GetDescription(), v.GetField()+": "))
				return true
			}
		}
	}
	return false
}

// Code is that of an answer to a form with these mistakes.
func (m Mistakes) Code() int {
	if len(m) > 0 {
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// Input is a field with its label, and what is wrong with it.
func (m Mistakes) Input(label, name string, attributes ...g.Node) g.Node {
	return h.Label(g.Text(label+" "), h.Input(h.Name(name), m.mark(name), g.Group(attributes)), m.text(name))
}

// TextArea is a field of several lines with its label, and what is wrong with it.
func (m Mistakes) TextArea(label, name, rows, text string) g.Node {
	return h.Label(g.Text(label+" "), h.Textarea(h.Name(name), h.Rows(rows), AsTyped(), m.mark(name), g.Text("\n"+text)), m.text(name))
}

func (m Mistakes) mark(name string) g.Node { return g.If(m[name] != "", h.Aria("invalid", "true")) }

// text is what is wrong with a field. It is in the label, so that it is read with the name.
func (m Mistakes) text(name string) g.Node {
	return g.If(m[name] != "", h.Span(h.Class("bad"), g.Text(Cut(m[name]))))
}

// State reads a field that is the name of a state; none when it is empty.
func State[S fmt.Stringer](m Mistakes, name, text string, states []S) (s S, chosen bool) {
	if text == "" {
		return s, false
	}
	i := slices.IndexFunc(states, func(s S) bool { return StateText(s) == text })
	if i < 0 {
		m.Add(name, "There is no "+Cut(text)+".")
		return s, false
	}
	return states[i], true
}

// instants are how a browser writes a field of a time.
var instants = []string{"2006-01-02T15:04", "2006-01-02T15:04:05", "2006-01-02T15:04:05.000"}

// Instant reads a field that is a time in UTC, in Unix milliseconds; 0 when it is empty.
func (m Mistakes) Instant(name, text string) int64 {
	if text == "" {
		return 0
	}
	for _, layout := range instants {
		if at, err := time.Parse(layout, text); err == nil && at.UnixMilli() > 0 {
			return at.UnixMilli()
		}
	}
	m.Add(name, "A time is such as 2030-01-31T18:30, in UTC.")
	return 0
}

// Reason is the reason that the server gives for an error; empty for none.
func Reason(err error) string {
	for _, d := range status.Convert(err).Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok {
			return info.GetReason()
		}
	}
	return ""
}

// Package calendars has what calendars are made of. client.Calendar is its Calendar.
package calendars

import "github.com/ddq-io/ddq/api/ddqv1"

// Calendar is a named set of local times that schedules leave out, by the clock of each
// schedule's zone. All topics share the calendars.
type Calendar struct {
	Name     string   `json:"name"`
	Days     []string `json:"days,omitempty"`     // whole days, such as 2030-12-25
	Yearly   []string `json:"yearly,omitempty"`   // whole days of each year, such as 12-25
	Weekdays []string `json:"weekdays,omitempty"` // MON, TUE, WED, THU, FRI, SAT, SUN
	Spans    []Span   `json:"spans,omitempty"`
	Version  int64    `json:"version"` // rises with every change; PutCalendar does not look at it
}

// Span is a part of a day, or many days: local times such as 2030-12-24T12:00:00. The
// end is not part of it.
type Span struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Wire returns the calendar as it is sent, without its version.
func (c *Calendar) Wire() *ddqv1.Calendar {
	w := &ddqv1.Calendar{Name: c.Name, Days: c.Days, Yearly: c.Yearly, Weekdays: c.Weekdays}
	for _, s := range c.Spans {
		w.Spans = append(w.Spans, &ddqv1.CalendarSpan{From: s.From, To: s.To})
	}
	return w
}

// From reads a calendar as it is sent; the zero one for nil.
func From(w *ddqv1.Calendar) Calendar {
	c := Calendar{Name: w.GetName(), Days: w.GetDays(), Yearly: w.GetYearly(), Weekdays: w.GetWeekdays(), Version: w.GetVersion()}
	for _, s := range w.GetSpans() {
		c.Spans = append(c.Spans, Span{From: s.GetFrom(), To: s.GetTo()})
	}
	return c
}

package schedule

import (
	"reflect"
	"testing"
	"time"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/timer/timetable"
)

func TestCalendarsAreReadAsTheyWereWritten(t *testing.T) {
	want := &timetable.Calendar{
		Days: []timetable.Date{{Year: 2030, Month: time.December, Day: 25}}, Yearly: []timetable.MonthDay{{Month: time.January, Day: 1}},
		Weekdays: []time.Weekday{time.Sunday, time.Saturday},
		Spans:    []timetable.Span{{From: time.Date(2030, 7, 1, 12, 0, 0, 0, time.UTC), To: time.Date(2030, 7, 3, 0, 0, 0, 0, time.UTC)}},
	}
	c, err := CalendarCell("holidays", want)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := CalendarIn(&c); err != nil || !reflect.DeepEqual(got, want) || c.ID != "cholidays" {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	if _, err := CalendarIn(&store.Cell{Body: []byte("no calendar")}); err == nil {
		t.Error("something else is a calendar")
	}
	excluded := Calendars{"holidays": want}.Excluded(&Schedule{Spec: Spec{Calendars: []string{"absent", "holidays"}}}, time.UTC)
	for at, is := range map[string]bool{"2030-12-25T10:00:00Z": true, "2031-01-01T00:00:00Z": true, "2030-12-27T10:00:00Z": false, "2030-12-28T10:00:00Z": true} {
		when, err := time.Parse(time.RFC3339, at)
		if err != nil {
			t.Fatal(err)
		}
		if excluded(when) != is {
			t.Errorf("%s is excluded: %t", at, !is)
		}
	}
	if (Calendars{}).Excluded(&Schedule{Spec: Spec{Calendars: []string{"absent"}}}, time.UTC) != nil {
		t.Error("a calendar that is not there leaves something out")
	}
}

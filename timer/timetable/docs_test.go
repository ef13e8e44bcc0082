package timetable

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

// docsRows are the rows of a table of docs/schedules.md, by the first cell of its header.
func docsRows(t *testing.T, header string) (rows [][]string) {
	t.Helper()
	_, rest, ok := strings.Cut(string(must(os.ReadFile("../../docs/schedules.md"))), "\n| "+header)
	if !ok {
		t.Fatalf("docs/schedules.md has no table %q", header)
	}
	for _, line := range strings.Split(rest, "\n")[2:] {
		if !strings.HasPrefix(line, "|") {
			break
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.Trim(strings.TrimSpace(cells[i]), "`")
		}
		rows = append(rows, cells)
	}
	if len(rows) < 5 {
		t.Fatalf("the table %q has %d rows", header, len(rows))
	}
	return rows
}

func TestDocsSayWhen(t *testing.T) {
	for _, row := range docsRows(t, "expression | | next times") {
		at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		table, err := New(Spec{Entries: []Entry{{Cron: row[0]}}}, "nightly", at)
		if err != nil {
			t.Errorf("%s: %v", row[0], err)
			continue
		}
		for _, want := range strings.Split(row[2], ", ") {
			if at, _ = table.Next(at); !strings.HasPrefix(at.Format("2006-01-02 15:04:05"), want) {
				t.Errorf("%s: %v, and docs/schedules.md says %s", row[0], at, want)
			}
		}
	}
}

func TestDocsSayWhatBecomesOfClocksThatChange(t *testing.T) {
	berlin := must(time.LoadLocation("Europe/Berlin"))
	days := []time.Time{time.Date(2026, 3, 29, 0, 0, 0, 0, time.UTC), time.Date(2026, 10, 24, 23, 0, 0, 0, time.UTC)} // one o'clock there
	for _, row := range docsRows(t, "expression | 29 March 2026") {
		for i, from := range days {
			to := from.Add(time.Duration(2+2*i) * time.Hour) // four o'clock there
			table, err := New(Spec{Zone: "Europe/Berlin", Entries: []Entry{{Cron: row[0]}}}, "nightly", from)
			if err != nil {
				t.Fatalf("%s: %v", row[0], err)
			}
			var got, oracle []string
			for at, ok := table.Next(from.Add(-1)); ok && at.Before(to); at, ok = table.Next(at) {
				got = append(got, at.In(berlin).Format("15:04"))
			}
			minutesOf(berlin, from, to).occurrences(newOracle(t, row[0]), func(at time.Time) { oracle = append(oracle, at.In(berlin).Format("15:04")) })
			want := strings.TrimPrefix(row[1+i], "none")
			if s := strings.Join(got, " "); s != want || strings.Join(oracle, " ") != want {
				t.Errorf("%s on %v: %s, the oracle has %v, and docs/schedules.md says %s", row[0], from.In(berlin), s, oracle, row[1+i])
			}
		}
	}
}

// TestDocsSayWhatToWrite also proves that what an error has to be written is taken.
func TestDocsSayWhatToWrite(t *testing.T) {
	for _, row := range docsRows(t, "what you have") {
		_, err := New(Spec{Entries: []Entry{{Cron: row[0]}}}, "nightly", time.Now())
		var e *Error
		if !errors.As(err, &e) || e.Fault != BadCron || e.Field != "entries[0].cron" {
			t.Errorf("%s: %v", row[0], err)
			continue
		}
		write := strings.TrimPrefix(row[2], "nothing")
		if e.Dialect != row[1] || e.Write != write {
			t.Errorf("%s: looks like %q, write %q; docs/schedules.md says %q, %q", row[0], e.Dialect, e.Write, row[1], row[2])
		}
		if !strings.Contains(e.Reason, e.Dialect) || !strings.Contains(e.Reason, e.Write) {
			t.Errorf("%s: %s", row[0], e.Reason)
		}
		if write == "" || strings.HasPrefix(write, "--") {
			continue
		}
		if _, err := New(Spec{Entries: []Entry{{Cron: write}}}, "nightly", time.Now()); err != nil {
			t.Errorf("%s: %s is to be written: %v", row[0], write, err)
		}
	}
}

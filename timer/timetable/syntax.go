package timetable

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// The fields of an expression, in the order of one with seconds.
const (
	second = iota
	minute
	hour
	dayOfMonth
	month
	dayOfWeek
	fieldCount
)

// field says what one field of an expression may have.
type field struct {
	name     string
	min, max int
	ring     int      // how many different numbers there are; a range over the end goes on at min
	hashMax  int      // the largest number that H stands for
	names    []string // of numbers, from named on
	named    int
}

// A weekday has eight numbers, as both 0 and 7 are Sunday. H is at most day 28, as each month has it.
var fields = [fieldCount]field{
	second:     {name: "second", max: 59, ring: 60, hashMax: 59},
	minute:     {name: "minute", max: 59, ring: 60, hashMax: 59},
	hour:       {name: "hour", max: 23, ring: 24, hashMax: 23},
	dayOfMonth: {name: "day of month", min: 1, max: 31, ring: 31, hashMax: 28},
	month:      {name: "month", min: 1, max: 12, ring: 12, hashMax: 12, names: strings.Fields("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC"), named: 1},
	dayOfWeek:  {name: "day of week", max: 7, ring: 7, hashMax: 6, names: weekdays},
}

var weekdays = strings.Fields("SUN MON TUE WED THU FRI SAT")

// macros are the expressions that have a name.
var macros = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}

// expression is one that was checked.
type expression struct {
	text string // with seconds and with numbers only, for the library
	star [fieldCount]bool
}

// parse checks an expression and replaces names, ranges, steps and H by numbers. The error says in which field
// and column it is wrong.
func parse(text, name string) (*expression, error) {
	trimmed := strings.TrimSpace(text)
	if strings.HasPrefix(trimmed, "@") {
		long, ok := macros[trimmed]
		if !ok {
			return nil, fmt.Errorf("%q is none of @yearly, @monthly, @weekly, @daily and @hourly", trimmed)
		}
		text = long
	}
	split := splitFields(text)
	if n := len(split); n != fieldCount && n != fieldCount-1 {
		return nil, fmt.Errorf("%d fields, and 5 or 6 are needed: [second] minute hour day-of-month month day-of-week", n)
	}
	parsed := expression{text: "0"}
	for i, f := range split {
		at := i + fieldCount - len(split)
		set, err := fields[at].set(f.text, name)
		if err != nil {
			return nil, fmt.Errorf("%s (column %d): %w", fields[at].name, f.column, err)
		}
		parsed.star[at] = set.star
		if at == second {
			parsed.text = set.String()
			continue
		}
		parsed.text += " " + set.String()
	}
	if both := split[len(split)-3].text + split[len(split)-1].text; both == "??" {
		return nil, fmt.Errorf("day of month and day of week: one of the two may be ?, and not both")
	}
	return &parsed, nil
}

type column struct {
	text   string
	column int // from 1
}

func splitFields(text string) (out []column) {
	at := 0
	for _, f := range strings.Fields(text) {
		at += strings.Index(text[at:], f)
		out = append(out, column{f, at + 1})
		at += len(f)
	}
	return out
}

// set is what a field names.
type set struct {
	numbers uint64
	days    []string // that depend on the month: L, L-3, LW, 15W, 5#2, 5#L
	star    bool     // the field begins with *
	all     bool
}

// String is the field as the library reads it.
func (s set) String() string {
	if s.all {
		return "*"
	}
	list := s.days
	for n := s.numbers; n != 0; n &= n - 1 {
		list = append(list, strconv.Itoa(bits.TrailingZeros64(n)))
	}
	return strings.Join(list, ",")
}

func (f *field) set(text, name string) (s set, err error) {
	if text == "?" {
		if !f.isDay() {
			return s, fmt.Errorf("? stands for a day that is left open; write * for every %s", f.name)
		}
		text = "*"
	}
	s.star = strings.HasPrefix(text, "*")
	for item := range strings.SplitSeq(text, ",") {
		if item == "" {
			return s, fmt.Errorf("%q has an empty place in its list", text)
		}
		if day, is, err := f.day(item); is || err != nil {
			if err != nil {
				return s, err
			}
			if !slices.Contains(s.days, day) {
				s.days = append(s.days, day)
			}
			continue
		}
		numbers, err := f.numbers(item, name)
		if err != nil {
			return s, err
		}
		s.numbers |= numbers
	}
	s.all = s.star && bits.OnesCount64(s.numbers) == f.ring
	return s, nil
}

func (f *field) isDay() bool { return f == &fields[dayOfMonth] || f == &fields[dayOfWeek] }

// day reads an item that is another day in each month.
func (f *field) day(item string) (day string, is bool, err error) {
	upper := strings.ToUpper(item)
	switch {
	case f == &fields[dayOfWeek] && strings.Contains(upper, "#"):
		weekday, which, _ := strings.Cut(upper, "#")
		n, err := f.number(weekday)
		if err != nil {
			return "", true, err
		}
		if len(which) != 1 || !strings.Contains("12345L", which) {
			return "", true, fmt.Errorf("%q: what follows # is 1 to 5, or L for the last one", item)
		}
		return fmt.Sprintf("%d#%s", n%f.ring, which), true, nil
	case f != &fields[dayOfMonth]:
		return "", false, nil
	case upper == "L" || upper == "LW":
		return upper, true, nil
	case strings.HasPrefix(upper, "L-"):
		n, err := digits(upper[2:])
		if err != nil || n < 1 || n > 30 {
			return "", true, fmt.Errorf("%q: what follows L- is 1 to 30", item)
		}
		return fmt.Sprintf("L-%d", n), true, nil
	case strings.HasSuffix(upper, "W"):
		n, err := f.number(upper[:len(upper)-1])
		return fmt.Sprintf("%dW", n), true, err
	}
	return "", false, nil
}

// numbers reads an item that is a number, a range or H, with a step or without.
func (f *field) numbers(item, name string) (uint64, error) {
	text, stepText, stepped := strings.Cut(item, "/")
	step := 1
	if stepped {
		var err error
		if step, err = digits(stepText); err != nil {
			return 0, fmt.Errorf("step of %q: %w", item, err)
		}
		if step == 0 {
			return 0, fmt.Errorf("step of %q is 0", item)
		}
	}
	if strings.HasPrefix(text, "H") {
		return f.hashed(item, text, name, step, stepped)
	}
	from, to, err := f.bounds(text, stepped)
	if err != nil {
		return 0, err
	}
	size := to - from + 1
	if from > to {
		if f == &fields[dayOfWeek] {
			from %= f.ring // Sunday as 7
		}
		if size = to - from + 1; size <= 0 {
			size += f.ring
		}
	}
	if step > 1 && step >= size {
		return 0, fmt.Errorf("step %d of %q: it must be less than the %d that the range has", step, item, size)
	}
	return f.every(from, size, 0, step), nil
}

// every has each step-th number of a range of some size, from one of its first on.
func (f *field) every(from, size, first, step int) (out uint64) {
	for n := first; n < size; n += step {
		out |= 1 << (f.min + (from-f.min+n)%f.ring)
	}
	return out
}

func (f *field) bounds(text string, stepped bool) (from, to int, err error) {
	if text == "*" {
		return f.min, f.max, nil
	}
	first, last, isRange := strings.Cut(text, "-")
	if from, err = f.number(first); err != nil {
		return 0, 0, err
	}
	switch {
	case isRange:
		to, err = f.number(last)
	case stepped:
		to = f.max
	default:
		to = from
	}
	return from, to, err
}

// number reads a number or a name.
func (f *field) number(text string) (int, error) {
	if i := slices.Index(f.names, strings.ToUpper(text)); i >= 0 {
		return f.named + i, nil
	}
	n, err := digits(text)
	if err != nil {
		if f.names != nil {
			return 0, fmt.Errorf("%w, nor one of %s to %s", err, f.names[0], f.names[len(f.names)-1])
		}
		return 0, err
	}
	if n < f.min || n > f.max {
		return 0, fmt.Errorf("%d is not from %d to %d", n, f.min, f.max)
	}
	return n, nil
}

// digits reads a number without a sign.
func digits(text string) (int, error) {
	if text == "" || len(text) > 4 || strings.Trim(text, "0123456789") != "" {
		return 0, fmt.Errorf("%q is not a number", text)
	}
	return strconv.Atoi(text)
}

// hashed has the numbers that H stands for: H, H/15, H(0-29), H(0-29)/10.
func (f *field) hashed(item, text, name string, step int, stepped bool) (uint64, error) {
	from, size := f.min, f.hashMax-f.min+1
	ring := *f
	ring.ring = size
	if text != "H" {
		if !strings.HasPrefix(text, "H(") || !strings.HasSuffix(text, ")") {
			return 0, fmt.Errorf("%q is none of H, H/5, H(0-9) and H(0-9)/5", item)
		}
		first, last, isRange := strings.Cut(text[2:len(text)-1], "-")
		low, errLow := digits(first)
		high, errHigh := digits(last)
		if !isRange || errLow != nil || errHigh != nil {
			return 0, fmt.Errorf("%q: H takes a range of numbers, as in H(0-9)", item)
		}
		if f == &fields[dayOfWeek] && high == f.max && low < high {
			high-- // Sunday is there as 0, or comes once
			if low > 0 {
				high = 0
			}
		}
		if min(low, high) < f.min || max(low, high) > f.hashMax {
			return 0, fmt.Errorf("%q: H is from %d to %d", item, f.min, f.hashMax)
		}
		if from, size = low, high-low+1; size <= 0 {
			size += ring.ring
		}
	}
	if stepped && step >= size && step > 1 {
		return 0, fmt.Errorf("step %d of %q: it must be less than the %d that H has", step, item, size)
	}
	hash := hashOf(name, f.name)
	if stepped && step > 1 {
		return ring.every(from, size, int(hash%uint64(step)), step), nil
	}
	if stepped {
		return ring.every(from, size, 0, 1), nil
	}
	first := int(hash % uint64(size))
	return ring.every(from, first+1, first, 1), nil
}

// hashOf is another number for each field, so that the numbers of two fields have nothing to do with each other.
func hashOf(name, field string) uint64 {
	sum := sha256.Sum256([]byte(field + "\n" + name))
	return binary.BigEndian.Uint64(sum[:8])
}

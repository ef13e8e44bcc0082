package timetable

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// The dialects whose expressions are told from those of ddq.
const (
	crontab     = "crontab"
	cronie      = "cronie"
	robfig      = "robfig/cron"
	quartz      = "Quartz"
	eventBridge = "EventBridge"
	systemd     = "systemd"
)

// hint says that an expression is of another dialect, and what ddq has in its place. Such an expression is
// refused even where it parses: it would mean something else.
type hint struct {
	where   string // the field and its column; empty: the expression as a whole
	what    string // why it is refused
	dialect string
	write   string // an expression, or a flag; empty: there is none
	also    string // what else there is to say
}

func (h *hint) fault(field string) *Error {
	var b strings.Builder
	if h.where != "" {
		b.WriteString(h.where + ": ")
	}
	fmt.Fprintf(&b, "%s; it looks like %s", h.what, h.dialect)
	if h.write != "" {
		fmt.Fprintf(&b, "; write %s", h.write)
	}
	if h.also != "" {
		b.WriteString("; " + h.also)
	}
	e := fault(BadCron, field, "%s", b.String())
	e.Dialect, e.Write = h.dialect, h.write
	return e
}

// otherDialect tells which other dialect an expression is of; nil when it looks like one of ddq.
func otherDialect(text string) *hint {
	text = strings.TrimSpace(text)
	for _, of := range []func(string) *hint{ofCalls, ofMacros, ofZones, ofSystemd, ofQuestionMarks, ofCounts, ofItems} {
		if h := of(text); h != nil {
			h.write = valid(h.write)
			return h
		}
	}
	return nil
}

// valid is what to write, and nothing when ddq would not take it.
func valid(write string) string {
	var err error
	switch flag, value, _ := strings.Cut(write, " "); flag {
	case "--every":
		if every, e := time.ParseDuration(strings.Replace(value, "d", "h", 1)); e != nil || every < MinEvery {
			return ""
		}
	case "--at":
		_, err = time.Parse(time.RFC3339, value)
	default:
		_, err = parse(write, "x")
	}
	if err != nil {
		return ""
	}
	return write
}

var call = regexp.MustCompile(`(?i)^(cron|rate|at)\((.*)\)$`)

// ofCalls knows cron(…), rate(…) and at(…).
func ofCalls(text string) *hint {
	m := call.FindStringSubmatch(text)
	if m == nil {
		return nil
	}
	h := &hint{what: fmt.Sprintf("%s(…) is no expression", m[1]), dialect: eventBridge}
	switch strings.ToLower(m[1]) {
	case "rate":
		if n, unit, ok := strings.Cut(m[2], " "); ok && strings.HasPrefix(unit+"s", "minutes") || ok && strings.HasPrefix(unit+"s", "hours") || ok && strings.HasPrefix(unit+"s", "days") {
			h.write = "--every " + n + unit[:1]
		}
	case "at":
		h.write = "--at " + m[2] + "Z"
	default:
		if fields := strings.Fields(m[2]); len(fields) == fieldCount {
			h.write, h.also = fromEventBridge(fields)
		}
	}
	return h
}

// ofMacros knows @every and @reboot.
func ofMacros(text string) *hint {
	name, rest, _ := strings.Cut(text, " ")
	switch name {
	case "@every":
		return &hint{what: "@every is an interval, which is an entry of its own", dialect: robfig, write: "--every " + strings.TrimSpace(rest)}
	case "@reboot":
		return &hint{what: "@reboot is no time", dialect: crontab, also: "a program that starts may enqueue a task, or trigger a schedule"}
	}
	return nil
}

// ofZones knows TZ= and CRON_TZ= before the fields.
func ofZones(text string) *hint {
	first, rest, _ := strings.Cut(text, " ")
	name, zone, ok := strings.Cut(first, "=")
	if !ok || name != "TZ" && name != "CRON_TZ" {
		return nil
	}
	return &hint{what: "a zone is not part of an expression", dialect: robfig, write: strings.TrimSpace(rest), also: "with --zone " + zone}
}

// ofCounts knows expressions with a year or a command behind the fields.
func ofCounts(text string) *hint {
	f := strings.Fields(text)
	if len(f) < fieldCount {
		return nil
	}
	last := f[len(f)-1]
	switch {
	case len(f) == fieldCount && isYear(last) && last != "*":
		return &hint{what: "the sixth field is a year, which ddq has not", dialect: crontab, write: strings.Join(f[:5], " "), also: forYears}
	case len(f) == fieldCount+1 && isYear(last):
		h := &hint{what: "the seventh field is a year, which ddq has not", dialect: quartz, write: fromQuartz(f[:fieldCount])}
		if last != "*" {
			h.also = forYears
		}
		return h
	}
	if _, err := parse(strings.Join(f[:5], " "), "x"); err != nil {
		return nil
	}
	if len(f) > fieldCount || strings.ContainsAny(last, "./$") && strings.ContainsAny(last, "abcdefghijklmnopqrstuvwxyz") {
		return &hint{what: "there is more than the fields", dialect: crontab, write: strings.Join(f[:5], " "), also: "a command is not part of an expression"}
	}
	return nil
}

const forYears = "years are said by --start, --end and --at"

var (
	year    = regexp.MustCompile(`^(\*|[12]\d\d\d([-,/]\d+)*)$`)
	numeric = regexp.MustCompile(`^[0-9]`)
)

func isYear(f string) bool { return year.MatchString(f) }

// ofQuestionMarks knows the order of fields by where ? is, and weekdays that are counted from Sunday = 1.
func ofQuestionMarks(text string) *hint {
	columns := splitFields(text)
	n := len(columns)
	if n != fieldCount && n != fieldCount-1 || !strings.Contains(text, "?") {
		return nil
	}
	f := strings.Fields(text)
	where := func(i int) string {
		return fmt.Sprintf("%s (column %d)", fields[i+fieldCount-n].name, columns[i].column)
	}
	// minute hour day month weekday year: there one of the days is ?, which ddq has as hour and month.
	for _, i := range []int{2, 4} {
		if n == fieldCount && f[i] == "?" {
			h := &hint{where: where(i), what: "? stands for a day", dialect: eventBridge}
			h.write, h.also = fromEventBridge(f)
			return h
		}
	}
	day, weekday := f[n-3], f[n-1]
	if day == "?" && hasNumber(weekday) {
		return &hint{
			where: where(n - 1), what: fmt.Sprintf("beside ? the weekday %s is counted from Sunday = 1, and here from Sunday = 0", weekday), dialect: quartz,
			write: fromQuartz(f), also: "where it came from Spring, which counts as here, replace ? by *",
		}
	}
	return nil
}

// hasNumber reports whether a weekday is said by number. All of them are the same in each count.
func hasNumber(weekday string) bool {
	return slices.ContainsFunc(strings.Split(weekday, ","), numeric.MatchString)
}

// ofItems knows single items: ~, 5L and FRIL.
func ofItems(text string) *hint {
	columns := splitFields(text)
	n := len(columns)
	if n != fieldCount && n != fieldCount-1 {
		return nil
	}
	f := strings.Fields(text)
	for i := range f {
		at := &fields[i+fieldCount-n]
		where := fmt.Sprintf("%s (column %d)", at.name, columns[i].column)
		if strings.Contains(f[i], "~") {
			f[i] = fromTilde(f[i], at)
			return &hint{where: where, what: "~ is a number by chance, and here H is one that stays", dialect: cronie, write: strings.Join(f, " ")}
		}
		if upper := strings.ToUpper(f[i]); at == &fields[dayOfWeek] && upper == "L" {
			f[i] = "SAT"
			return &hint{where: where, what: "L is the last day of a month", dialect: quartz, write: strings.Join(f, " "), also: "the last Saturday of a month is SAT#L"}
		} else if at == &fields[dayOfWeek] && strings.HasSuffix(upper, "L") && !strings.Contains(upper, "#") && len(upper) > 1 {
			f[i] = quartzWeekday(upper)
			h := &hint{where: where, what: fmt.Sprintf("the last weekday of a month is said by #L, and not as in %s", upper), dialect: quartz, write: strings.Join(f, " ")}
			if numeric.MatchString(upper) {
				h.also = "Quartz counts from Sunday = 1; from Sunday = 0, as here, it is " + strings.ReplaceAll(upper, "L", "#L")
			}
			return h
		}
	}
	return nil
}

// fromTilde replaces 0~29, ~29, 30~ and ~.
func fromTilde(text string, f *field) string {
	body, step, stepped := strings.Cut(text, "/")
	from, to, _ := strings.Cut(body, "~")
	out := "H"
	if from+to != "" {
		if from == "" {
			from = fmt.Sprint(f.min)
		}
		if to == "" {
			to = fmt.Sprint(f.hashMax)
		}
		out = "H(" + from + "-" + to + ")"
	}
	if stepped {
		out += "/" + step
	}
	return out
}

// fromEventBridge translates minute hour day month weekday year.
func fromEventBridge(f []string) (write, also string) {
	if year := f[5]; year != "*" {
		also = forYears
	}
	return fromQuartz(f[:5]), also
}

// fromQuartz translates fields of Quartz, with seconds or without.
func fromQuartz(f []string) string {
	f = slices.Clone(f)
	n := len(f)
	f[n-1] = quartzWeekday(f[n-1])
	for _, i := range []int{n - 3, n - 1} {
		if f[i] == "?" {
			f[i] = "*"
		}
	}
	if n == fieldCount && f[0] == "0" {
		f = f[1:]
	}
	return strings.Join(f, " ")
}

// quartzWeekday names weekdays that are counted from Sunday = 1.
func quartzWeekday(text string) string {
	items := strings.Split(strings.ToUpper(text), ",")
	for i, item := range items {
		body, step, stepped := strings.Cut(item, "/")
		body, which, nth := strings.Cut(body, "#")
		if !nth && len(body) > 1 && strings.HasSuffix(body, "L") {
			body, which, nth = body[:len(body)-1], "L", true
		}
		from, to, isRange := strings.Cut(body, "-")
		if body = quartzDay(from); isRange {
			body += "-" + quartzDay(to)
		} else if stepped && body != "*" {
			body += "-SAT"
		}
		if nth {
			body += "#" + which
		}
		if stepped {
			body += "/" + step
		}
		items[i] = body
	}
	return strings.Join(items, ",")
}

func quartzDay(text string) string {
	if n, err := digits(text); err == nil && n >= 1 && n <= len(weekdays) {
		return weekdays[n-1]
	}
	if text == "L" {
		return "SAT"
	}
	return text
}

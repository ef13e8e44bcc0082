package timetable

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var systemdWords = map[string]string{
	"minutely": "* * * * *", "hourly": "@hourly", "daily": "@daily", "weekly": "0 0 * * MON", "monthly": "@monthly", "quarterly": "0 0 1 1,4,7,10 *",
	"semiannually": "0 0 1 1,7 *", "yearly": "@yearly", "annually": "@yearly",
}

var (
	systemdTime = regexp.MustCompile(`^[0-9*/,.]+:[0-9*/,.]+(:[0-9*/,.]+)?$`)
	systemdDate = regexp.MustCompile(`^([0-9*/,.]+-)?[0-9*/,.]+[-~][0-9*/,.]+$`)
	systemdDays = regexp.MustCompile(`(?i)^(sun|mon|tue|wed|thu|fri|sat)[a-z]*([.,-]+(sun|mon|tue|wed|thu|fri|sat)[a-z]*)*$`)
	zeros       = regexp.MustCompile(`(^|[^0-9])0+([0-9])`)
)

// ofSystemd knows calendar events such as Mon..Fri *-*-* 09:00, in any of their parts.
func ofSystemd(text string) *hint {
	h := &hint{what: "it is no expression of cron", dialect: systemd}
	if write, ok := systemdWords[strings.ToLower(text)]; ok {
		h.write = write
		return h
	}
	parts := strings.Fields(text)
	if len(parts) > 4 || !slices.ContainsFunc(parts, isOfSystemd) {
		return nil
	}
	clock, date, days := "00:00:00", "*-*-*", "*"
	for _, p := range parts {
		switch {
		case systemdTime.MatchString(p):
			clock = p
		case systemdDate.MatchString(p):
			date = p
		case systemdDays.MatchString(p):
			days = p
		default:
			h.also = "a zone is said by --zone"
		}
	}
	h.write = fromSystemd(clock, date, days)
	if h.write == "" && h.also == "" {
		h.also = "years are said by --start, --end and --at, and a day of the month and one of the week are united here"
	}
	return h
}

func isOfSystemd(part string) bool {
	return systemdTime.MatchString(part) || systemdDate.MatchString(part) && strings.ContainsAny(part, "*~") || systemdDays.MatchString(part) && strings.Contains(part, "..")
}

// fromSystemd translates a calendar event; to nothing what has no expression.
func fromSystemd(clock, date, days string) string {
	plain := func(text string) string { return zeros.ReplaceAllString(strings.ReplaceAll(text, "..", "-"), "$1$2") }
	hms := strings.Split(clock, ":")
	out := []string{plain(hms[1]), plain(hms[0])}
	if len(hms) == 3 && strings.Trim(hms[2], "0") != "" {
		out = slices.Insert(out, 0, plain(hms[2]))
	}
	rest, day, fromEnd := strings.Cut(date, "~")
	if !fromEnd {
		cut := strings.LastIndex(date, "-")
		rest, day = date[:cut], date[cut+1:]
	}
	year, month, hasYear := strings.Cut(rest, "-")
	if !hasYear {
		year, month = "*", rest
	}
	day, days = plain(day), systemdWeekdays(days)
	if fromEnd {
		n, err := digits(day)
		if err != nil {
			return ""
		}
		if day = fmt.Sprintf("L-%d", n-1); n == 1 {
			day = "L"
		}
	}
	if days != "*" && !strings.HasPrefix(day, "*") {
		week, ok := map[string]string{"1-7": "1", "8-14": "2", "15-21": "3", "22-28": "4"}[day]
		if !ok || len(days) != 3 {
			return "" // systemd intersects them
		}
		day, days = "*", days+"#"+week
	}
	if year != "*" {
		return ""
	}
	return strings.Join(append(out, day, plain(month), days), " ")
}

func systemdWeekdays(text string) string {
	items := strings.Split(text, ",")
	for i, item := range items {
		from, to, isRange := strings.Cut(strings.ReplaceAll(item, "..", "-"), "-")
		if items[i] = short(from); isRange {
			items[i] += "-" + short(to)
		}
	}
	return strings.Join(items, ",")
}

func short(weekday string) string { return strings.ToUpper(weekday[:min(3, len(weekday))]) }

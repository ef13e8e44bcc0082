package frame

import (
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
)

// Link is the address of a page, with pairs of fields and values as its query.
func Link(page string, pairs ...string) string {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	if len(q) == 0 {
		return Prefix + page
	}
	return Prefix + page + "?" + q.Encode()
}

// CountText groups the digits of a number: 1 234 567, with narrow spaces that do not break.
func CountText(n int64) string {
	digits := strconv.FormatInt(n, 10)
	var out strings.Builder
	for i, d := range digits {
		if left := len(digits) - i; i > 0 && left%3 == 0 && digits[i-1] != '-' {
			out.WriteRune('\u202f')
		}
		out.WriteRune(d)
	}
	return out.String()
}

// SumText is the sum of a series.
func SumText(counts []int64) string {
	sum := int64(0)
	for _, n := range counts {
		sum += n
	}
	return CountText(sum)
}

// RateText is a number of tasks a second, not more exact than people need; empty for none.
func RateText(perSecond float64) string {
	switch {
	case perSecond <= 0:
		return ""
	case perSecond < 0.01:
		return "< 0.01/s"
	case perSecond < 10:
		return strconv.FormatFloat(perSecond, 'f', 2, 64) + "/s"
	}
	return CountText(int64(math.Round(perSecond))) + "/s"
}

// ClockText is the time of a day, in UTC.
func ClockText(t time.Time) string { return t.UTC().Format("15:04:05") }

// HourText is an hour of a day, in UTC.
func HourText(t time.Time) string { return t.UTC().Format("Mon 2 Jan 15:04") }

// InstantText is a time to the millisecond; empty for none.
func InstantText(t *timestamppb.Timestamp) string {
	if t == nil {
		return ""
	}
	return t.AsTime().Format("2006-01-02 15:04:05.000 MST")
}

// How many characters of a text that others wrote are shown: in a line, and as a sentence of its own.
const (
	longest         = 120
	longestSentence = 2000
)

// Cut shortens a text that others wrote to what is shown in a line.
func Cut(text string) string { return cutTo(text, longest) }

func cutTo(text string, most int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "…"
	}
	return text
}

// AwayText says how far a time is away from now: in 5 s, 2 min ago.
func AwayText(t *timestamppb.Timestamp, now time.Time) string {
	if t == nil {
		return ""
	}
	if d := t.AsTime().Sub(now); d >= 0 {
		return "in " + durationText(d)
	} else {
		return durationText(-d) + " ago"
	}
}

// SpanText is a number of milliseconds in their largest unit.
func SpanText(ms int64) string { return durationText(time.Duration(ms) * time.Millisecond) }

// durationText is a duration in its largest unit, and not more exact than people need.
func durationText(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d d %d h", int(d.Hours())/24, int(d.Hours())%24)
}

// StateText is a state in the words of the command line: scheduled, dead.
func StateText(s fmt.Stringer) string {
	name := s.String()
	for _, prefix := range []string{"TASK_STATE_", "ATTEMPT_OUTCOME_", "DEAD_REASON_", "NODE_STATE_", "SCHEDULE_STATE_", "WAITING_FOR_", "RUN_OUTCOME_", "RUN_ORIGIN_", "SKIP_REASON_", "WORKFLOW_STATE_", "WORKFLOW_CAUSE_", "STEP_STATE_", "STEP_REASON_", "STEP_KIND_", "CHANGE_KIND_", "OPERATION_STATE_", "OVERLAP_", "CATCH_UP_POLICY_", "INTERVAL_FROM_", "LOG_LEVEL_", "AUDIT_OUTCOME_"} {
		name = strings.TrimPrefix(name, prefix)
	}
	if name == "UNSPECIFIED" {
		return ""
	}
	return strings.ReplaceAll(strings.ToLower(name), "_", " ")
}

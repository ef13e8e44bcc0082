package schedules

import (
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

// maxPayload is how long a payload may be that the form has.
const maxPayload = 64 << 10

var (
	overlaps = []ddqv1.Overlap{
		ddqv1.Overlap_OVERLAP_SKIP, ddqv1.Overlap_OVERLAP_BUFFER_ONE, ddqv1.Overlap_OVERLAP_BUFFER_ALL, ddqv1.Overlap_OVERLAP_CANCEL_OTHER, ddqv1.Overlap_OVERLAP_ALLOW,
	}
	catchUps      = []ddqv1.CatchUpPolicy{ddqv1.CatchUpPolicy_CATCH_UP_POLICY_LAST, ddqv1.CatchUpPolicy_CATCH_UP_POLICY_ALL, ddqv1.CatchUpPolicy_CATCH_UP_POLICY_NONE}
	intervalFroms = []ddqv1.IntervalFrom{ddqv1.IntervalFrom_INTERVAL_FROM_START, ddqv1.IntervalFrom_INTERVAL_FROM_END}
)

// mistake is what is wrong with a field, in a sentence for people.
type mistake string

func (m mistake) Error() string { return string(m) }

// field is a part of a schedule that the form has, as text.
type field struct {
	name, label string
	of          string // of the server, the beginning of its name
	read        func(s *ddqv1.Schedule) string
	write       func(s *ddqv1.Schedule, text string) error // a mistake
}

// fields are those of every schedule. A field that was not changed is not written, so that what the form
// says less exactly than the schedule stays exact.
var fields = []field{
	{"cron", "Cron, one expression a line", "timetable", readCron, writeCron},
	{"every", "Every", "", readEvery, writeEvery},
	{"from", "Intervals are counted from", "", readFrom, writeFrom},
	{"at", "At, one time a line (UTC)", "", readAt, writeAt},
	{"zone", "Zone", "timetable.zone", func(s *ddqv1.Schedule) string { return s.GetTimetable().GetZone() }, func(s *ddqv1.Schedule, text string) error {
		s.Timetable.Zone = strings.TrimSpace(text)
		return nil
	}},
	{"start", "Not before (UTC)", "timetable.start_time", func(s *ddqv1.Schedule) string { return localText(s.GetTimetable().GetStartTime()) }, func(s *ddqv1.Schedule, text string) (err error) {
		s.Timetable.StartTime, err = readLocal(text)
		return err
	}},
	{"end", "Not after (UTC)", "timetable.end_time", func(s *ddqv1.Schedule) string { return localText(s.GetTimetable().GetEndTime()) }, func(s *ddqv1.Schedule, text string) (err error) {
		s.Timetable.EndTime, err = readLocal(text)
		return err
	}},
	{"calendars", "Calendars that it leaves out", "timetable.calendars", func(s *ddqv1.Schedule) string { return strings.Join(s.GetTimetable().GetCalendars(), " ") }, func(s *ddqv1.Schedule, text string) error {
		s.Timetable.Calendars = strings.Fields(text)
		return nil
	}},
	{"jitter", "Jitter", "timetable.jitter_ms", func(s *ddqv1.Schedule) string { return lengthText(s.GetTimetable().GetJitterMs()) }, func(s *ddqv1.Schedule, text string) (err error) {
		s.Timetable.JitterMs, err = readLength(text)
		return err
	}},
	{"overlap", "While a run is open", "overlap", func(s *ddqv1.Schedule) string { return frame.StateText(s.GetOverlap()) }, func(s *ddqv1.Schedule, text string) (err error) {
		s.Overlap, err = readChoice(text, overlaps)
		return err
	}},
	{"catch_up", "Of those missed are made", "catch_up.policy", func(s *ddqv1.Schedule) string { return frame.StateText(s.GetCatchUp().GetPolicy()) }, func(s *ddqv1.Schedule, text string) (err error) {
		catchUp(s).Policy, err = readChoice(text, catchUps)
		return err
	}},
	{"grace", "Late, and not missed, for", "catch_up.grace_ms", func(s *ddqv1.Schedule) string { return lengthText(s.GetCatchUp().GetGraceMs()) }, func(s *ddqv1.Schedule, text string) (err error) {
		catchUp(s).GraceMs, err = readLength(text)
		return err
	}},
	{"within", "Missed for no longer than", "catch_up.within_ms", func(s *ddqv1.Schedule) string { return lengthText(s.GetCatchUp().GetWithinMs()) }, func(s *ddqv1.Schedule, text string) (err error) {
		catchUp(s).WithinMs, err = readLength(text)
		return err
	}},
	{"max_runs", "Runs in all", "max_runs", func(s *ddqv1.Schedule) string { return numberText(s.GetMaxRuns()) }, func(s *ddqv1.Schedule, text string) (err error) {
		s.MaxRuns, err = readNumber(text, 64)
		return err
	}},
	{"failures", "Pauses after so many failures in a row", "pause_after_failures", func(s *ddqv1.Schedule) string { return numberText(int64(s.GetPauseAfterFailures())) }, func(s *ddqv1.Schedule, text string) error {
		n, err := readNumber(text, 32)
		s.PauseAfterFailures = int32(n) //nolint:gosec // readNumber has bounded it
		return err
	}},
}

// taskFields are those of a schedule whose runs are tasks.
var taskFields = []field{
	{"audience", "Audience, each of whom gets a task", "audience", func(s *ddqv1.Schedule) string { return s.GetAudience().GetName() }, func(s *ddqv1.Schedule, text string) error {
		if text == "" {
			s.Audience = nil
			return nil
		}
		target(s).Name = text
		return nil
	}},
	{"kind", "Kind of message", "audience.kind", func(s *ddqv1.Schedule) string { return s.GetAudience().GetKind() }, func(s *ddqv1.Schedule, text string) error {
		return ofAudience(s, text != "", func(a *ddqv1.AudienceTarget) error { a.Kind = text; return nil })
	}},
	{"window", "Spread over", "audience.window_ms", func(s *ddqv1.Schedule) string { return lengthText(s.GetAudience().GetWindowMs()) }, func(s *ddqv1.Schedule, text string) error {
		return ofAudience(s, text != "", func(a *ddqv1.AudienceTarget) (err error) { a.WindowMs, err = readLength(text); return err })
	}},
}

// payloadField is that of a task whose payload is text, and not too long.
var payloadField = field{"payload", "Payload of the task, as text", "task.payload", func(s *ddqv1.Schedule) string { return string(s.GetTask().GetPayload()) }, func(s *ddqv1.Schedule, text string) error {
	s.GetTask().Payload = []byte(text)
	return nil
}}

// fieldsOf are those that the form of a schedule has.
func fieldsOf(s *ddqv1.Schedule) []field {
	all := slices.Clone(fields)
	if s.GetTask() == nil {
		return all
	}
	all = append(all, taskFields...)
	if isText(s.GetTask().GetPayload()) {
		all = append(all, payloadField)
	}
	return all
}

// isText reports whether a form can send a payload and get the same bytes back.
func isText(payload []byte) bool {
	return len(payload) <= maxPayload && utf8.Valid(payload) && !strings.ContainsFunc(string(payload), func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' })
}

// formField is the field of the form by what the server calls it; empty for none.
func formField(server string) string {
	switch {
	case server == "topic", server == "name":
		return server
	case strings.HasSuffix(server, ".from"):
		return "from"
	case strings.Contains(server, "].every"):
		return "every"
	case strings.Contains(server, "].at"):
		return "at"
	}
	name, longest := "", 0
	for _, f := range slices.Concat(fields, taskFields, []field{payloadField}) {
		if f.of != "" && strings.HasPrefix(server, f.of) && len(f.of) > longest {
			name, longest = f.name, len(f.of)
		}
	}
	return name
}

func catchUp(s *ddqv1.Schedule) *ddqv1.CatchUp {
	if s.CatchUp == nil {
		s.CatchUp = new(ddqv1.CatchUp)
	}
	return s.CatchUp
}

func target(s *ddqv1.Schedule) *ddqv1.AudienceTarget {
	if s.Audience == nil {
		s.Audience = new(ddqv1.AudienceTarget)
	}
	return s.Audience
}

// ofAudience does something to the audience of a schedule, which it needs when given.
func ofAudience(s *ddqv1.Schedule, given bool, do func(a *ddqv1.AudienceTarget) error) error {
	switch {
	case s.Audience != nil:
		return do(s.Audience)
	case given:
		return mistake("This is of an audience, which is not given.")
	}
	return nil
}

func entriesText(s *ddqv1.Schedule, of func(e *ddqv1.TimetableEntry) string) string {
	var all []string
	for _, e := range s.GetTimetable().GetEntries() {
		if text := of(e); text != "" {
			all = append(all, text)
		}
	}
	return strings.Join(all, "\n")
}

// setEntries replaces entries of a kind. Those of cron are the first, as the form has them.
func setEntries(s *ddqv1.Schedule, mine func(e *ddqv1.TimetableEntry) bool, entries []*ddqv1.TimetableEntry) {
	t := s.GetTimetable()
	t.Entries = append(slices.DeleteFunc(t.GetEntries(), mine), entries...)
	rank := func(e *ddqv1.TimetableEntry) int {
		switch {
		case e.GetCron() != "":
			return 0
		case e.GetEvery() != nil:
			return 1
		}
		return 2
	}
	slices.SortStableFunc(t.Entries, func(a, b *ddqv1.TimetableEntry) int { return rank(a) - rank(b) })
}

// lines are those of a text that have something.
func lines(text string) (all []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, line)
		}
	}
	return all
}

func readCron(s *ddqv1.Schedule) string { return entriesText(s, (*ddqv1.TimetableEntry).GetCron) }

func writeCron(s *ddqv1.Schedule, text string) error {
	var all []*ddqv1.TimetableEntry
	for _, line := range lines(text) {
		all = append(all, &ddqv1.TimetableEntry{When: &ddqv1.TimetableEntry_Cron{Cron: line}})
	}
	setEntries(s, func(e *ddqv1.TimetableEntry) bool { return e.GetCron() != "" }, all)
	return nil
}

func readEvery(s *ddqv1.Schedule) string {
	return strings.ReplaceAll(entriesText(s, func(e *ddqv1.TimetableEntry) string { return lengthText(e.GetEvery().GetEveryMs()) }), "\n", " ")
}

func writeEvery(s *ddqv1.Schedule, text string) error {
	from := fromOf(s)
	var all []*ddqv1.TimetableEntry
	for _, word := range strings.Fields(text) {
		ms, err := readLength(word)
		if err != nil {
			return err
		}
		all = append(all, &ddqv1.TimetableEntry{When: &ddqv1.TimetableEntry_Every{Every: &ddqv1.Interval{EveryMs: ms, From: from}}})
	}
	setEntries(s, func(e *ddqv1.TimetableEntry) bool { return e.GetEvery() != nil }, all)
	return nil
}

// fromOf is from where the first interval is counted.
func fromOf(s *ddqv1.Schedule) ddqv1.IntervalFrom {
	for _, e := range s.GetTimetable().GetEntries() {
		if e.GetEvery() != nil {
			return e.GetEvery().GetFrom()
		}
	}
	return ddqv1.IntervalFrom_INTERVAL_FROM_UNSPECIFIED
}

func readFrom(s *ddqv1.Schedule) string { return frame.StateText(fromOf(s)) }

func writeFrom(s *ddqv1.Schedule, text string) error {
	from, err := readChoice(text, intervalFroms)
	for _, e := range s.GetTimetable().GetEntries() {
		if e.GetEvery() != nil {
			e.GetEvery().From = from
		}
	}
	return err
}

func readAt(s *ddqv1.Schedule) string {
	return entriesText(s, func(e *ddqv1.TimetableEntry) string {
		var all []string
		for _, t := range e.GetAt().GetTimes() {
			all = append(all, localText(t))
		}
		return strings.Join(all, "\n")
	})
}

func writeAt(s *ddqv1.Schedule, text string) error {
	var times []*timestamppb.Timestamp
	for _, line := range lines(text) {
		at, err := readLocal(line)
		if err != nil {
			return err
		}
		times = append(times, at)
	}
	var all []*ddqv1.TimetableEntry
	if len(times) > 0 {
		all = []*ddqv1.TimetableEntry{{When: &ddqv1.TimetableEntry_At{At: &ddqv1.Instants{Times: times}}}}
	}
	setEntries(s, func(e *ddqv1.TimetableEntry) bool { return e.GetAt() != nil }, all)
	return nil
}

// localText is a time as a field of a browser has it, in UTC; empty for none.
func localText(t *timestamppb.Timestamp) string {
	if t == nil {
		return ""
	}
	return t.AsTime().Format("2006-01-02T15:04:05.999")
}

// readLocal reads a time in UTC, or one that says its offset.
func readLocal(text string) (*timestamppb.Timestamp, error) {
	if text == "" {
		return nil, nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return timestamppb.New(at), nil
	}
	wrong := frame.Mistakes{}
	ms := wrong.Instant("", text)
	if len(wrong) > 0 {
		return nil, mistake(wrong[""])
	}
	return timestamppb.New(time.UnixMilli(ms)), nil
}

// lengthText is a length of time as it can be read again: 36h, 1m30s; empty for 0.
func lengthText(ms int64) string {
	if ms == 0 {
		return ""
	}
	text := (time.Duration(ms) * time.Millisecond).String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// readLength reads what lengthText writes, and days.
func readLength(text string) (ms int64, err error) {
	if text = strings.TrimSpace(text); text == "" {
		return 0, nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseInt(days, 10, 32); err == nil && n >= 0 {
			return n * (24 * time.Hour).Milliseconds(), nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, mistake("A length of time is such as 90s, 15m, 36h or 7d.")
	}
	return d.Milliseconds(), nil
}

func numberText(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

func readNumber(text string, bits int) (int64, error) {
	if text = strings.TrimSpace(text); text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, bits)
	if err != nil {
		return 0, mistake("This is a whole number.")
	}
	return n, nil
}

// readChoice reads the name of a state; the zero value when it is empty.
func readChoice[S interface {
	~int32
	String() string
}](text string, states []S) (S, error) {
	wrong := frame.Mistakes{}
	s, _ := frame.State(wrong, "", text, states)
	if len(wrong) > 0 {
		return s, mistake(wrong[""])
	}
	return s, nil
}

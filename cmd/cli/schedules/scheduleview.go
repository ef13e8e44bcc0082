package schedules

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/cmd/cli/session"
	"github.com/ddq-io/ddq/cmd/cli/terminal"
	"github.com/ddq-io/ddq/cmd/node"
)

// scheduleView is what the author of a schedule decides. Files for schedule apply have the
// same names, see scheduleFile.
type scheduleView struct {
	Topic       string   `json:"topic"`
	Name        string   `json:"name"`
	Cron        []string `json:"cron,omitempty"`
	EveryMs     int64    `json:"every_ms,omitempty"`
	From        string   `json:"from,omitempty"`
	AlsoEveryMs []int64  `json:"also_every_ms,omitempty"`
	At          []string `json:"at,omitempty"`
	Zone        string   `json:"zone,omitempty"`
	Start       string   `json:"start,omitempty"`
	End         string   `json:"end,omitempty"`
	Calendars   []string `json:"calendars,omitempty"`
	JitterMs    int64    `json:"jitter_ms,omitempty"`
	templateView
	Workflow           json.RawMessage `json:"workflow,omitempty"` // as the API has it
	Overlap            string          `json:"overlap,omitempty"`
	CatchUp            string          `json:"catch_up,omitempty"`
	GraceMs            int64           `json:"grace_ms,omitempty"`
	WithinMs           int64           `json:"within_ms,omitempty"`
	PauseAfterFailures int             `json:"pause_after_failures,omitempty"`
	MaxRuns            int64           `json:"max_runs,omitempty"`
	History            *int            `json:"history,omitempty"`
	Untracked          bool            `json:"untracked,omitempty"`
	targetView
	Labels map[string]string `json:"labels,omitempty"`
}

// templateView is what a run is.
type templateView struct {
	Payload             string            `json:"payload,omitempty"`
	PayloadBase64       []byte            `json:"payload_base64,omitempty"`
	Attributes          map[string]string `json:"attributes,omitempty"`
	MaxRetries          *int              `json:"max_retries,omitempty"`
	VisibilityTimeoutMs int64             `json:"visibility_timeout_ms,omitempty"`
	HandlerTimeoutMs    int64             `json:"handler_timeout_ms,omitempty"`
	Backoff             *client.Backoff   `json:"backoff,omitempty"`
	Priority            int               `json:"priority,omitempty"`
	FairnessKey         string            `json:"fairness_key,omitempty"`
	FairnessWeight      int               `json:"fairness_weight,omitempty"`
	RateKey             string            `json:"rate_key,omitempty"`
	ConcurrencyKey      string            `json:"concurrency_key,omitempty"`
	ExpireAfterMs       int64             `json:"expire_after_ms,omitempty"`
	SlackMs             int64             `json:"slack_ms,omitempty"`
}

func viewSchedule(s *client.Schedule) scheduleView {
	v := scheduleView{
		Topic: s.Topic, Name: s.Name, Cron: s.Cron, EveryMs: s.Every.Milliseconds(), Zone: s.Zone, Start: terminal.Clock(s.Start), End: terminal.Clock(s.End),
		Calendars: s.Calendars, JitterMs: s.Jitter.Milliseconds(), templateView: viewTemplate(&s.Task), Overlap: dashed(s.Overlap.String()), CatchUp: s.CatchUp.String(),
		GraceMs: s.Grace.Milliseconds(), WithinMs: s.Within.Milliseconds(), PauseAfterFailures: s.PauseAfterFailures, MaxRuns: s.MaxRuns,
		History: s.History, Untracked: s.Untracked, Labels: s.Labels,
	}
	v.targetView, v.Workflow = viewTarget(s.Audience), viewWorkflow(s.Workflow)
	if s.EveryFromEnd {
		v.From = "end"
	}
	for _, d := range s.AlsoEvery {
		v.AlsoEveryMs = append(v.AlsoEveryMs, d.Milliseconds())
	}
	if len(s.At) > 0 {
		v.At = clocks(s.At)
	}
	return v
}

func viewTemplate(t *client.Task) templateView {
	v := templateView{
		Attributes: t.Attributes, MaxRetries: t.MaxRetries, Backoff: t.Backoff, Priority: t.Priority,
		VisibilityTimeoutMs: t.VisibilityTimeout.Milliseconds(), HandlerTimeoutMs: t.HandlerTimeout.Milliseconds(),
		FairnessKey: t.FairnessKey, FairnessWeight: t.FairnessWeight, RateKey: t.RateKey, ConcurrencyKey: t.ConcurrencyKey,
		ExpireAfterMs: t.ExpireAfter.Milliseconds(), SlackMs: t.Slack.Milliseconds(),
	}
	if utf8.Valid(t.Payload) {
		v.Payload = string(t.Payload)
	} else {
		v.PayloadBase64 = t.Payload
	}
	return v
}

// when is the timetable in a few words.
func (v *scheduleView) when() string {
	var parts []string
	parts = append(parts, v.Cron...)
	if v.EveryMs > 0 {
		every := "every " + node.DurationText(session.Millis(v.EveryMs))
		if v.From == "end" {
			every += " from the end of a run"
		}
		parts = append(parts, every)
	}
	for _, ms := range v.AlsoEveryMs {
		parts = append(parts, "every "+node.DurationText(session.Millis(ms)))
	}
	switch len(v.At) {
	case 0:
	case 1:
		parts = append(parts, v.At[0])
	default:
		parts = append(parts, fmt.Sprintf("%d instants", len(v.At)))
	}
	text := strings.Join(parts, "; ")
	if v.Zone != "" && len(v.Cron) > 0 {
		text += " " + v.Zone
	}
	return text
}

// scheduleStatusView is a schedule as it stands.
type scheduleStatusView struct {
	scheduleView
	State    string               `json:"state"`
	PausedBy string               `json:"paused_by,omitempty"`
	Note     string               `json:"note,omitempty"`
	NextTime string               `json:"next_time,omitempty"`
	LastTime string               `json:"last_time,omitempty"`
	OpenRuns []client.ScheduleRun `json:"open_runs,omitempty"`
	Waiting  int                  `json:"waiting,omitempty"`
	Failures int                  `json:"failures,omitempty"`
	Runs     []client.ScheduleRun `json:"runs,omitempty"`

	Backfills []client.BackfillProgress `json:"backfills,omitempty"`

	Totals  client.ScheduleTotals `json:"totals"`
	Version int64                 `json:"version"`
}

func viewScheduleStatus(s *client.ScheduleStatus) scheduleStatusView {
	return scheduleStatusView{
		scheduleView: viewSchedule(&s.Schedule), State: s.State.String(), PausedBy: s.PausedBy, Note: s.Note,
		NextTime: terminal.Clock(s.Next), LastTime: terminal.Clock(s.Last), OpenRuns: s.OpenRuns, Waiting: s.Waiting, Failures: s.Failures,
		Runs: s.Runs, Backfills: s.Backfills, Totals: s.Totals, Version: s.Version,
	}
}

// lastRun is how the latest run ended, or that one is open.
func (v *scheduleStatusView) lastRun() string {
	if len(v.OpenRuns) > 0 {
		return "open"
	}
	for i := len(v.Runs) - 1; i >= 0; i-- {
		if r := &v.Runs[i]; r.Skipped == 0 {
			return r.Outcome.String()
		}
	}
	return "none"
}

// rows are what describe shows.
func (v *scheduleStatusView) rows(s *client.ScheduleStatus) []table.Row {
	rows := []table.Row{{"topic", v.Topic}, {"name", v.Name}, {"when", v.when()}, {"state", v.state()}, {"next", cmp.Or(v.NextTime+untilText(s.Next), "none")}}
	if !s.Next.IsZero() {
		rows = append(rows, localRow(v.Zone, s.Next)...)
	}
	rows = append(rows, v.policyRows()...)
	for _, key := range terminal.SortedKeys(v.Labels) {
		rows = append(rows, table.Row{"label " + key, v.Labels[key]})
	}
	t := &v.Totals
	rows = append(rows, table.Row{"runs", fmt.Sprintf("%d made, %d done, %d failed, %d removed", t.Made, t.Done, t.Failed, t.Removed)})
	for _, r := range v.OpenRuns {
		rows = append(rows, table.Row{"open", terminal.Clock(r.Occurrence) + ", " + what(s) + " " + r.ID})
	}
	if v.Waiting > 0 {
		rows = append(rows, table.Row{"waiting", v.Waiting})
	}
	for _, b := range v.Backfills {
		rows = append(rows, table.Row{"backfill", fmt.Sprintf("%s: %s to %s, %d of %d made", b.ID, terminal.Clock(b.From), terminal.Clock(b.To), b.Made, b.Total)})
	}
	for i := len(v.Runs) - 1; i >= 0; i-- {
		rows = append(rows, table.Row{"run", runText(&v.Runs[i])})
	}
	return append(rows, table.Row{"version", v.Version}, runRow(s))
}

// localRow is a time by the clock of a zone, if it is another one than UTC and known here.
func localRow(zone string, at time.Time) []table.Row {
	location, err := time.LoadLocation(zone)
	if err != nil || zone == "" || zone == "UTC" {
		return nil
	}
	return []table.Row{{"", at.In(location).Format("Mon 2006-01-02 15:04:05 -07:00") + " " + zone}}
}

func (v *scheduleStatusView) state() string {
	text := v.State
	if v.PausedBy != "" && v.State == client.SchedulePaused.String() {
		text += " by " + v.PausedBy
	}
	if v.Note != "" {
		text += ": " + v.Note
	}
	return text
}

// policyRows are the policies, but for those that are not set.
func (v *scheduleStatusView) policyRows() []table.Row {
	rows := []table.Row{{"overlap", v.Overlap}, {"catch up", v.CatchUp + ", grace " + node.DurationText(session.Millis(v.GraceMs))}}
	add := func(name string, there bool, text any) {
		if there {
			rows = append(rows, table.Row{name, text})
		}
	}
	add("within", v.WithinMs > 0, node.DurationText(session.Millis(v.WithinMs)))
	add("calendars", len(v.Calendars) > 0, strings.Join(v.Calendars, ", "))
	add("jitter", v.JitterMs > 0, node.DurationText(session.Millis(v.JitterMs)))
	add("start", v.Start != "", v.Start)
	add("end", v.End != "", v.End)
	add("max runs", v.MaxRuns > 0, v.MaxRuns)
	add("pause after failures", v.PauseAfterFailures > 0, v.PauseAfterFailures)
	add("untracked", v.Untracked, v.Untracked)
	add("audience", v.Audience != "", v.targetText())
	return rows
}

// runText is a run or skips on one line.
func runText(r *client.ScheduleRun) string {
	if r.Skipped != 0 {
		text := terminal.Clock(r.Occurrence) + " skipped: " + strings.ReplaceAll(r.Skipped.String(), "_", " ")
		if r.Count > 1 {
			text += fmt.Sprintf(", the last of %d", r.Count)
		}
		return text
	}
	text := terminal.Clock(r.Occurrence) + " " + r.Outcome.String()
	if r.Took > 0 {
		text += " after " + r.Took.String()
	}
	if r.Origin != client.RunByTimetable {
		text += ", " + r.Origin.String()
	}
	return text
}

package schedules

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/api/service/text"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/timer/timetable"
)

// Bounds of what a schedule may say.
const (
	maxName          = 128
	maxLabels        = 8
	maxCalendarsOf   = 20
	maxCron          = 256 // bytes of one expression
	maxPauseFailures = 1000
	maxNote          = 1024
	minGrace         = time.Second
	maxGrace         = 24 * time.Hour
	maxSlack         = 24 * time.Hour
	maxTemplate      = store.MaxCell / 2 // bytes of a payload: the rest of the cell is for runs

	defaultGrace   = time.Minute
	DefaultHistory = 10 // runs and skips that are remembered where nothing is said
)

// checkName allows visible ASCII.
func checkName(field, name string) *problem.Error { return text.CheckName(field, name, maxName) }

// check refuses a schedule that can never be put, and fills in what it leaves out.
func (n *Definition) check(tasks Tasks) *problem.Error {
	if err := actors.CheckTopicName("topic", n.Topic); err != nil {
		return err
	}
	if err := checkName("name", n.Name); err != nil {
		return err
	}
	if err := n.checkPolicy(); err != nil {
		return err
	}
	if err := n.checkCalendars(); err != nil {
		return err
	}
	if err := checkLabels(n.Labels); err != nil {
		return err
	}
	if err := checkNote("note", n.Note, maxNote); err != nil {
		return err
	}
	if err := n.checkAudience(); err != nil {
		return err
	}
	if err := n.checkLocal(); err != nil {
		return err
	}
	if n.Workflow != nil {
		return n.checkWorkflow(tasks)
	}
	return n.checkTemplate(tasks)
}

// checkPolicy fills in the defaults of what is not given.
func (n *Definition) checkPolicy() *problem.Error {
	s := &n.Spec
	if s.Overlap == 0 {
		s.Overlap = n.defaultOverlap()
	}
	if s.CatchUp == 0 {
		s.CatchUp = schedule.Last
	}
	if s.Grace == 0 {
		s.Grace = defaultGrace
	}
	switch {
	case s.Overlap > schedule.Allow:
		return problem.BadField("overlap", "BAD_ENUM", "overlap has no value %d", s.Overlap)
	case s.CatchUp > schedule.None:
		return problem.BadField("catch_up.policy", "BAD_ENUM", "catch_up.policy has no value %d", s.CatchUp)
	case s.Grace < minGrace || s.Grace > maxGrace:
		return outOfRange("catch_up.grace_ms", minGrace.Milliseconds(), maxGrace.Milliseconds())
	case s.Within < 0:
		return problem.BadField("catch_up.within_ms", "OUT_OF_RANGE_FIELD", "catch_up.within_ms must not be negative")
	case s.MaxRuns < 0:
		return problem.BadField("max_runs", "OUT_OF_RANGE_FIELD", "max_runs must not be negative")
	case s.PauseAt < 0 || s.PauseAt > maxPauseFailures:
		return outOfRange("pause_after_failures", 0, maxPauseFailures)
	case s.History < 0 || s.History > schedule.MaxHistory:
		return outOfRange("history", 0, schedule.MaxHistory)
	case s.Untracked && s.Overlap != schedule.Allow:
		return problem.BadField("track", "BAD_POLICY", "track is false with overlap ALLOW only: the other policies follow how runs end")
	case s.Untracked && s.PauseAt > 0:
		return problem.BadField("pause_after_failures", "BAD_POLICY", "pause_after_failures needs runs that are tracked")
	}
	return nil
}

func outOfRange(field string, least, most int64) *problem.Error {
	return problem.BadField(field, "OUT_OF_RANGE_FIELD", "%s must be %d to %d", field, least, most)
}

func (n *Definition) checkCalendars() *problem.Error {
	if len(n.Calendars) > maxCalendarsOf {
		return problem.BadField("timetable.calendars", "BAD_SCHEDULE", "%d calendars; at most %d are allowed", len(n.Calendars), maxCalendarsOf)
	}
	for _, name := range n.Calendars {
		if err := checkName("timetable.calendars", name); err != nil {
			return err
		}
	}
	return nil
}

func checkLabels(labels []store.Attribute) *problem.Error {
	if len(labels) > maxLabels {
		return problem.BadField("labels", "BAD_SCHEDULE", "%d labels; at most %d are allowed", len(labels), maxLabels)
	}
	for i, a := range labels {
		if a.Key == "" || len(a.Key) > 64 || len(a.Value) > 256 || !utf8.ValidString(a.Key) || !utf8.ValidString(a.Value) {
			return problem.BadField("labels", "BAD_SCHEDULE", "a label has a key of 1 to 64 bytes and a value of at most 256, both UTF-8")
		}
		for _, b := range labels[:i] {
			if a.Key == b.Key {
				return problem.BadField("labels", "BAD_SCHEDULE", "label %q is given twice", a.Key)
			}
		}
	}
	return nil
}

// checkNote checks what is shown to people as it came; an empty one is fine.
func checkNote(field, note string, most int) *problem.Error {
	return text.CheckNote(field, note, most, "BAD_SCHEDULE")
}

// checkTemplate checks what the tasks of the schedule have in common, as Enqueue would each.
func (n *Definition) checkTemplate(tasks Tasks) *problem.Error {
	t := &n.Template
	if len(t.Task.Payload) > maxTemplate {
		return problem.BadField("task.payload", "PAYLOAD_TOO_LARGE", "the payload of a schedule has %d bytes; at most %d are allowed", len(t.Task.Payload), maxTemplate)
	}
	if t.Slack < 0 || t.Slack > maxSlack {
		return outOfRange("task.slack", 0, maxSlack.Milliseconds())
	}
	return inTask(tasks.Check(&t.Task, t.ExpireAfter))
}

// checkTopic applies the topic's own limits, and those of others that a workflow has steps in. With
// create the latter are made where they are missing.
func (n *Definition) checkTopic(ctx context.Context, tasks Tasks, t *store.Topic, create bool) *problem.Error {
	if n.Workflow != nil {
		return tasks.FitsFlow(ctx, inWorkflow, n.Workflow, t, create)
	}
	if size := len(n.Template.Task.Payload); size > t.MaxPayload {
		return problem.BadField("task.payload", "PAYLOAD_TOO_LARGE", "payload has %d bytes; at most %d are allowed", size, t.MaxPayload)
	}
	return nil
}

// inTask names the field of an error as that of the template.
func inTask(err *problem.Error) *problem.Error {
	if err == nil || err.Field == "" {
		return err
	}
	inner := *err
	inner.Field = "task." + err.Field
	return &inner
}

// tableOf returns the timetable of a schedule that was made, or is to be, at a moment, or says
// what is wrong with it.
func tableOf(spec *schedule.Spec, name string, anchor store.Millis) (*timetable.Timetable, *problem.Error) {
	entries := spec.Timetable.Entries
	switch {
	case len(entries) == 0:
		return nil, problem.BadField("timetable.entries", "BAD_SCHEDULE", "timetable.entries is required: a schedule has to say when")
	case len(entries) > timetable.MaxEntries:
		return nil, problem.BadField("timetable.entries", "BAD_CRON", "%d entries; at most %d are allowed", len(entries), timetable.MaxEntries)
	}
	for i, e := range entries {
		if e.FromEnd && len(entries) > 1 {
			return nil, problem.BadField(fmt.Sprintf("timetable.entries[%d].every.from", i), "BAD_POLICY", "an interval from the END of a run is the only entry")
		}
		if len(e.Cron) > maxCron {
			return nil, problem.BadField(fmt.Sprintf("timetable.entries[%d].cron", i), "BAD_CRON", "an expression has %d bytes; at most %d are allowed", len(e.Cron), maxCron)
		}
	}
	if spec.Untracked && entries[0].FromEnd {
		return nil, problem.BadField("track", "BAD_POLICY", "an interval from the END of a run needs runs that are tracked")
	}
	if zone := spec.Timetable.Zone; zone != timetable.Recipient {
		if err := timetable.CheckZone(zone); err != nil {
			return nil, timetableProblem(err, spec)
		}
	}
	table, err := timetable.New(spec.Timetable, name, anchor.Time())
	return table, timetableProblem(err, spec)
}

// checkOccurs refuses a timetable that names nothing after now, or a jitter that is too wide
// for it.
func checkOccurs(table *timetable.Timetable, spec *schedule.Spec, now store.Millis) *problem.Error {
	if err := timetableProblem(table.Check(now.Time(), spec.Jitter), spec); err != nil {
		return err
	}
	return checkLocalRuns(table, spec, now)
}

var timetableReasons = map[timetable.Fault]string{
	timetable.BadCron: "BAD_CRON", timetable.BadZone: "BAD_ZONE", timetable.OutOfRange: "OUT_OF_RANGE_FIELD", timetable.NeverOccurs: "NEVER_FIRES",
}

// timetableProblem says what is wrong with a timetable in fields of the wire.
func timetableProblem(err error, spec *schedule.Spec) *problem.Error {
	var e *timetable.Error
	if !errors.As(err, &e) {
		return problem.FromStore(err)
	}
	field, reason, message := "timetable."+e.Field, timetableReasons[e.Fault], e.Reason
	switch {
	case e.Fault == timetable.BadZone:
		message += nearestZones(spec.Timetable.Zone)
	case e.Field == "end_time":
		reason = "NEVER_FIRES"
	case e.Field == "timetable":
		field = "timetable"
	case e.Field == "jitter":
		field = "timetable.jitter_ms"
	}
	return problem.BadField(field, reason, "%s: %s", field, message)
}

func nearestZones(name string) string {
	near := timetable.NearestZones(name)
	if len(near) == 0 {
		return "; names are such as Europe/Berlin"
	}
	return "; did you mean " + strings.Join(near, " or ") + "?"
}

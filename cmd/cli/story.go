package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/cmd/cli/terminal"
	"github.com/ddq-io/ddq/cmd/node"
)

// eventView is something that happened to a task, as it is printed. What is not known is left out.
type eventView struct {
	Time        string   `json:"time"`
	Event       string   `json:"event"`
	Node        string   `json:"node,omitempty"`
	Worker      string   `json:"worker,omitempty"`
	Attempt     int      `json:"attempt,omitempty"`
	LateMs      *float64 `json:"late_ms,omitempty"`
	TookMs      *float64 `json:"took_ms,omitempty"`      // from when it was held and due
	ExecuteTime string   `json:"execute_time,omitempty"` // when it is due from then on
	Detail      string   `json:"detail,omitempty"`
	TraceID     string   `json:"trace_id,omitempty"` // in which the worker recorded the attempt that ended
	TraceURL    string   `json:"trace_url,omitempty"`
}

// line is the event for people.
func (v *eventView) line() string {
	var parts []string
	add := func(ok bool, format string, args ...any) {
		if ok {
			parts = append(parts, terminal.Line(fmt.Sprintf(format, args...)))
		}
	}
	add(v.Node != "" && v.Worker != "", "by %s for %s", v.Node, v.Worker)
	add(v.Node == "" && v.Worker != "", "for %s", v.Worker)
	add(v.LateMs != nil, "%s late", spanText(v.LateMs))
	add(v.TookMs != nil, "after %s", spanText(v.TookMs))
	add(v.Detail != "", "%s", v.Detail)
	add(v.ExecuteTime != "", "due %s", v.ExecuteTime)
	add(v.Attempt > 0, "attempt %d", v.Attempt)
	add(v.TraceID != "", "trace %s", cmp.Or(v.TraceURL, v.TraceID))
	return strings.TrimRight(fmt.Sprintf("%s  %-16s  %s", v.Time, v.Event, strings.Join(parts, "  ")), " ")
}

// spanText is a number of milliseconds for people; empty for none.
func spanText(ms *float64) string {
	if ms == nil {
		return ""
	}
	d := time.Duration(*ms * float64(time.Millisecond))
	if d < time.Second {
		return fmt.Sprintf("%.1f ms", *ms)
	}
	return node.DurationText(d.Round(time.Millisecond))
}

// took is how long an attempt was: one that was held ahead of its time began then.
func took(held, due, ended time.Time) *float64 {
	if due.After(held) && !due.After(ended) {
		held = due
	}
	return millisOf(ended.Sub(held))
}

func millisOf(d time.Duration) *float64 { return new(float64(d.Microseconds()) / 1000) }

// story tells what happened to a task: of what its topic's log says, or of what the task itself
// remembers where there is no log.
type story struct {
	task   client.Snapshot // as it is; zero: it is gone
	traces traceURL

	due     time.Time // when it is due, zero: nobody knows
	dueSaid bool
	held    time.Time // since when it is, zero: it is not
	attempt int       // that holds it
}

// dueUntil tells that the task was due, once that is before a moment.
func (s *story) dueUntil(moment time.Time) (all []eventView) {
	if s.due.IsZero() || s.dueSaid || s.due.After(moment) {
		return nil
	}
	s.dueSaid = true
	return []eventView{{Time: terminal.Clock(s.due), Event: "due"}}
}

func (s *story) dueAt(at time.Time) { s.due, s.dueSaid = at, false }

// remembered is an attempt as the task has it: the last one of its number, nil for none.
func (s *story) remembered(number int) *client.Attempt {
	for i := len(s.task.Attempts) - 1; i >= 0; i-- {
		if s.task.Attempts[i].Number == number {
			return &s.task.Attempts[i]
		}
	}
	return nil
}

// take tells what a change of the log says.
func (s *story) take(c *client.TaskChange) []eventView {
	events := s.dueUntil(c.Time)
	v := eventView{Time: terminal.Clock(c.Time), Event: c.Kind.String()}
	switch c.Kind {
	case client.ChangeEnqueued, client.ChangeRequeued:
		v.ExecuteTime = terminal.Clock(c.Due)
		s.dueAt(c.Due)
	case client.ChangeUpdated:
		v.ExecuteTime, v.Detail = terminal.Clock(c.Due), fmt.Sprintf("version %d", c.Version)
		if !c.Due.Equal(s.due) {
			s.dueAt(c.Due)
		}
	case client.ChangeHeld:
		v.Worker, v.Attempt = c.Worker, c.Attempt
		if a := s.remembered(c.Attempt); a != nil {
			v.Node = a.Node
		}
		if late := c.Time.Sub(s.due); !s.due.IsZero() && late >= 0 {
			v.LateMs = millisOf(late)
		}
		s.held, s.attempt = c.Time, c.Attempt
	case client.ChangeReleased, client.ChangeRetrying, client.ChangeDone, client.ChangeDead:
		s.ended(&v, c)
	}
	return append(events, v)
}

// ended is what a change says of the end of an attempt, if one did.
func (s *story) ended(v *eventView, c *client.TaskChange) {
	if c.Outcome != client.AttemptRunning {
		v.Event = c.Outcome.String()
	}
	if c.Kind == client.ChangeDead {
		v.Event, v.Detail = "dead", c.Reason.String()
	}
	if !s.held.IsZero() {
		v.Attempt, v.TookMs = s.attempt, took(s.held, s.due, c.Time)
		if a := s.remembered(s.attempt); a != nil {
			s.traced(v, a)
			if a.Error != "" {
				v.Detail = strings.TrimPrefix(v.Detail+": "+a.Error, ": ")
			}
		}
	}
	if c.Kind == client.ChangeReleased || c.Kind == client.ChangeRetrying {
		v.ExecuteTime = terminal.Clock(c.Due)
		s.dueAt(c.Due)
	}
	s.held = time.Time{}
}

// traced says in which trace an attempt was that ended.
func (s *story) traced(v *eventView, a *client.Attempt) {
	v.TraceID, v.TraceURL = a.TraceID, s.traces.of(a.TraceID)
}

// recalled is what the task itself remembers.
func (s *story) recalled() (all []eventView) {
	t := &s.task
	made := eventView{Time: terminal.Clock(t.CreatedAt), Event: "enqueued"}
	switch {
	case t.Schedule != "":
		made.Detail = fmt.Sprintf("by schedule %s, for %s", t.Schedule, terminal.Clock(t.Occurrence))
	case t.Cause != nil:
		made.Detail = fmt.Sprintf("by the ack of %s/%s", t.Cause.Topic, t.Cause.ID)
	}
	all = append(all, made)
	for i := range t.Attempts {
		a := &t.Attempts[i]
		held := eventView{Time: terminal.Clock(a.Started), Event: "held", Node: a.Node, Worker: a.Worker, Attempt: a.Number}
		due := a.Due
		if last := i == len(t.Attempts)-1; due.IsZero() && last && !waits(t.State) {
			due = t.Due
		}
		if late := a.Started.Sub(due); late >= 0 && !due.IsZero() {
			all = append(all, eventView{Time: terminal.Clock(due), Event: "due"})
			held.LateMs = millisOf(late)
		}
		all = append(all, held)
		if !a.Ended.IsZero() {
			ended := eventView{Time: terminal.Clock(a.Ended), Event: a.Outcome.String(), Attempt: a.Number, TookMs: took(a.Started, time.Time{}, a.Ended), Detail: a.Error}
			s.traced(&ended, a)
			all = append(all, ended)
		}
	}
	switch {
	case t.State == client.StateDead || t.State == client.StateExpired:
		all = append(all, eventView{Time: terminal.Clock(t.FinishedAt), Event: "dead", Detail: t.DeadReason.String()})
	case waits(t.State):
		all = append(all, eventView{Time: terminal.Clock(t.Due), Event: "due"})
	}
	return all
}

// isTold reports whether a change made the task what it is.
func (s *story) isTold(c *client.TaskChange) bool {
	t := &s.task
	switch {
	case t.ID == "" || c.State != t.State:
		return false
	case waits(t.State):
		return c.Due.Equal(t.Due) && c.Version == t.Version
	case t.State == client.StateRunning:
		return len(t.Attempts) > 0 && c.Attempt == t.Attempts[len(t.Attempts)-1].Number && t.CancelRequested == (c.Kind == client.ChangeCancelRequested)
	}
	return c.Time.UnixMilli() == t.FinishedAt.UnixMilli()
}

func waits(s client.State) bool {
	return s == client.StateScheduled || s == client.StateReady || s == client.StateRetrying
}

// gaps say what the events do not tell.
func (s *story) gaps(logged bool) (all []string) {
	if !logged {
		unknown := "edits are not known"
		list := s.task.Attempts
		if slices.ContainsFunc(list, func(a client.Attempt) bool { return a.Due.IsZero() }) {
			unknown += ", and neither is when earlier attempts were due"
		}
		all = append(all, fmt.Sprintf("the topic keeps no log of changes: %s (ddq topic set %s --watch-retention 1h)", unknown, s.task.Topic))
		if len(list) > 0 && list[0].Number > 1 {
			all = append(all, fmt.Sprintf("attempts 1 to %d are not remembered", list[0].Number-1))
		}
	}
	return all
}

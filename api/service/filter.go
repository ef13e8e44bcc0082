package service

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/store"
)

// TaskFilter says which tasks are meant: those that everything which is set matches.
type TaskFilter struct {
	States                     []store.State // any of these; none: every live one
	DueFrom, DueBefore         store.Millis  // 0: no bound
	CreatedFrom, CreatedBefore store.Millis  // 0: no bound
	IDPrefix                   string
	Attributes                 []AttributeMatch
}

// AttributeMatch is what an attribute has to be.
type AttributeMatch struct {
	Key, Value string
	Prefix     bool // Value is how the attribute's begins
}

// isZero reports whether the filter matches every live task.
func (f *TaskFilter) isZero() bool {
	return len(f.States) == 0 && f.DueFrom == 0 && f.DueBefore == 0 && f.CreatedFrom == 0 && f.CreatedBefore == 0 &&
		f.IDPrefix == "" && len(f.Attributes) == 0
}

func (l *limits) checkFilter(f *TaskFilter) *problem.Error {
	switch {
	case f.DueFrom < 0, f.DueBefore < 0:
		return problem.BadField("filter.due_from_unix_ms", "BAD_TIME", "due times of a filter must not be negative")
	case f.DueBefore != 0 && f.DueBefore <= f.DueFrom:
		return problem.BadField("filter.due_before_unix_ms", "BAD_TIME", "filter.due_before_unix_ms must be after due_from_unix_ms")
	case f.CreatedFrom < 0, f.CreatedBefore < 0:
		return problem.BadField("filter.created_from_unix_ms", "BAD_TIME", "creation times of a filter must not be negative")
	case f.CreatedBefore != 0 && f.CreatedBefore <= f.CreatedFrom:
		return problem.BadField("filter.created_before_unix_ms", "BAD_TIME", "filter.created_before_unix_ms must be after created_from_unix_ms")
	case len(f.Attributes) > l.Attributes:
		return problem.BadField("filter.attributes", "BAD_ATTRIBUTES", "a filter has at most %d attributes", l.Attributes)
	}
	if f.IDPrefix != "" {
		if err := l.CheckID(f.IDPrefix); err != nil {
			err.Field = "filter.id_prefix"
			return err
		}
	}
	for _, a := range f.Attributes {
		if a.Key == "" || len(a.Key) > l.AttributeKey || len(a.Value) > l.AttributeVal || !utf8.ValidString(a.Key) || !utf8.ValidString(a.Value) {
			return problem.BadField("filter.attributes", "BAD_ATTRIBUTES", "an attribute of a filter must be one that a task can have")
		}
	}
	return nil
}

// matches reports whether a task is meant.
func (f *TaskFilter) matches(t *store.Snapshot) bool {
	return (len(f.States) == 0 || slices.Contains(f.States, t.State)) && f.matchesEntry(t.ID, t.Due) &&
		t.Created >= f.CreatedFrom && (f.CreatedBefore == 0 || t.Created < f.CreatedBefore) && f.matchesAttributes(t.Attributes)
}

// matchesEntry is matches as far as the index of pending tasks can tell.
func (f *TaskFilter) matchesEntry(id string, due store.Millis) bool {
	return due >= f.DueFrom && (f.DueBefore == 0 || due < f.DueBefore) && strings.HasPrefix(id, f.IDPrefix)
}

func (f *TaskFilter) matchesAttributes(have []store.Attribute) bool {
	for _, want := range f.Attributes {
		if !slices.ContainsFunc(have, func(a store.Attribute) bool {
			return a.Key == want.Key && (a.Value == want.Value || want.Prefix && strings.HasPrefix(a.Value, want.Value))
		}) {
			return false
		}
	}
	return true
}

// kinds are the lists that may have such tasks.
func (f *TaskFilter) kinds() []store.Kind {
	if len(f.States) == 0 {
		return []store.Kind{store.KindPending, store.KindRunning}
	}
	var kinds []store.Kind
	for kind := store.KindPending; kind <= store.KindDead; kind++ {
		if slices.ContainsFunc(f.States, func(s store.State) bool { return kindOf(s) == kind }) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

func kindOf(s store.State) store.Kind {
	switch {
	case s.Pending():
		return store.KindPending
	case s == store.StateRunning:
		return store.KindRunning
	case s == store.StateDone:
		return store.KindDone
	}
	return store.KindDead
}

// window is where to read pending tasks behind a cursor.
func (f *TaskFilter) window(cursor string) (q store.WindowQuery, ok bool) {
	q = store.WindowQuery{To: store.MaxDue, Limit: findEntries}
	if f.DueBefore != 0 {
		q.To = f.DueBefore - 1
	}
	if cursor == "" {
		if f.DueFrom > 0 {
			q.After = store.Entry{Due: f.DueFrom - 1, ID: "\xff"} // behind every id of the millisecond before
		}
		return q, true
	}
	due, id, found := strings.Cut(cursor, ":")
	ms, err := strconv.ParseInt(due, 10, 64)
	q.After = store.Entry{Due: store.Millis(ms), ID: id}
	return q, found && err == nil
}

package service

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/metrics"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
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
		if err := l.checkID(f.IDPrefix); err != nil {
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

// Finder looks for the tasks of a topic by what they are.
type Finder struct {
	node   *actors.Node
	store  store.Reader
	limits *limits
	look   *lookup
	why    *explainer
	reads  *taskReader
}

// taskReader reads pages of the tasks of a shard, by their due times or their attributes.
type taskReader struct {
	store interface {
		store.Reader
		store.Index
	}
}

// Find pages through the tasks of a topic that a filter matches; states of it that
// are not live bring in done and dead ones. A page may have fewer tasks than size and
// still be followed by more. Like List it says what tasks that are due wait for.
func (s *Finder) Find(ctx context.Context, topic string, f TaskFilter, size int, token string) (tasks []Found, next string, err error) {
	tasks, next, err = s.matching(ctx, topic, f, size, token)
	if err != nil {
		return nil, "", err
	}
	return tasks, next, problem.AsError(s.why.explain(ctx, tasks))
}

// matching is Find for those who count the tasks only.
func (s *Finder) matching(ctx context.Context, topic string, f TaskFilter, size int, token string) (tasks []Found, next string, err error) {
	if err := s.limits.checkFilter(&f); err != nil {
		return nil, "", err
	}
	if len(f.Attributes) > 0 {
		return s.look.walk(ctx, topic, make([]store.Kind, 1), size, token, f.matches, func(ctx context.Context, t *store.Topic, shard store.Shard, _ store.Kind, cursor string, limit int) ([]store.Snapshot, string, error) {
			return s.reads.byAttributes(t, &f, f.kinds()).page(ctx, shard, cursor, limit)
		})
	}
	return s.look.walk(ctx, topic, f.kinds(), size, token, f.matches, func(ctx context.Context, _ *store.Topic, shard store.Shard, kind store.Kind, cursor string, limit int) ([]store.Snapshot, string, error) {
		if kind != store.KindPending {
			return s.store.List(ctx, shard, kind, cursor, limit)
		}
		return s.reads.pendingPage(ctx, shard, &f, cursor, limit)
	})
}

const (
	findEntries = 1000 // of an index, in one read
	findBodies  = 250  // tasks, in one call of the store
)

// read returns tasks by id, the first as far as their bodies fit into an answer. Where a
// store has to sync what others have written before it can answer, the calls for a page
// wait for that together.
func (s *taskReader) read(ctx context.Context, shard store.Shard, ids []string) ([]store.Snapshot, error) {
	chunks := slices.Collect(slices.Chunk(ids, findBodies))
	parts, errs := make([][]store.Snapshot, len(chunks)), make([]error, len(chunks))
	var wg sync.WaitGroup
	for k, chunk := range chunks {
		wg.Go(func() { _, parts[k], errs[k] = s.store.Get(ctx, shard, chunk) })
	}
	wg.Wait()
	found := make([]store.Snapshot, 0, len(ids))
	for k, part := range parts {
		if errs[k] != nil {
			return nil, errs[k]
		}
		found = append(found, part...)
		if len(part) < len(chunks[k]) {
			break
		}
	}
	return found, nil
}

// pendingPage reads a page of pending tasks that may match, at most limit, in order of
// due time: it begins where the filter does, and reads no task that the index says is
// not meant. A cursor is the position of the last entry that was looked at.
func (s *taskReader) pendingPage(ctx context.Context, shard store.Shard, f *TaskFilter, cursor string, limit int) (tasks []store.Snapshot, next string, err error) {
	query, ok := f.window(cursor)
	if !ok {
		return nil, "", store.ErrBadCursor
	}
	if f.IDPrefix == "" {
		query.Limit = max(1, min(limit, findEntries)) // the index says of all others that they may match
	}
	_, entries, err := s.store.Window(ctx, shard, query)
	if err != nil || len(entries) == 0 {
		return nil, "", err
	}
	var ids []string
	var at []int // of ids in entries
	for i, e := range entries {
		if f.matchesEntry(e.ID, e.Due) && len(ids) < min(limit, findEntries) {
			ids, at = append(ids, e.ID), append(at, i)
		}
	}
	last := len(entries) - 1
	if len(ids) == min(limit, findEntries) {
		last = at[len(at)-1]
	}
	var found []store.Snapshot
	if len(ids) > 0 {
		if found, err = s.read(ctx, shard, ids); err != nil {
			return nil, "", err
		}
		if len(found) < len(ids) {
			last = at[len(found)-1]
		}
	}
	if last+1 < len(entries) || len(entries) == query.Limit {
		next = strconv.FormatInt(int64(entries[last].Due), 10) + ":" + entries[last].ID
	}
	return slices.DeleteFunc(found, func(t store.Snapshot) bool { return !t.State.Pending() }), next, nil
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

// Count counts the tasks of a topic by state. Without a filter that is what the store
// keeps count of, which does not tell retrying tasks from scheduled ones.
func (s *Finder) Count(ctx context.Context, topic string, f TaskFilter) (Counts, error) {
	if f.isZero() {
		t, e := s.look.topics(ctx, cmp.Or(topic, "?"))
		if e != nil {
			return Counts{}, e
		}
		depth, err := s.depth(ctx, &t[0])
		return Counts{Depth: depth}, problem.AsError(err)
	}
	var c Counts
	for token := ""; ; {
		page, next, err := s.matching(ctx, topic, f, s.limits.PageSize, token)
		if err != nil {
			return Counts{}, err
		}
		for i := range page {
			c.add(page[i].State)
		}
		if token = next; next == "" {
			return c, nil
		}
	}
}

// Counts are numbers of tasks by state.
type Counts struct {
	metrics.Depth
	Retrying int64 // 0 when they are among the scheduled ones
}

func (c *Counts) add(state store.State) {
	switch state {
	case store.StateScheduled:
		c.Scheduled++
	case store.StateReady:
		c.Ready++
	case store.StateRetrying:
		c.Retrying++
	case store.StateRunning:
		c.Running++
	case store.StateDone:
		c.Done++
	case store.StateDead, store.StateExpired:
		c.Dead++
	}
}

// Histogram are numbers of pending tasks by due time.
type Histogram struct {
	Start  store.Millis
	Counts []int64
	Before int64 // due before Start
	After  int64 // due after the last of Counts
}

// Pending is how many tasks there are in all.
func (h *Histogram) Pending() int64 {
	n := h.Before + h.After
	for _, count := range h.Counts {
		n += count
	}
	return n
}

const (
	maxBuckets     = 1000
	defaultBuckets = 60
)

// DueHistogram counts pending tasks by due time, in buckets of a width in milliseconds
// from start on, which is now when 0. Each shard is counted at one moment.
func (s *Finder) DueHistogram(ctx context.Context, topic string, start store.Millis, width int64, buckets int) (Histogram, error) {
	buckets = cmp.Or(buckets, defaultBuckets)
	start = cmp.Or(start, s.node.Clock().Millis())
	switch {
	case width < 1 || width > int64(store.MaxDue)/maxBuckets:
		return Histogram{}, problem.BadField("bucket_ms", "OUT_OF_RANGE_FIELD", "bucket_ms must be 1 to %d", int64(store.MaxDue)/maxBuckets)
	case buckets < 1 || buckets > maxBuckets:
		return Histogram{}, problem.BadField("buckets", "OUT_OF_RANGE_FIELD", "buckets must be 0 to %d", maxBuckets)
	case start < 0 || start > store.MaxDue:
		return Histogram{}, problem.BadField("start_unix_ms", "BAD_TIME", "start_unix_ms must be 0 to %d", int64(store.MaxDue))
	}
	t, e := s.look.topics(ctx, cmp.Or(topic, "?"))
	if e != nil {
		return Histogram{}, e
	}
	bounds := make([]store.Millis, buckets+1)
	for i := range bounds {
		bounds[i] = start + store.Millis(width)*store.Millis(i)
	}
	h := Histogram{Start: start, Counts: make([]int64, buckets)}
	for _, shard := range place.Shards(&t[0]) {
		_, counts, err := s.store.Histogram(ctx, shard, bounds)
		if err != nil {
			return Histogram{}, problem.AsError(err)
		}
		h.Before += counts[0]
		h.After += counts[buckets+1]
		for i := range h.Counts {
			h.Counts[i] += counts[i+1]
		}
	}
	return h, nil
}

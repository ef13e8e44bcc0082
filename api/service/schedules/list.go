package schedules

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/api/service/listing"
	"github.com/ddq-io/ddq/api/service/pagetoken"
	"github.com/ddq-io/ddq/store"
)

// Filter says which schedules are meant; the zero one means all.
type Filter struct {
	Topic  string // empty: every topic
	Prefix string // of names
	Phase  schedule.Phase
	Labels []store.Attribute // schedules that have all of them

	// SkippedSince is 0 for any, see schedule.Schedule.
	SkippedSince store.Millis
}

func (f *Filter) matches(s *schedule.Schedule) bool {
	if f.Phase != 0 && s.Phase != f.Phase || !strings.HasPrefix(s.Name, f.Prefix) {
		return false
	}
	if f.SkippedSince != 0 && !s.SkippedSince(f.SkippedSince) {
		return false
	}
	for _, l := range f.Labels {
		if !slices.Contains(s.Labels, l) {
			return false
		}
	}
	return true
}

// listReads is how many pages of a shard one call reads at most.
const listReads = 50

const schedulesPage = "schedules:"

// position is a place in the list of all schedules: behind a name in a shard.
type position = listing.Position[string]

func tokenOf(p position) string {
	return pagetoken.Make(schedulesPage, store.FlatName(p.Topic)+"/"+strconv.Itoa(p.Shard)+"/"+p.After)
}

func positionOf(token string) (p position, ok bool) {
	text, ok := pagetoken.Position(schedulesPage, token)
	if !ok || token == "" {
		return p, ok
	}
	parts := strings.SplitN(text, "/", 3)
	if len(parts) != 3 {
		return p, false
	}
	n, err := strconv.Atoi(parts[1])
	return position{Topic: store.UnflatName(parts[0]), Shard: n, After: parts[2]}, err == nil && n >= 0
}

// List pages through schedules: topic by topic, shard by shard, by name. A page may have fewer
// than size, and still be followed by more.
func (s *Schedules) List(ctx context.Context, f Filter, size int, token string) (all []Status, next string, err error) {
	if err := s.ready(); err != nil {
		return nil, "", err
	}
	if size < 0 {
		return nil, "", problem.BadField("page_size", "OUT_OF_RANGE_FIELD", "page_size must not be negative")
	}
	at, ok := positionOf(token)
	if !ok {
		return nil, "", problem.AsError(store.ErrBadCursor)
	}
	if f.Topic != "" {
		if err := actors.CheckTopicName("topic", f.Topic); err != nil {
			return nil, "", err
		}
	}
	topics, e := s.topics(ctx, f.Topic)
	if e != nil {
		return nil, "", e
	}
	l := lister{s: s, filter: &f, size: min(cmp.Or(size, 100), s.limits.PageSize), reads: listReads}
	if at, e = listing.Fill(ctx, &l, topics, at); e != nil {
		return nil, "", e
	}
	if l.Full() {
		return l.found, tokenOf(at), nil
	}
	return l.found, "", nil
}

// lister fills one page.
type lister struct {
	s      *Schedules
	filter *Filter
	size   int
	reads  int // that are left
	bytes  int // of what was found
	found  []Status
}

// listBytes is how large a page may become, but for its last schedule: clients refuse
// messages over 4 MiB, and what a schedule remembers is larger there.
const listBytes = 2 << 20

// Full reports whether the page has no room for more, or enough was read for one call.
func (l *lister) Full() bool {
	return len(l.found) >= l.size || l.reads <= 0 || l.bytes >= listBytes
}

// Read reads a page of a shard behind a name, and reports whether there may be more.
func (l *lister) Read(ctx context.Context, t *store.Topic, shard store.Shard, after string) (last string, more bool, err *problem.Error) {
	l.reads--
	if p := l.filter.Prefix; p != "" {
		after = max(after, p[:len(p)-1]) // names of the prefix come behind
	}
	position := schedule.Listed(after)
	limit := l.size - len(l.found)
	cells, failed := l.s.cells.Listed(ctx, shard, schedule.List, position, limit)
	if failed != nil {
		return after, false, problem.FromStore(failed)
	}
	for _, cell := range cells {
		after = cell.ID.Key()
		if p := l.filter.Prefix; after > p && !strings.HasPrefix(after, p) {
			return after, false, nil
		}
		at, failed := locatedIn(t, shard, cell)
		if failed != nil {
			l.s.node.Log().Warn("schedule not listed", "topic", t.Name, "shard", shard.N, "err", failed)
			continue
		}
		if l.filter.matches(at.Schedule) {
			l.found, l.bytes = append(l.found, l.s.status(ctx, at)), l.bytes+len(cell.Body)
		}
		if l.bytes >= listBytes {
			return after, true, nil
		}
	}
	return after, len(cells) > 0, nil
}

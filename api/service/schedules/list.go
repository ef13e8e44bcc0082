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
	"github.com/ddq-io/ddq/api/service/pagetoken"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// Filter says which schedules are meant; the zero one means all.
type Filter struct {
	Topic  string // empty: every topic
	Prefix string // of names
	Phase  schedule.Phase
	Labels []store.Attribute // schedules that have all of them
}

func (f *Filter) matches(s *schedule.Schedule) bool {
	if f.Phase != 0 && s.Phase != f.Phase || !strings.HasPrefix(s.Name, f.Prefix) {
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
type position struct {
	topic string
	shard int
	name  string
}

func (p position) token() string {
	return pagetoken.Make(schedulesPage, p.topic+"/"+strconv.Itoa(p.shard)+"/"+p.name)
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
	return position{parts[0], n, parts[2]}, err == nil && n >= 0
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
	for i := range topics {
		if topics[i].Name < at.topic {
			continue
		}
		if topics[i].Name != at.topic {
			at = position{topic: topics[i].Name}
		}
		if at, e = l.topic(ctx, &topics[i], at); e != nil {
			return nil, "", e
		}
		if l.full() {
			return l.found, at.token(), nil
		}
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

func (l *lister) full() bool {
	return len(l.found) >= l.size || l.reads <= 0 || l.bytes >= listBytes
}

// topic goes on in a topic, and returns where it stopped.
func (l *lister) topic(ctx context.Context, t *store.Topic, at position) (position, *problem.Error) {
	for _, shard := range place.Shards(t) {
		if shard.N < at.shard {
			continue
		}
		if shard.N != at.shard {
			at = position{topic: t.Name, shard: shard.N}
		}
		for more := true; more; {
			if l.full() {
				return at, nil
			}
			var err *problem.Error
			if at.name, more, err = l.read(ctx, t, shard, at.name); err != nil {
				return at, err
			}
		}
	}
	return at, nil
}

// read reads a page of a shard behind a name, and reports whether there may be more.
func (l *lister) read(ctx context.Context, t *store.Topic, shard store.Shard, after string) (last string, more bool, err *problem.Error) {
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

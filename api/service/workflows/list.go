package workflows

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/workflow"
	"github.com/ddq-io/ddq/actors/workflow/access"
	"github.com/ddq-io/ddq/api/service/listing"
	"github.com/ddq-io/ddq/api/service/pagetoken"
	"github.com/ddq-io/ddq/store"
)

// Filter says which workflows are meant; the zero one means all.
type Filter struct {
	Topic  string // empty: every topic
	State  workflow.State
	Name   string
	Labels []store.Attribute // workflows that have all of them
}

// of is the part of the filter that one shard is read by.
func (f *Filter) of(t *store.Topic) access.Filter {
	of := access.Filter{State: f.State, Name: f.Name, Retention: t.Workflows.Retention}
	if len(f.Labels) > 0 {
		of.Label = f.Labels[0]
	}
	return of
}

func (f *Filter) matches(s *workflow.Status) bool {
	for _, l := range f.Labels {
		if !slices.Contains(s.Labels, l) {
			return false
		}
	}
	return true
}

// lists are those of a shard that may have what is meant, in the order in which they are read.
func (f *Filter) lists() []string {
	if f.State == 0 {
		return workflow.Lists()
	}
	return []string{workflow.ListOf(f.State)}
}

const (
	listReads     = 50 // pages that one call reads at most
	workflowsPage = "workflows:"
)

// position is a place in the list of all workflows.
type position = listing.Position[listed]

// listed is a place in a shard: behind a workflow of one of its lists.
type listed struct {
	list int // in the order of lists
	wake store.Wake
}

func tokenOf(p position) string {
	return pagetoken.Make(workflowsPage, strings.Join([]string{
		store.FlatName(p.Topic), strconv.Itoa(p.Shard), strconv.Itoa(p.After.list), strconv.FormatInt(int64(p.After.wake.At), 10), string(p.After.wake.ID),
	}, "/"))
}

func positionOf(token string) (p position, ok bool) {
	text, ok := pagetoken.Position(workflowsPage, token)
	if !ok || token == "" {
		return p, ok
	}
	parts := strings.SplitN(text, "/", 5)
	if len(parts) != 5 {
		return p, false
	}
	var numbers [3]int64
	for i := range numbers {
		n, err := strconv.ParseInt(parts[i+1], 10, 64)
		if err != nil {
			return p, false
		}
		numbers[i] = n
	}
	after := listed{int(numbers[1]), store.Wake{At: store.Millis(numbers[2]), ID: store.CellID(parts[4])}}
	return position{Topic: store.UnflatName(parts[0]), Shard: int(numbers[0]), After: after}, numbers[0] >= 0 && numbers[1] >= 0
}

// List pages through workflows: topic by topic, shard by shard, the newest first. A page may have
// fewer than size, and still be followed by more.
func (s *Workflows) List(ctx context.Context, f Filter, size int, token string) (all []workflow.Status, next string, err error) {
	if err := s.ready(); err != nil {
		return nil, "", err
	}
	if size < 0 {
		return nil, "", problem.BadField("page_size", "OUT_OF_RANGE_FIELD", "page_size must not be negative")
	}
	at, ok := positionOf(token)
	if !ok {
		return nil, "", problem.FromStore(store.ErrBadCursor)
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
	s      *Workflows
	filter *Filter
	size   int
	reads  int // that are left
	found  []workflow.Status
}

// Full reports whether the page has no room for more, or enough was read for one call.
func (l *lister) Full() bool { return len(l.found) >= l.size || l.reads <= 0 }

// Read reads a page of a list, and reports whether there may be more, there or in a later list.
func (l *lister) Read(ctx context.Context, t *store.Topic, shard store.Shard, after listed) (next listed, more bool, err *problem.Error) {
	lists := l.filter.lists()
	if after.list >= len(lists) {
		return after, false, nil
	}
	l.reads--
	found, wake, failed := l.s.kept.List(ctx, shard, lists[after.list], l.filter.of(t), after.wake, l.size-len(l.found))
	if failed != nil {
		return after, false, errorOf(failed)
	}
	for i := range found {
		if l.filter.matches(&found[i]) {
			l.found = append(l.found, found[i])
		}
	}
	if after.wake = wake; wake == (store.Wake{}) {
		after.list++
	}
	return after, after.list < len(lists), nil
}

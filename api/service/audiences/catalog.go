package audiences

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/audience"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/service/pagetoken"
	"github.com/ddq-io/ddq/api/service/scope"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
	"github.com/ddq-io/ddq/timer/timetable"
)

// Spec is what the author of an audience decides.
type Spec struct {
	Name         string
	Shards       int    // a power of two up to audience.MaxShards; 0 means 64
	FallbackZone string // of recipients who have none; empty: UTC
	Kinds        []audience.NamedKind
}

const (
	defaultShards = 64
	createTries   = 10 // when others create and delete one of the name
)

// Create creates an audience. The same again changes nothing.
func (s *Audiences) Create(ctx context.Context, spec Spec, now store.Millis) (*audience.Audience, error) {
	if err := s.ready(); err != nil {
		return nil, err
	}
	if err := s.check(&spec); err != nil {
		return nil, err
	}
	for range createTries {
		there, err := s.Record(ctx, spec.Name)
		if err != nil {
			return nil, problem.AsError(err)
		}
		if !there.Gone {
			return there, spec.agrees(there)
		}
		a := &audience.Audience{
			Name: spec.Name, Version: there.Version, Life: rand.Uint64() | 1, Shards: spec.Shards,
			FallbackZone: spec.FallbackZone, Kinds: spec.Kinds, Created: now,
		}
		made, err := s.Commit(ctx, audience.Catalog(), a.Commit())
		if made || err != nil {
			return a, problem.AsError(err)
		}
	}
	return nil, contended()
}

// check fills in what is not said, and returns what is wrong.
func (s *Audiences) check(spec *Spec) error {
	if err := checkName("name", spec.Name); err != nil {
		return err
	}
	spec.Shards = cmp.Or(spec.Shards, defaultShards)
	if n := spec.Shards; n < 1 || n > audience.MaxShards || n&(n-1) != 0 {
		return problem.BadField("shards", "OUT_OF_RANGE_FIELD", "shards must be a power of two, 1 to %d", audience.MaxShards)
	}
	spec.FallbackZone = cmp.Or(spec.FallbackZone, "UTC")
	if timetable.CheckZone(spec.FallbackZone) != nil {
		return problem.BadField("fallback_zone", "BAD_ZONE", "fallback_zone %s", zoneHint(spec.FallbackZone))
	}
	if len(spec.Kinds) > audience.MaxKinds {
		return problem.BadField("kinds", "OUT_OF_RANGE_FIELD", "%d kinds; at most %d are possible", len(spec.Kinds), audience.MaxKinds)
	}
	for i, k := range spec.Kinds {
		if err := actors.CheckName("kinds", k.Name); err != nil {
			return err
		}
		if slices.ContainsFunc(spec.Kinds[:i], func(other audience.NamedKind) bool { return other.Name == k.Name }) {
			return problem.BadField("kinds", "BAD_NAME", "kind %q is there twice", k.Name)
		}
	}
	return nil
}

// checkName returns what is wrong with a name; nil when nothing is.
func checkName(field, name string) error {
	if err := actors.CheckTopicName(field, name); err != nil {
		return err
	}
	return nil
}

func (spec *Spec) agrees(a *audience.Audience) error {
	if a.Ended || a.Shards != spec.Shards || a.FallbackZone != spec.FallbackZone || !slices.Equal(a.Kinds, spec.Kinds) {
		return audienceExists(spec.Name)
	}
	return nil
}

// CheckTarget returns what is wrong with an audience, and a kind of it, that a schedule names. One that may
// be about to be deleted stays.
func (s *Audiences) CheckTarget(ctx context.Context, name, kind string) error {
	if err := checkName("audience.name", name); err != nil {
		return err
	}
	if err := s.ready(); err != nil {
		return err
	}
	a, err := s.Stay(ctx, name)
	if err != nil {
		return inAudience(asProblem(name, err))
	}
	if _, there := a.Kind(kind); kind != "" && !there {
		return noKind("audience.kind", kind)
	}
	return nil
}

// inAudience names the field of an error as that of the target of a schedule.
func inAudience(err error) error {
	e := *problem.FromStore(err)
	if e.Field == "name" {
		e.Field = "audience.name"
	}
	return &e
}

// Status is an audience and what is in it.
type Status struct {
	audience.Audience
	Recipients int64
	Zones      map[string]int64
	Runs       []string // that have not ended
	open       []audience.Run
}

// Describe returns an audience and what is in it.
func (s *Audiences) Describe(ctx context.Context, name string) (Status, error) {
	a, err := s.find(ctx, name)
	if err != nil {
		return Status{}, err
	}
	return s.status(ctx, a)
}

func (s *Audiences) status(ctx context.Context, a *audience.Audience) (Status, error) {
	var mu sync.Mutex
	out := Status{Audience: *a, Zones: make(map[string]int64)}
	runs := make(map[string]audience.Run)
	err := each(ctx, all(a), func(ctx context.Context, n int) error {
		d, err := s.Directory(ctx, a, n)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		for _, z := range d.Zones {
			if z.Recipients > 0 {
				out.Zones[z.Name] += z.Recipients
				out.Recipients += z.Recipients
			}
		}
		for _, r := range d.Runs {
			runs[r.ID] = r
		}
		return nil
	})
	out.open = slices.SortedFunc(maps.Values(runs), func(a, b audience.Run) int { return strings.Compare(a.ID, b.ID) })
	for _, r := range out.open {
		out.Runs = append(out.Runs, r.ID)
	}
	return out, err
}

const audiencesPage = "audiences:"

// ListAudiences pages through the audiences of the namespace of the call, by name. A page may have fewer than
// size, and still be followed by more.
func (s *Audiences) ListAudiences(ctx context.Context, size int, token string) (page []audience.Audience, next string, err error) {
	if err := s.ready(); err != nil {
		return nil, "", err
	}
	if size < 0 {
		return nil, "", problem.BadField("page_size", "OUT_OF_RANGE_FIELD", "page_size must not be negative")
	}
	after, ok := pagetoken.Position(audiencesPage, token)
	if !ok {
		return nil, "", problem.AsError(store.ErrBadCursor)
	}
	size = min(cmp.Or(size, 100), s.limits.PageSize)
	after = max(after, prefixOf(ctx))
	for range emptyPages {
		all, more, err := s.listed(ctx, after, size)
		if err != nil {
			return nil, "", err
		}
		for i := range all {
			if after = all[i].Name; scope.Has(ctx, after) && !all[i].Ended {
				page = append(page, all[i])
			}
		}
		if !more || !strings.HasPrefix(after, prefixOf(ctx)) {
			return page, "", nil
		}
		if len(page) > 0 {
			break
		}
	}
	return page, pagetoken.Make(audiencesPage, after), nil
}

// emptyPages is how many pages without an audience of the namespace one call reads at most.
const emptyPages = 20

// prefixOf is how the names of all audiences of the namespace of a call begin.
func prefixOf(ctx context.Context) string { return store.FullName(scope.Of(ctx), "") }

// listed reads a page of the audiences of all namespaces, and whether there are more.
func (s *Audiences) listed(ctx context.Context, after string, size int) (page []audience.Audience, more bool, err error) {
	cells, err := s.store.Listed(ctx, audience.Catalog(), audience.CatalogList, store.Wake{ID: audience.RecordID(after)}, size)
	if err != nil {
		return nil, false, problem.AsError(err)
	}
	for _, c := range cells {
		a, err := audience.DecodeAudience(c)
		if err != nil {
			return nil, false, problem.AsError(err)
		}
		page = append(page, *a)
	}
	return page, len(cells) == size, nil
}

// Delete deletes an audience and its recipients, unless a schedule has it or a run of it has not ended. One
// that was not brought to its end is continued.
func (s *Audiences) Delete(ctx context.Context, name string, now store.Millis) error {
	if err := s.ready(); err != nil {
		return err
	}
	if err := checkName("name", name); err != nil {
		return err
	}
	a, err := s.Record(ctx, name)
	switch {
	case err != nil:
		return problem.AsError(err)
	case a.Gone:
		return noAudience(name)
	}
	if a, err = s.end(ctx, a, now); err != nil {
		return err
	}
	err = each(ctx, all(a), func(ctx context.Context, n int) error { return s.store.DropShard(ctx, a.Shard(n)) })
	if err != nil {
		return err
	}
	a.Gone = true
	_, err = s.Commit(ctx, audience.Catalog(), a.Commit()) // if not, somebody else has deleted it
	return problem.AsError(err)
}

// end notes that an audience is being deleted: from then on nothing is put into it. Nobody has it then, and
// nobody is about to:
//
//   - It is marked first, then it is looked for who has it, and it ends only as it was marked.
//   - A schedule is claimed first, then the mark is taken away, and it is put only while its claim is there.
//     The look takes claims away, see schedules.Users.
//   - A run is noted in the audience first, and then the mark is taken away.
//
// So one that is not found by the look comes behind it, finds the mark and takes it away, or finds that the
// audience has ended. A mark that a crash leaves behind is taken away by the next one, and does no other harm.
func (s *Audiences) end(ctx context.Context, a *audience.Audience, now store.Millis) (*audience.Audience, error) {
	if a.Ended {
		return a, nil
	}
	if err := s.unused(ctx, a, now); err != nil { // without a mark
		return nil, err
	}
	for range deleteTries {
		version, err := s.Leave(ctx, a.Name)
		if err != nil {
			return nil, asProblem(a.Name, err)
		}
		if err := s.unused(ctx, a, now); err != nil {
			_, _ = s.Stay(ctx, a.Name) // a mark that is left behind does no harm
			return nil, err
		}
		ended, err := s.End(ctx, a.Name, version)
		if err != nil {
			return nil, asProblem(a.Name, err)
		}
		if ended {
			a, err := s.Record(ctx, a.Name)
			return a, problem.AsError(err)
		}
	}
	return nil, contended()
}

// deleteTries is how often others may change an audience while it is looked for who has it.
const deleteTries = 10

// unused refuses an audience that has open runs or a schedule.
func (s *Audiences) unused(ctx context.Context, a *audience.Audience, now store.Millis) error {
	open, err := s.forgetLost(ctx, a, now)
	if err != nil {
		return err
	}
	if open > 0 {
		return audienceInUse(a.Name, fmt.Sprintf("%d open runs", open))
	}
	switch by, err := s.outside.Used(ctx, a.Name); {
	case err != nil:
		return problem.AsError(err)
	case by != "":
		return audienceInUse(a.Name, "schedule "+by)
	}
	return s.noneBegins(ctx, a)
}

// noneBegins refuses an audience with a run that has not begun: the audience has not noted it, and its schedule may have
// gone. No schedule has the audience, so no other run is made.
func (s *Audiences) noneBegins(ctx context.Context, a *audience.Audience) error {
	topics, err := s.outside.Topics(ctx)
	for i := 0; i < len(topics) && err == nil; i++ {
		var runs []OpenRun
		runs, err = s.In(ctx, place.Shards(&topics[i]))
		if slices.ContainsFunc(runs, func(r OpenRun) bool { return r.Audience == a.Name }) {
			return audienceInUse(a.Name, "a run that has not begun")
		}
	}
	return problem.AsError(err)
}

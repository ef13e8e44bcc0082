package service_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/upkeep"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

func indexedBy(names ...string) service.TopicChange { return service.TopicChange{Indexed: &names} }

// ofTenant is a task due in an hour.
func ofTenant(topic, id, tenant string) service.NewTask {
	t := servicetest.After(topic, id, time.Hour)
	t.Task.MaxRetries = -1
	t.Task.Attributes = []store.Attribute{{Key: "tenant", Value: tenant}, {Key: "path", Value: "/" + id}}
	return t
}

func enqueueTenants(t *testing.T, s *service.Service, topic, prefix string, n int) {
	t.Helper()
	batch := make([]service.NewTask, n)
	for i := range batch {
		batch[i] = ofTenant(topic, fmt.Sprintf("%s-%03d", prefix, i), []string{"acme", "tiny"}[i%2])
	}
	out, err := s.Tasks.Enqueue(t.Context(), batch)
	if err != nil {
		t.Fatal(err)
	}
	for i := range out {
		if out[i].Err != nil {
			t.Fatal(out[i].Err)
		}
	}
}

var Acme = service.TaskFilter{Attributes: []service.AttributeMatch{{Key: "tenant", Value: "acme"}}}

// findAll pages through what a filter matches; between is called once, after the first
// page.
func findAll(t *testing.T, s *service.Service, f service.TaskFilter, size int, between func()) (ids []string) {
	t.Helper()
	for token := ""; ; {
		page, next, err := s.Finder.Find(t.Context(), "mail", f, size, token)
		if err != nil {
			t.Fatal(err)
		}
		for i := range page {
			ids = append(ids, page[i].ID)
		}
		if token = next; token == "" {
			slices.Sort(ids)
			return ids
		}
		if between != nil {
			between()
			between = nil
		}
	}
}

func InSteps(prefix string, from, to, step int) (ids []string) {
	for i := from; i < to; i += step {
		ids = append(ids, fmt.Sprintf("%s-%03d", prefix, i))
	}
	return ids
}

func wantIDs(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: found %d tasks %.200q, want %d", what, len(got), got, len(want))
	}
}

// byIndex counts the shards whose tasks of acme are found by the index, and those that are
// walked.
func byIndex(t *testing.T, s *service.Service) (indexed, walked int) {
	t.Helper()
	topic := topicConfig(t, s, "mail")
	for _, shard := range place.Shards(topic) {
		err := s.Finder.IndexPage(t, topic, &Acme, shard)
		switch {
		case errors.Is(err, store.ErrNotIndexed):
			walked++
		case err != nil:
			t.Fatal(err)
		default:
			indexed++
		}
	}
	return indexed, walked
}

// TestIndexIsUsedFromTheFirstTask of a topic that was created with it.
func TestIndexIsUsedFromTheFirstTask(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		if _, err := s.Topics.Create(t.Context(), "mail", indexedBy("tenant")); err != nil {
			t.Fatal(err)
		}
		enqueueTenants(t, s, "mail", "t", 100)
		if indexed, walked := byIndex(t, s); indexed != 4 || walked != 0 {
			t.Errorf("%d shards are read by the index, and %d walked", indexed, walked)
		}
		wantIDs(t, "of acme", findAll(t, s, Acme, 7, nil), InSteps("t", 0, 100, 2))
		both := Acme
		both.Attributes = append(slices.Clone(both.Attributes), service.AttributeMatch{Key: "path", Value: "/t-01", Prefix: true})
		wantIDs(t, "by two attributes", findAll(t, s, both, 3, nil), InSteps("t", 10, 20, 2))
		ready := Acme
		ready.States = []store.State{store.StateReady}
		wantIDs(t, "that are ready", findAll(t, s, ready, 7, nil), nil)
		within := Acme
		within.IDPrefix = "t-05"
		wantIDs(t, "by id as well", findAll(t, s, within, 7, nil), InSteps("t", 50, 60, 2))
		counts, err := s.Finder.Count(t.Context(), "mail", Acme)
		if err != nil || counts.Scheduled != 50 {
			t.Errorf("counted %+v, %v", counts, err)
		}
	})
}

// TestFewTasksOfADueRangeAreRead instead of all that have an attribute.
func TestFewTasksOfADueRangeAreRead(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		change := indexedBy("tenant")
		change.Shards = new(1)
		topic, err := s.Topics.Create(t.Context(), "mail", change)
		if err != nil {
			t.Fatal(err)
		}
		enqueueTenants(t, s, "mail", "t", 1000)
		soon := ofTenant("mail", "soon", "acme")
		soon.When.Delay = time.Minute
		servicetest.EnqueueOne(t, s, soon)
		for _, c := range []struct {
			before time.Duration
			walks  bool
			found  int
		}{{2 * time.Minute, true, 1}, {2 * time.Hour, false, 501}} {
			f := Acme
			f.DueBefore = store.Millis(time.Now().Add(c.before).UnixMilli())
			if walks, err := s.Finder.Narrow(t.Context(), &topic, &f, store.Shard{Topic: "mail"}); err != nil || walks != c.walks {
				t.Errorf("within %v it walks: %v, %v", c.before, walks, err)
			}
			if got := findAll(t, s, f, 100, nil); len(got) != c.found {
				t.Errorf("within %v found %d tasks, want %d", c.before, len(got), c.found)
			}
		}
	})
}

// TestIndexIsBuiltForTasksOfBefore while nothing is missed meanwhile.
func TestIndexIsBuiltForTasksOfBefore(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		enqueueTenants(t, s, "mail", "old", 1000)
		if _, err := s.Topics.Configure(t.Context(), "mail", indexedBy("tenant", "path")); err != nil {
			t.Fatal(err)
		}
		wantIDs(t, "at once", findAll(t, s, Acme, 100, nil), InSteps("old", 0, 1000, 2))
		synctest.Wait()
		if status, err := s.Topics.Describe(t.Context(), "mail"); err != nil || status.Indexing != 0 {
			t.Errorf("%d shards are left, %v", status.Indexing, err)
		}
		if indexed, walked := byIndex(t, s); indexed != 4 || walked != 0 {
			t.Errorf("%d shards are read by the index, and %d walked", indexed, walked)
		}
		enqueueTenants(t, s, "mail", "new", 10)
		wantIDs(t, "in the end", findAll(t, s, Acme, 100, nil), append(InSteps("new", 0, 10, 2), InSteps("old", 0, 1000, 2)...))
	})
}

// TestPagesGoOnWhenTheIndexComesOrGoes: each task is found once.
func TestPagesGoOnWhenTheIndexComesOrGoes(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		enqueueTenants(t, s, "mail", "t", 300)
		change := func(names ...string) func() {
			return func() {
				if _, err := s.Topics.Configure(t.Context(), "mail", indexedBy(names...)); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
			}
		}
		want := InSteps("t", 0, 300, 2)
		wantIDs(t, "while the index comes", findAll(t, s, Acme, 7, change("tenant")), want)
		wantIDs(t, "while another comes", findAll(t, s, Acme, 7, change("tenant", "path")), want)
		wantIDs(t, "while it goes", findAll(t, s, Acme, 7, change("path")), want)
		if indexed, walked := byIndex(t, s); indexed != 0 || walked != 4 {
			t.Errorf("%d shards are read by the index, and %d walked", indexed, walked)
		}
	})
}

// TestNodesThatHaveNotHeardOfTheIndex take tasks in, which are found all the same.
func TestNodesThatHaveNotHeardOfTheIndex(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		a, b := f.Nodes["a"].Sys, f.Nodes["b"].Sys
		enqueueTenants(t, b, "mail", "before", 100)
		if _, err := a.Topics.Configure(t.Context(), "mail", indexedBy("tenant")); err != nil {
			t.Fatal(err)
		}
		enqueueTenants(t, b, "mail", "silent", 100)
		synctest.Wait()
		want := append(InSteps("before", 0, 100, 2), InSteps("silent", 0, 100, 2)...)
		for _, s := range []*service.Service{a, b} {
			wantIDs(t, "at once", findAll(t, s, Acme, 30, nil), want)
		}
		time.Sleep(2*upkeep.ChoresEvery + time.Second)
		for _, s := range []*service.Service{a, b} {
			if indexed, walked := byIndex(t, s); indexed != 12 || walked != 0 {
				t.Errorf("%d shards are read by the index, and %d walked", indexed, walked)
			}
			wantIDs(t, "by the index", findAll(t, s, Acme, 30, nil), want)
		}
	})
}

// TestFormerShardsAreIndexed: they have tasks, and take no new ones.
func TestFormerShardsAreIndexed(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		enqueueTenants(t, s, "mail", "former", 100)
		if _, err := s.Topics.Reshard(t.Context(), "mail", 2); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Topics.Configure(t.Context(), "mail", indexedBy("tenant")); err != nil {
			t.Fatal(err)
		}
		enqueueTenants(t, s, "mail", "new", 100)
		synctest.Wait()
		if indexed, walked := byIndex(t, s); indexed != 6 || walked != 0 {
			t.Errorf("%d shards are read by the index, and %d walked", indexed, walked)
		}
		wantIDs(t, "of all shards", findAll(t, s, Acme, 30, nil), append(InSteps("former", 0, 100, 2), InSteps("new", 0, 100, 2)...))
	})
}

// TestManyAreDeletedByIndex: what is changed by filter is found by the index, too, and an
// edit moves a task in it. Those of hibiken/asynqmon#294 look for 12 among 700,000.
func TestManyAreDeletedByIndex(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		if _, err := s.Topics.Create(t.Context(), "mail", indexedBy("tenant")); err != nil {
			t.Fatal(err)
		}
		enqueueTenants(t, s, "mail", "t", 100)
		edit := service.TaskChange{Fields: service.FieldAttributes, Task: store.Task{Attributes: []store.Attribute{{Key: "tenant", Value: "other"}}}}
		if _, err := s.Tasks.Update(t.Context(), "mail", "t-000", edit, 0); err != nil {
			t.Fatal(err)
		}
		var last service.Progress
		err := s.Bulk.Delete(t.Context(), service.Bulk{Topic: "mail", Filter: Acme}, func(p service.Progress) error { last = p; return nil })
		if err != nil || last.Matched != 49 || last.Changed != 49 || !last.Done {
			t.Errorf("deleted %+v, %v", last, err)
		}
		wantIDs(t, "what is left", findAll(t, s, service.TaskFilter{}, 30, nil), append([]string{"t-000"}, InSteps("t", 1, 100, 2)...))
		wantIDs(t, "of acme", findAll(t, s, Acme, 30, nil), nil)
	})
}

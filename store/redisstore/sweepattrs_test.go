package redisstore_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/redisstore"
	"github.com/ddq-io/ddq/store/redisstore/redistest"
)

// TestSweepRepairsAttributes takes away what tells by which attributes tasks are found,
// and looks whether they are found again.
func TestSweepRepairsAttributes(t *testing.T) {
	server := redistest.Start(t)
	const attrs, index = "ddq:{mail:0}:attrs", "ddq:{mail:0}:index"
	entry := func(name, value, id string) string {
		return string(rune(len(name))) + name + value + "\x00\x00" + redisstore.Stored(id)
	}
	both := store.NewIndexSet("path", "tenant")
	for name, c := range map[string]struct {
		damage   [][]any
		set      store.IndexSet
		repaired int
	}{
		"nothing":                     {nil, both, 0},
		"attributes of a pending one": {[][]any{{"HDEL", attrs, redisstore.Stored("1")}}, both, 1},
		"attributes of a held one":    {[][]any{{"HDEL", attrs, redisstore.Stored("held")}}, both, 1},
		"attributes of a done one":    {[][]any{{"HDEL", attrs, redisstore.Stored("done")}}, both, 1},
		"all attributes":              {[][]any{{"DEL", attrs}}, both, 6},
		"entries":                     {[][]any{{"ZREM", index, entry("path", "/2", "2"), entry("tenant", "acme", "3")}}, both, 2},
		"all entries":                 {[][]any{{"DEL", index}}, both, 6},
		"everything":                  {[][]any{{"DEL", attrs, index}}, both, 6},
		"one of two is indexed":       {[][]any{{"DEL", attrs, index}}, store.NewIndexSet("tenant"), 6},
		"none is indexed":             {[][]any{{"DEL", attrs, index}}, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			server.Do(t, "FLUSHALL")
			s := claim(t, open(t, server.URL()))
			s.fillAttributes(t, c.set)
			want := s.lookUpAll(t, c.set)
			for _, d := range c.damage {
				server.Do(t, d...)
			}
			if repaired := sweepWhole(t, s); repaired != c.repaired {
				t.Errorf("%d repaired, want %d", repaired, c.repaired)
			}
			if got := s.lookUpAll(t, c.set); !slices.Equal(got, want) {
				t.Errorf("found %v, want %v", got, want)
			}
			if repaired := sweepWhole(t, s); repaired != 0 {
				t.Errorf("%d repaired in the second walk", repaired)
			}
		})
	}
}

// TestSweepHeedsAReindex: tasks that a walk for another set has seen get what that set
// says, and the rest comes with the walk.
func TestSweepHeedsAReindex(t *testing.T) {
	server := redistest.Start(t)
	s := claim(t, open(t, server.URL()))
	ctx := t.Context()
	s.fillAttributes(t, store.NewIndexSet("tenant"))
	both := store.NewIndexSet("path", "tenant")
	cursor, err := s.Reindex(ctx, s.shard, both, "", 1)
	if err != nil {
		t.Fatal(err)
	}
	server.Do(t, "DEL", "ddq:{mail:0}:attrs", "ddq:{mail:0}:index")
	if repaired := sweepWhole(t, s); repaired != 6 {
		t.Errorf("%d repaired, want 6", repaired)
	}
	for cursor != "" {
		if cursor, err = s.Reindex(ctx, s.shard, both, cursor, 1); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.lookUpAll(t, both); len(got) != 12 {
		t.Errorf("found %v", got)
	}
}

// fillAttributes adds six tasks with two attributes, one of them held and one done, and
// one without any.
func (s shardOf) fillAttributes(t *testing.T, set store.IndexSet) {
	t.Helper()
	tasks := []*store.Task{{ID: "plain", Due: 1, MaxRetries: -1, Indexed: set}}
	for _, id := range []string{"held", "done", "1", "2", "3", "4"} {
		tasks = append(tasks, &store.Task{ID: id, Due: 1, MaxRetries: -1, Fingerprint: 1 << 60, Indexed: set,
			Attributes: []store.Attribute{{Key: "tenant", Value: "acme"}, {Key: "path", Value: "/" + id}, {Key: "other", Value: "x"}}})
	}
	if _, _, err := s.Add(t.Context(), s.shard, tasks); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"held", "done"} {
		h := store.Hold{ID: id, Token: store.NewToken(), Visibility: time.Hour}
		if _, results, err := s.Hold(t.Context(), s.shard, s.fence, []store.Hold{h}); err != nil || results[0].Status != store.OK {
			t.Fatalf("hold of %s: %+v, %v", id, results, err)
		}
		if id == "done" {
			if _, _, err := s.Ack(t.Context(), s.shard, []store.Ack{{ID: id, Token: h.Token}}, time.Hour); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// lookUpAll returns every entry of some attributes.
func (s shardOf) lookUpAll(t *testing.T, set store.IndexSet) (all []string) {
	t.Helper()
	for _, name := range set.Names() {
		entries, err := s.Lookup(t.Context(), s.shard, store.IndexQuery{Name: name, Prefix: true, Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			all = append(all, fmt.Sprint(name, "=", e.Value, " ", e.ID))
		}
	}
	return all
}

// TestLookupGoesOnBehindWhatIsNoEntry as a whole page of it is not the end of the index.
func TestLookupGoesOnBehindWhatIsNoEntry(t *testing.T) {
	server := redistest.Start(t)
	s := claim(t, open(t, server.URL()))
	s.fillAttributes(t, store.NewIndexSet("tenant"))
	server.Do(t, "ZADD", "ddq:{mail:0}:index", 0, "\x06tenant", 0, "\x06tenanta", 0, "\x06tenantab")
	entries, err := s.Lookup(t.Context(), s.shard, store.IndexQuery{Name: "tenant", Prefix: true, Limit: 2})
	if err != nil || len(entries) != 2 {
		t.Errorf("of six entries the first two are %v, %v", entries, err)
	}
}

package redisstore_test

import (
	"slices"
	"testing"
	"time"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/redisstore"
	"github.com/ddq-io/ddq/store/redisstore/redistest"
)

// orderMember is a member of the set of ordering keys for the key k.
func orderMember(id string, due byte) string {
	return "\x01k" + "\x00\x00\x00\x00\x00\x00\x00" + string(rune(due)) + redisstore.Stored(id)
}

// TestSweepRepairsOrder takes members of ordering keys away, and puts some where they do
// not belong.
func TestSweepRepairsOrder(t *testing.T) {
	server := redistest.Start(t)
	const order = "ddq:{mail:0}:order"
	for name, c := range map[string]struct {
		damage   []any
		repaired int
	}{
		"members gone":              {[]any{"DEL", order}, 3},
		"member of no task":         {[]any{"ZADD", order, "0", orderMember("ghost", 0)}, 1},
		"member of a finished task": {[]any{"ZADD", order, "0", orderMember("done", 1)}, 1},
		"member at another time":    {[]any{"ZADD", order, "0", orderMember("third", 9)}, 1},
		"two members of a task":     {[]any{"ZADD", order, "0", orderMember("held", 2)}, 1},
		"nonsense":                  {[]any{"ZADD", order, "0", "\xff"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			server.Do(t, "FLUSHALL")
			s := claim(t, open(t, server.URL()))
			ctx := t.Context()
			var tasks []*store.Task
			for i, id := range []string{"done", "held", "second", "third"} {
				tasks = append(tasks, &store.Task{ID: id, Due: store.Millis(i + 1), MaxRetries: -1, Traits: &store.Traits{OrderingKey: "k"}})
			}
			if _, _, err := s.Add(ctx, s.shard, tasks); err != nil {
				t.Fatal(err)
			}
			for _, id := range []string{"done", "held"} {
				h := store.Hold{ID: id, Token: store.NewToken(), Visibility: time.Hour}
				if _, results, err := s.Hold(ctx, s.shard, s.fence, []store.Hold{h}); err != nil || results[0].Status != store.OK {
					t.Fatalf("hold of %s: %+v, %v", id, results, err)
				}
				if id == "held" {
					break
				}
				if _, _, err := s.Ack(ctx, s.shard, []store.Ack{{ID: id, Token: h.Token}}, time.Hour); err != nil {
					t.Fatal(err)
				}
			}
			server.Do(t, c.damage...)
			if repaired := sweepWhole(t, s); repaired != c.repaired {
				t.Errorf("%d repaired, want %d", repaired, c.repaired)
			}
			_, found, err := s.InOrder(ctx, s.shard, []string{"k"}, 10)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, o := range found[0] {
				got = append(got, o.ID)
			}
			if !slices.Equal(got, []string{"held", "second", "third"}) {
				t.Errorf("in order are %v", got)
			}
			if repaired := sweepWhole(t, s); repaired != 0 {
				t.Errorf("%d repaired in the second walk", repaired)
			}
		})
	}
}

func sweepWhole(t *testing.T, s shardOf) (repaired int) {
	t.Helper()
	for cursor := ""; ; {
		n, next, err := s.Sweep(t.Context(), s.shard, s.fence, cursor, 2)
		if err != nil {
			t.Fatal(err)
		}
		repaired += n
		if cursor = next; cursor == "" {
			return repaired
		}
	}
}

package redisstore_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/redisstore"
	"github.com/ddq-io/ddq/store/redisstore/redistest"
)

// One step of the sweep reads no bodies but those that it needs, and of these no more than fit
// into an answer.
func TestSweepOfLargePayloadsReadsLittle(t *testing.T) {
	server := redistest.Start(t)
	s := claim(t, open(t, server.URL()))
	set := store.NewIndexSet("tenant")
	payload := make([]byte, 1<<20)
	for i := range 40 {
		task := &store.Task{ID: fmt.Sprint("t", i), Due: 1, Payload: payload, Indexed: set, Attributes: []store.Attribute{{Key: "tenant", Value: "acme"}}}
		if _, _, err := s.Add(t.Context(), s.shard, []*store.Task{task}); err != nil {
			t.Fatal(err)
		}
	}
	sweep := func(most int64) (repaired int) {
		for cursor := ""; ; {
			before := sentBy(t, server)
			n, next, err := s.Sweep(t.Context(), s.shard, s.fence, cursor, 1000)
			if err != nil {
				t.Fatal(err)
			}
			if sent := sentBy(t, server) - before; sent > most {
				t.Errorf("one sweep read %d bytes, want at most %d", sent, most)
			}
			repaired += n
			if cursor = next; cursor == "" {
				return repaired
			}
		}
	}
	if repaired := sweep(64 << 10); repaired != 0 {
		t.Errorf("repaired %d of nothing", repaired)
	}
	server.Do(t, "DEL", "ddq:{mail:0}:attrs", "ddq:{mail:0}:tasks")
	if repaired := sweep(2 * store.MaxBodies); repaired != 80 {
		t.Errorf("repaired %d, want 40 tasks and the attributes of each", repaired)
	}
}

// sentBy is how many bytes a server has sent.
func sentBy(t *testing.T, server *redistest.Server) int64 {
	t.Helper()
	info := fmt.Sprint(server.Do(t, "INFO", "stats"))
	_, after, _ := strings.Cut(info, "total_net_output_bytes:")
	digits, _, _ := strings.Cut(after, "\r")
	sent, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return sent
}

func TestSweepRepairs(t *testing.T) {
	server := redistest.Start(t)
	w := newWorld(t, server)
	ctx := t.Context()
	prefix := "ddq:{mail:0}:"
	member := redisstore.Stored
	server.Do(t, "ZREM", prefix+"tasks", member("scheduled")) // a task in no index
	server.Do(t, "HSET", prefix+"running", member("running"), "nonsense")
	server.Do(t, "HDEL", prefix+"data", member("ready"))     // a task whose record is gone
	server.Do(t, "ZADD", prefix+"kept", 1, member("nobody")) // an index entry without a task
	server.Do(t, "ZREM", prefix+"done", member("done"))
	server.Do(t, "ZREM", prefix+"index", "\x04nameretrying\x00\x00"+member("retrying")) // a task in no index of attributes
	server.Do(t, "ZADD", prefix+"index", 0, "\x04namedead\x00\x00"+member("nobody"))    // an entry of nothing
	server.Do(t, "ZADD", prefix+"index", 0, "x")
	server.Do(t, "HSET", prefix+"data", member("done"), "unreadable")
	repaired, cursor := 0, ""
	for {
		n, next, err := w.Sweep(ctx, w.shard, w.fence, cursor, 2)
		w.must(t, err)
		repaired += n
		if cursor = next; cursor == "" {
			break
		}
	}
	if repaired != 8 {
		t.Errorf("repaired %d, want 8", repaired)
	}
	w.verifyIndex(t, "scheduled", "running", "ready", "done", "dead", "retrying")
	_, got, err := w.Get(ctx, w.shard, []string{"scheduled", "running", "ready", "done", "dead", "retrying"})
	w.must(t, err)
	for i, want := range []store.State{store.StateReady, store.StateReady, store.StateDead, store.StateDead, store.StateDead, store.StateRetrying} {
		if got[i].State != want {
			t.Errorf("%s is %v, want %v", got[i].ID, got[i].State, want)
		}
	}
	if stats, err := w.Stats(ctx, []store.Shard{w.shard}); err != nil || stats[0].Pending != 3 || stats[0].Running != 0 || stats[0].Done != 0 || stats[0].Dead != 3 {
		t.Errorf("stats are %+v, %v", stats, err)
	}
}

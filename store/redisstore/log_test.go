package redisstore_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/redisstore/redistest"
)

// What a change costs: -v prints it.
func TestBytesOfAChange(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, server.URL())
	for _, batch := range []int{1, 500} {
		shard := store.Shard{Topic: fmt.Sprint("batches-of-", batch), N: 0}
		if err := s.Watch(t.Context(), shard, store.Watching{Retention: time.Hour, Max: 1_000_000}); err != nil {
			t.Fatal(err)
		}
		const tasks = 2000
		for first := 0; first < tasks; first += batch {
			var add []*store.Task
			for i := range batch {
				add = append(add, &store.Task{ID: fmt.Sprintf("0190f3a4-7c1e-7b3a-9d52-%012x", first+i), Due: 1, MaxRetries: -1})
			}
			if _, _, err := s.Add(t.Context(), shard, add); err != nil {
				t.Fatal(err)
			}
		}
		used, err := strconv.Atoi(fmt.Sprint(server.Do(t, "MEMORY", "USAGE", "ddq:{"+shard.Topic+":0}:log", "SAMPLES", "0")))
		if err != nil {
			t.Fatal(err)
		}
		perChange := used / tasks
		t.Logf("a change takes %d bytes, %d at a time", perChange, batch)
		if perChange < 30 || perChange > 200 {
			t.Errorf("a change takes %d bytes, %d at a time", perChange, batch)
		}
	}
}

package overview_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ddq-io/ddq/actors/metrics"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/overview"
	"github.com/ddq-io/ddq/api/service/servicetest"
)

func get(t *testing.T, at *servicetest.Node) *overview.Overview {
	t.Helper()
	v, err := at.Sys.Overviews.Get(t.Context(), overview.Query{})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// enqueue enqueues n tasks that are due together.
func enqueue(t *testing.T, at *servicetest.Node, topic string, n int, delay time.Duration) {
	t.Helper()
	tasks := make([]service.NewTask, n)
	for i := range tasks {
		tasks[i] = servicetest.After(topic, fmt.Sprintf("%v-%d", delay, i), delay)
		tasks[i].Task.MaxRetries = -1
	}
	for batch := range slices.Chunk(tasks, 1000) {
		stored, err := at.Sys.Tasks.Enqueue(t.Context(), batch)
		if err != nil || stored[0].Err != nil {
			t.Fatal(err, stored[0].Err)
		}
	}
	time.Sleep(time.Millisecond)
}

// wants fails unless so many tasks are due in these seconds, and none in others.
func wants(t *testing.T, due []int64, seconds int, want map[int]int64) {
	t.Helper()
	got := make(map[int]int64)
	for i, n := range due {
		if n > 0 {
			got[i] = n
		}
	}
	if len(due) != seconds || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("due in %d seconds: %v, want %v in %d", len(due), got, want, seconds)
	}
}

func TestWhatIsDueIsKnownOfAllNodes(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *servicetest.Fleet) {
		for _, delay := range []time.Duration{5 * time.Second, 20 * time.Second, 45 * time.Second, 2 * time.Hour} {
			enqueue(t, f.Nodes["a"], "mail", 100, delay+500*time.Millisecond)
		}
		enqueue(t, f.Nodes["b"], "sms", 1, 30*time.Second)
		for name, at := range f.Nodes {
			v := get(t, at)
			if len(v.Topics) != 2 || v.Topics[0].Name != "mail" || v.Next != "" || len(v.Silent) != 0 || len(v.Nodes) != 3 {
				t.Fatalf("%s: %+v", name, v)
			}
			if got := v.Topics[0].Depth; got != (metrics.Depth{Scheduled: 400}) {
				t.Errorf("%s: %+v", name, got)
			}
			wants(t, v.Topics[0].Due, 60, map[int]int64{5: 100, 20: 100, 45: 100})
			wants(t, v.Topics[1].Due, 60, map[int]int64{30: 1})
		}
		time.Sleep(10 * time.Second)
		v := get(t, f.Nodes["c"])
		wants(t, v.Topics[0].Due, 60, map[int]int64{10: 100, 35: 100})
		if got := v.Topics[0]; got.Depth.Ready != 100 || got.Lateness < 4*time.Second || got.Lateness > 5*time.Second {
			t.Errorf("ready %d, late by %v", got.Depth.Ready, got.Lateness)
		}
	})
}

// What a node has in memory that does not answer stands in the store, too.
func TestANodeThatIsSilentIsNamedAndNotAwaited(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		enqueue(t, f.Nodes["a"], "mail", 100, 5500*time.Millisecond)
		f.Mu.Lock()
		f.Cut[[2]string{"a", "b"}] = true
		f.Mu.Unlock()
		v := get(t, f.Nodes["a"])
		if !slices.Equal(v.Silent, []string{"b"}) || v.Nodes[0].Load == nil || v.Nodes[1].Load != nil {
			t.Errorf("silent are %v", v.Silent)
		}
		wants(t, v.Topics[0].Due, 60, map[int]int64{5: 100})
	})
}

// Behind what is in memory a page of each shard is read. The second in which that ends is not known.
func TestVeryManyTasksAreCountedAsFarAsTheyAreKnown(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a"}, func(t *testing.T, f *servicetest.Fleet) {
		enqueue(t, f.Nodes["a"], "mail", 9000, 5500*time.Millisecond)
		enqueue(t, f.Nodes["a"], "mail", 9000, 45500*time.Millisecond)
		wants(t, get(t, f.Nodes["a"]).Topics[0].Due, 45, map[int]int64{5: 9000})
	})
}

func TestAnAnswerIsForAllWhoAskWithinASecond(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a"}, func(t *testing.T, f *servicetest.Fleet) {
		enqueue(t, f.Nodes["a"], "mail", 1, time.Hour)
		first := get(t, f.Nodes["a"])
		time.Sleep(900 * time.Millisecond)
		if get(t, f.Nodes["a"]) != first {
			t.Error("it was made anew")
		}
		time.Sleep(200 * time.Millisecond)
		if get(t, f.Nodes["a"]) == first {
			t.Error("it is too old")
		}
	})
}

func TestTopicsComeInPages(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a"}, func(t *testing.T, f *servicetest.Fleet) {
		for _, topic := range []string{"a", "b", "c"} {
			enqueue(t, f.Nodes["a"], topic, 1, time.Hour)
		}
		var names []string
		for token := "?"; token != ""; {
			if token == "?" {
				token = ""
			}
			v, err := f.Nodes["a"].Sys.Overviews.Get(t.Context(), overview.Query{Size: 2, Token: token})
			if err != nil {
				t.Fatal(err)
			}
			for i := range v.Topics {
				names = append(names, v.Topics[i].Name)
			}
			token = v.Next
		}
		if fmt.Sprint(names) != "[a b c]" {
			t.Errorf("%v", names)
		}
		if _, err := f.Nodes["a"].Sys.Overviews.Get(t.Context(), overview.Query{Size: 2, Token: "x"}); err == nil {
			t.Error("a token that is none is taken")
		}
	})
}

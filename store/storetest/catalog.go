package storetest

import (
	"slices"
	"strings"
	"time"

	"github.com/ddq-io/ddq/store"
)

func catalogCases() []entry {
	return []entry{
		{"Topic/RoundTrip", topicRoundTrip},
		{"Topic/Versions", topicVersions},
		{"Topic/NotFound", topicNotFound},
		{"Topic/ListedByName", topicList},
		{"Topic/DeletingLeavesTasks", topicDelete},
		{"Topic/DeletingLeavesTheNextOfTheName", topicDeleteOther},
		{"Topic/OneOfManyChangesWins", topicRace},
	}
}

// put stores a topic, which must be accepted.
func (f *fixture) put(t store.Topic) store.Topic {
	f.Helper()
	stored, err := f.s.PutTopic(f.ctx, t)
	f.ok("put topic", err)
	return stored
}

func topicRoundTrip(f *fixture) {
	want := store.Topic{
		Name: "mail", Life: 1<<63 + 7, First: 20, Shards: 8, Former: [store.MaxFormer]store.Span{{First: 4, Shards: 16}}, Visibility: 90 * time.Second, MaxRetries: 7,
		Backoff:  store.Backoff{Kind: store.BackoffQuadratic, Base: 1500 * time.Millisecond, Max: long, Jitter: 20},
		MaxDelay: 87600 * long, MaxPayload: 1 << 20, DoneRetention: 24 * long, DeliveryPaused: true, EnqueuePaused: true,
		Limits: store.TopicLimits{
			Rate:        store.Rate{Count: 100, Period: time.Second, Burst: 10},
			KeyRate:     store.Rate{Kind: store.SlidingWindow, Count: 5, Period: long},
			Concurrency: 50, KeyConcurrency: 2, DeadLetter: true,
		},
		DeadRetention: 720 * long, MaxDead: 5000, MaxBacklog: 1 << 31, Resumed: 1_900_000_000_123, Ramp: 90 * time.Second,
		Indexed: store.NewIndexSet("tenant", "path"), Workflows: store.WorkflowPolicy{Retention: 24 * long, Max: 7},
	}
	for _, t := range []store.Topic{want, {Name: "bare"}} {
		stored := f.put(t)
		t.Version = stored.Version
		equal(f, "stored topic", stored, t)
		got, err := f.s.GetTopic(f.ctx, t.Name)
		f.ok("get topic", err)
		equal(f, "topic", got, t)
	}
}

func topicVersions(f *fixture) {
	first := f.put(store.Topic{Name: "mail", Shards: 4})
	equal(f, "first version", first.Version, 1)
	_, err := f.s.PutTopic(f.ctx, store.Topic{Name: "mail", Shards: 9})
	f.refused("creating it again", err, store.ErrTopicExists)

	change := first
	change.Shards = 5
	second := f.put(change)
	equal(f, "second version", second.Version, 2)
	_, err = f.s.PutTopic(f.ctx, change)
	f.refused("changing the version before", err, store.ErrVersion)
	ahead := second
	ahead.Version = 9
	_, err = f.s.PutTopic(f.ctx, ahead)
	f.refused("changing a version yet to come", err, store.ErrVersion)
	_, err = f.s.PutTopic(f.ctx, store.Topic{Name: "absent", Version: 1})
	f.refused("changing an unknown topic", err, store.ErrVersion)

	got, err := f.s.GetTopic(f.ctx, "mail")
	f.ok("get topic", err)
	equal(f, "topic", got, second)
}

func topicNotFound(f *fixture) {
	_, err := f.s.GetTopic(f.ctx, "absent")
	f.refused("get", err, store.ErrTopicNotFound)
	f.refused("delete", f.s.DeleteTopic(f.ctx, "absent", 0), store.ErrTopicNotFound)
	f.put(store.Topic{Name: "mail"})
	f.ok("delete", f.s.DeleteTopic(f.ctx, "mail", 0))
	f.refused("delete again", f.s.DeleteTopic(f.ctx, "mail", 0), store.ErrTopicNotFound)
	_, err = f.s.GetTopic(f.ctx, "mail")
	f.refused("get after delete", err, store.ErrTopicNotFound)
	_, err = f.s.GetTopic(f.ctx, "mai") // a prefix of a name that was there
	f.refused("get of a prefix", err, store.ErrTopicNotFound)
	if again := f.put(store.Topic{Name: "mail", Shards: 2}); again.Version < 1 {
		f.Fatalf("version of the topic made again is %d", again.Version)
	}
}

func topicList(f *fixture) {
	topics, err := f.s.ListTopics(f.ctx)
	f.ok("list topics", err)
	equal(f, "number of topics", len(topics), 0)
	names := []string{"b", "a", "B", "a.b", "a-b", "a0", "10", "9", strings.Repeat("t", 128)}
	for i, name := range names {
		f.put(store.Topic{Name: name, Shards: i})
	}
	for _, name := range numbered(150) {
		f.put(store.Topic{Name: name})
		names = append(names, name)
	}
	topics, err = f.s.ListTopics(f.ctx)
	f.ok("list topics", err)
	var got []string
	for _, t := range topics {
		got = append(got, t.Name)
		equal(f, "version", t.Version, 1)
	}
	slices.Sort(names)
	same(f, "topics", got, names)
}

func topicDelete(f *fixture) {
	f.put(store.Topic{Name: f.shard.Topic})
	f.ready("a")
	f.ok("delete", f.s.DeleteTopic(f.ctx, f.shard.Topic, 0))
	f.states(store.StateReady, "a")
	f.hold("a")
}

// topicDeleteOther deletes a topic that was deleted and made again since it was read.
func topicDeleteOther(f *fixture) {
	f.put(store.Topic{Name: f.shard.Topic, Life: 2})
	f.refused("delete of the life before", f.s.DeleteTopic(f.ctx, f.shard.Topic, 1), store.ErrTopicNotFound)
	if t, err := f.s.GetTopic(f.ctx, f.shard.Topic); err != nil || t.Life != 2 {
		f.Fatalf("the topic has life %d (%v), want 2", t.Life, err)
	}
	f.ok("delete", f.s.DeleteTopic(f.ctx, f.shard.Topic, 2))
}

// topicRace lets writers change one version at once.
func topicRace(f *fixture) {
	base := f.put(store.Topic{Name: "mail"})
	const writers = 8
	outcomes := make(chan error, writers)
	for i := range writers {
		go func() {
			change := base
			change.Shards = i + 1
			_, err := f.s.PutTopic(f.ctx, change)
			outcomes <- err
		}()
	}
	won := 0
	for range writers {
		err := <-outcomes
		if err == nil {
			won++
			continue
		}
		f.refused("change", err, store.ErrVersion)
	}
	equal(f, "number of successful changes", won, 1)
}

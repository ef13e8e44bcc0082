package pebblestore

import (
	"testing"
	"time"

	"github.com/ddq-io/ddq/store"
)

// TestHoldsHavePermitsAfterARestart: permits are not written, so those of a topic under
// caps have to come back with the holds, and no others.
func TestHoldsHavePermitsAfterARestart(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, Config{Dir: dir})
	topic := store.Topic{Name: repairShard.Topic, Shards: 4, Limits: store.TopicLimits{Concurrency: 10, KeyConcurrency: 2}}
	if _, err := s.PutTopic(t.Context(), topic); err != nil {
		t.Fatal(err)
	}
	fence := claim(t, s, repairShard)
	add(t, s, repairShard, "plain", "waits")
	keyed := &store.Task{ID: "keyed", Due: 1, Traits: &store.Traits{ConcurrencyKey: "tenant"}}
	if _, _, err := s.Add(t.Context(), repairShard, []*store.Task{keyed}); err != nil {
		t.Fatal(err)
	}
	_, plain := holdOne(t, s, fence, "plain")
	token, held := holdOne(t, s, fence, "keyed")
	unheld := store.Permit{Key: store.LimitKey{Topic: topic.Name}, Holder: store.NewToken(), Until: held.Deadline}
	if err := s.Move(t.Context(), []store.Permit{unheld}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	s = openStore(t, Config{Dir: dir})
	all, tenant := store.LimitKey{Topic: topic.Name}, store.LimitKey{Topic: topic.Name, Key: "tenant"}
	look := func(want ...store.Acquired) {
		t.Helper()
		got, err := s.Acquire(t.Context(), []store.Acquire{{Key: all, Max: 10}, {Key: tenant, Max: 2}})
		if err != nil || got[0] != want[0] || got[1] != want[1] {
			t.Errorf("in use are %+v, %v; want %+v", got, err, want)
		}
	}
	skew := store.Millis(store.PermitSkew / time.Millisecond)
	first := min(plain.Deadline, held.Deadline)
	look(store.Acquired{InUse: 2, Next: first + skew}, store.Acquired{InUse: 1, Next: held.Deadline + skew})
	if _, err := s.Free(t.Context(), []store.Permit{{Key: all, Holder: token}, {Key: tenant, Holder: token}}); err != nil {
		t.Fatal(err)
	}
	look(store.Acquired{InUse: 1, Next: plain.Deadline + skew}, store.Acquired{})
}

// TestHoldsCountInTheirNamespaceAfterARestart: the store does not know which namespaces have a cap, and
// knows of all holds when it is first asked for a permit of one.
func TestHoldsCountInTheirNamespaceAfterARestart(t *testing.T) {
	mine := store.Shard{Topic: "acme/mail"}
	dir := holdsOfBefore(t, mine, store.Shard{Topic: "acme/sms", N: 3}, store.Shard{Topic: "mail"})
	s := openStore(t, Config{Dir: dir})
	for name, want := range map[string]int{"acme/any": 2, "any": 1, "nobody/any": 0} {
		for range 2 {
			got, err := s.Acquire(t.Context(), []store.Acquire{{Key: store.CapKey(name, store.NamespaceCap), Max: 10}})
			if err != nil || got[0].InUse != want {
				t.Errorf("in use in the namespace of %s are %+v, %v; want %d", name, got, err, want)
			}
		}
	}
	held, _, err := s.Running(t.Context(), mine, "", 10)
	if err != nil || len(held) != 1 {
		t.Fatalf("running are %v, %v", held, err)
	}
	if _, err := s.Free(t.Context(), []store.Permit{{Key: store.CapKey(mine.Topic, store.NamespaceCap), Holder: held[0].Token}}); err != nil {
		t.Fatal(err)
	}
	got, err := s.Acquire(t.Context(), []store.Acquire{{Key: store.CapKey(mine.Topic, store.NamespaceCap), Max: 10}})
	if err != nil || got[0].InUse != 1 {
		t.Errorf("once one was freed, in use are %+v, %v", got, err)
	}
}

// TestATakeKnowsTheHoldsOfItsNamespaceAfterARestart takes two where the namespace has room for one.
func TestATakeKnowsTheHoldsOfItsNamespaceAfterARestart(t *testing.T) {
	dir := holdsOfBefore(t, store.Shard{Topic: "acme/mail"}, store.Shard{Topic: "acme/sms", N: 3}, store.Shard{Topic: "mail"})
	got, err := openStore(t, Config{Dir: dir}).Take(t.Context(), &store.Take{
		Topic: "acme/any", Node: "a", Limits: store.TopicLimits{Namespace: 3}, Holders: []store.Token{store.NewToken(), store.NewToken()},
		Until: store.Millis(time.Now().Add(time.Minute).UnixMilli()), Wants: make([]store.Want, 2),
	})
	if err != nil || got.Wants[0].Status != store.Granted || got.Wants[1].Status == store.Granted {
		t.Errorf("beside two holds of before, of two takes one may be granted; they came to %+v: %v", got, err)
	}
}

// holdsOfBefore makes a store in which each of some shards has a task that is held and one that waits.
func holdsOfBefore(t *testing.T, shards ...store.Shard) (dir string) {
	t.Helper()
	dir = t.TempDir()
	s := openStore(t, Config{Dir: dir})
	for _, name := range shards {
		fence := claim(t, s, name)
		add(t, s, name, "held", "waits")
		if _, _, err := s.Hold(t.Context(), name, fence, []store.Hold{{ID: "held", Token: store.NewToken(), Visibility: time.Minute}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

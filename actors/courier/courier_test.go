package courier

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/sent"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
	"github.com/ddq-io/ddq/store/place"
)

var errBroken = errors.New("broken")

// flaky fails calls at random, half of them once they are made.
type flaky struct {
	*memstore.Store
	r     *rand.Rand
	odds  float64
	drops func() // what happens once before parcels are forgotten
}

func (f *flaky) Commit(ctx context.Context, s store.Shard, fence *store.Fence, commits []store.Commit) (store.Stamp, []store.CommitResult, error) {
	if drops := f.drops; drops != nil && len(commits[0].Drop) > 0 {
		f.drops = nil
		drops()
	}
	broken, made := f.r.Float64() < f.odds, f.r.Float64() < .5
	if broken && !made {
		return store.Stamp{}, nil, errBroken
	}
	stamp, results, err := f.Store.Commit(ctx, s, fence, commits)
	if broken && err == nil {
		err = errBroken
	}
	return stamp, results, err
}

// rig is the out-box of shard 0 of mail, on a store whose calls fail at times.
type rig struct {
	*testing.T
	*Courier
	db     *flaky
	fence  store.Fence
	topics map[string]*store.Topic // as the node knows them
	stored map[string]*store.Topic // those that it knows otherwise
}

func inBubble(t *testing.T, test func(r *rig)) {
	synctest.Test(t, func(t *testing.T) {
		db := &flaky{Store: memstore.New(), r: rand.New(rand.NewPCG(1, 2))}
		defer db.Close()
		r := &rig{T: t, db: db, topics: map[string]*store.Topic{
			"mail":  {Name: "mail", Life: 1, Shards: 2, MaxPayload: 100},
			"audit": {Name: "audit", Life: 2, Shards: 3, MaxPayload: 100},
		}}
		session := store.Session{Node: "n", Start: store.NewToken(), TTL: 24 * time.Hour, Begin: true}
		if _, err := db.RenewSession(t.Context(), session); err != nil {
			t.Fatal(err)
		}
		shard := store.Shard{Topic: "mail"}
		var err error
		if _, r.fence, err = db.Claim(t.Context(), shard, session); err != nil {
			t.Fatal(err)
		}
		r.Courier = &Courier{
			ID: shard, Store: db, Tasks: db, Counts: db.Counts,
			TopicOf: func(_ context.Context, name string, _ bool) (*store.Topic, *problem.Error) {
				if topic := r.topics[name]; topic != nil {
					return topic, nil
				}
				return nil, problem.NoTopic(name)
			},
			Stored: func(_ context.Context, name string) (*store.Topic, *problem.Error) {
				for _, known := range []map[string]*store.Topic{r.stored, r.topics} {
					if topic := known[name]; topic != nil {
						return topic, nil
					}
				}
				return nil, problem.NoTopic(name)
			},
			Resolve: func(_ context.Context, call func() error) (bool, error) { return false, call() },
			Now:     func() store.Millis { return store.Millis(time.Now().UnixMilli()) },
			Log:     slog.New(slog.DiscardHandler),
		}
		test(r)
	})
}

// send puts tasks into the out-box.
func (r *rig) send(topic string, tasks ...*store.Task) {
	r.Helper()
	var c store.Commit
	for _, t := range tasks {
		p, err := sent.Parcel(topic, t)
		if err != nil {
			r.Fatal(err)
		}
		c.Send = append(c.Send, p)
	}
	if _, results, err := r.db.Store.Commit(r.Context(), r.ID, nil, []store.Commit{c}); err != nil || results[0].Status != store.OK {
		r.Fatal(results, err)
	}
}

// rounds hands on until nothing is left that could go.
func (r *rig) rounds(each func()) (last *Outcome) {
	r.Helper()
	after := int64(0)
	for range 10_000 {
		last = r.Round(r.Context(), Start{Fence: r.fence, Topic: r.topics["mail"], After: after})
		after = last.After
		each()
		if last.Err == nil && last.After == 0 {
			return last
		}
	}
	r.Fatal("no end")
	return nil
}

// take removes what is in a topic, as if it was done and gone, and counts it by id.
func (r *rig) take(topic string, seen map[string]int) {
	r.Helper()
	for _, shard := range place.Shards(r.topics[topic]) {
		page, _, err := r.db.List(r.Context(), shard, store.KindPending, "", 1000)
		if err != nil {
			r.Fatal(err)
		}
		var ids []string
		for _, s := range page {
			seen[s.ID]++
			ids = append(ids, s.ID)
		}
		if _, _, err := r.db.Remove(r.Context(), shard, ids); err != nil {
			r.Fatal(err)
		}
	}
}

func (r *rig) left() int {
	r.Helper()
	parcels, err := r.db.Parcels(r.Context(), r.ID, store.OutBox, 0, 10_000)
	if err != nil {
		r.Fatal(err)
	}
	return len(parcels)
}

func task(id string) *store.Task {
	return &store.Task{ID: id, Due: 1, MaxRetries: -1, Fingerprint: place.HashID(id)}
}

// Each task is made once, also when answers are lost and it is done and gone before it is sent
// again, and when its topic gets other shards meanwhile.
func TestEachTaskArrivesOnce(t *testing.T) {
	for seed := range uint64(100) {
		reshards := seed%2 == 0
		inBubble(t, func(r *rig) {
			r.db.odds, r.db.r = .3, rand.New(rand.NewPCG(seed, 0))
			want := 0
			for i := range 40 {
				var tasks []*store.Task
				for k := range 5 {
					next := task(fmt.Sprintf("%d-%d", i, k))
					if k == 4 && !reshards {
						next.ID = place.KeyedID("o")
						next.Traits = &store.Traits{OrderingKey: "o"}
					}
					tasks = append(tasks, next)
				}
				r.send("audit", tasks...)
				want += len(tasks)
			}
			seen, n := make(map[string]int), 0
			r.rounds(func() {
				if n++; reshards && n == 5 {
					r.topics["audit"] = &store.Topic{
						Name: "audit", Life: 2, MaxPayload: 100, First: 3, Shards: 5, Former: [store.MaxFormer]store.Span{{Shards: 3}},
					}
				}
				r.take("audit", seen)
			})
			for id, n := range seen {
				if n != 1 {
					r.Errorf("seed %d: %s was made %d times", seed, id, n)
				}
			}
			if len(seen) != want || r.left() != 0 {
				r.Errorf("seed %d: %d of %d tasks arrived, %d are left", seed, len(seen), want, r.left())
			}
		})
	}
}

// A server takes over that did not get a task, and gives its number to another one.
func TestAnotherServerForgetsNoneOfItsOwn(t *testing.T) {
	inBubble(t, func(r *rig) {
		was := r.db.Clone()
		r.send("audit", task("a"))
		r.db.drops = func() {
			r.db.Restore(was)
			r.send("audit", task("b"))
		}
		seen := make(map[string]int)
		r.rounds(func() { r.take("audit", seen) })
		if seen["b"] != 1 || r.left() != 0 {
			r.Errorf("what arrived is %v, and %d are left; want b", seen, r.left())
		}
	})
}

// Parcels for a topic that takes none now wait, and no others do.
func TestTasksWaitForTheirTopicOnly(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.topics["audit"].EnqueuePaused = true
		for i := range 3 * batch {
			r.send("audit", task(fmt.Sprint("waits", i)))
		}
		r.send("mail", task("goes"))
		if out := r.rounds(func() {}); !out.Waits || r.left() != 3*batch {
			r.Errorf("%+v, %d parcels are left", out, r.left())
		}
		seen := make(map[string]int)
		if r.take("mail", seen); len(seen) != 1 {
			r.Errorf("mail got %v", seen)
		}
		r.topics["audit"].EnqueuePaused = false
		r.rounds(func() {})
		if r.take("audit", seen); len(seen) != 3*batch+1 || r.left() != 0 {
			r.Errorf("%d tasks arrived, %d parcels are left", len(seen), r.left())
		}
	})
}

// What is refused for good is kept in the shard that it came from, also when that fails at first.
func TestRefusedTasksAreKept(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.db.odds = .3
		taken, same, large := task("taken"), task("same"), task("large")
		large.Payload = make([]byte, 101)
		other := *taken
		other.Fingerprint++
		for _, there := range []*store.Task{&other, same} {
			if _, _, err := r.db.Add(r.Context(), place.In(r.topics["audit"], r.topics["audit"].Active(), there.ID).For(2), []*store.Task{there}); err != nil {
				r.Fatal(err)
			}
		}
		r.send("audit", task("good"), taken, same, large)
		r.send("nowhere", task("lost"))
		r.rounds(func() {})
		seen := make(map[string]int)
		r.take("audit", seen)
		if len(seen) != 3 || seen["good"] != 1 || r.left() != 0 {
			r.Errorf("audit has %v, %d parcels are left", seen, r.left())
		}
		cells, err := r.db.Listed(r.Context(), r.ID, sent.List, store.Wake{}, 10)
		if err != nil || len(cells) != 3 {
			r.Fatalf("%d tasks are kept, %v", len(cells), err)
		}
		for _, c := range cells {
			kept, err := sent.FromCell(c)
			if err != nil || kept.Why == "" || kept.Task.ID != c.ID.Key() {
				r.Errorf("%+v, %v", kept, err)
			}
		}
	})
}

package relay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors/entity/message"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
	"github.com/ddq-io/ddq/store/place"
)

var errBroken = errors.New("broken")

// faulty is a store whose calls fail at times, some once they are made. Before each call something else may happen.
type faulty struct {
	*memstore.Store
	mu     sync.Mutex
	r      *rand.Rand
	odds   float64
	full   map[store.Shard]bool
	before func() // one at a time, and not while it runs
	drops  func() // what happens once before messages of the out-box are forgotten
	inside bool
}

func (f *faulty) enter(s store.Shard) (before, behind error) {
	f.mu.Lock()
	happens := f.before
	if f.inside || f.r.Float64() > .2 {
		happens = nil
	}
	if happens != nil {
		f.inside = true
	}
	f.mu.Unlock()
	if happens != nil {
		happens()
		f.mu.Lock()
		f.inside = false
		f.mu.Unlock()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.full[s.Name()]:
		return store.ErrFull, nil
	case f.r.Float64() >= f.odds:
		return nil, nil
	case f.r.Float64() < .5:
		return errBroken, nil
	}
	return nil, errBroken
}

func (f *faulty) Commit(ctx context.Context, s store.Shard, fence *store.Fence, commits []store.Commit) (store.Stamp, []store.CommitResult, error) {
	put := make(map[store.CellID]bool)
	for _, p := range commits[0].Puts {
		if put[p.ID] {
			panic(fmt.Sprintf("a commit puts %s twice", p.ID))
		}
		put[p.ID] = true
	}
	if drops := f.drops; drops != nil && len(commits[0].Drop) > 0 {
		f.drops = nil
		drops()
	}
	before, behind := f.enter(s)
	if before != nil {
		return store.Stamp{}, nil, before
	}
	stamp, results, err := f.Store.Commit(ctx, s, fence, commits)
	return stamp, results, errors.Join(err, behind)
}

func (f *faulty) Receipts(ctx context.Context, s store.Shard, queues []store.Queue) ([]store.Receipt, error) {
	if before, _ := f.enter(store.Shard{}); before != nil {
		return nil, before
	}
	return f.Store.Receipts(ctx, s, queues)
}

func (f *faulty) Messages(ctx context.Context, s store.Shard, q store.Queue, after int64, limit, bytes int) (store.MessagePage, error) {
	if before, _ := f.enter(store.Shard{}); before != nil {
		return store.MessagePage{}, before
	}
	return f.Store.Messages(ctx, s, q, after, limit, bytes)
}

// rig is shard 0 of mail, with relays of two owners of it, one of which may be a former one.
type rig struct {
	*testing.T
	Relay
	db     *faulty
	owners [2]owner
	topics map[string]*store.Topic
	stored map[string]*store.Topic // those that the node knows otherwise
	seen   map[string]int          // payloads of tasks that were made
}

type owner struct {
	fence   store.Fence
	session store.Session
	cursors map[store.Queue]Start
}

// page is how many messages are read at a time in tests, for those that are about several pages.
const page = 256

func inBubble(t *testing.T, test func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		db := &faulty{Store: memstore.New(), r: rand.New(rand.NewPCG(1, 2)), full: make(map[store.Shard]bool)}
		defer db.Close()
		r := &rig{T: t, db: db, seen: make(map[string]int), topics: map[string]*store.Topic{
			"mail":  {Name: "mail", Life: 1, Shards: 2, MaxPayload: 100},
			"audit": {Name: "audit", Life: 2, Shards: 3, MaxPayload: 100},
		}}
		for i := range r.owners {
			r.owners[i].session = store.Session{Node: fmt.Sprint("n", i), Start: store.NewToken(), TTL: 24 * time.Hour, Begin: true}
			if _, err := db.RenewSession(t.Context(), r.owners[i].session); err != nil {
				t.Fatal(err)
			}
			r.owners[i].cursors = make(map[store.Queue]Start)
		}
		r.ID = store.Shard{Topic: "mail"}
		r.claims(0)
		find := func(_ context.Context, name string) (*store.Topic, *problem.Error) {
			if topic := r.topics[name]; topic != nil {
				return topic, nil
			}
			return nil, problem.NoTopic(name)
		}
		r.Store, r.Tasks, r.Counts = db, db, db.Counts
		r.Knobs.RelayPage = page
		r.Stored = func(ctx context.Context, name string) (*store.Topic, *problem.Error) {
			if topic := r.stored[name]; topic != nil {
				return topic, nil
			}
			return find(ctx, name)
		}
		r.Admit = func(t *store.Topic, _ store.Queue, n int) int {
			if t.EnqueuePaused {
				return 0
			}
			return n
		}
		r.GiveUp = func(string, int) {}
		r.Topic = func(ctx context.Context, name string, _ bool) (*store.Topic, *problem.Error) { return find(ctx, name) }
		r.Resolve = func(_ context.Context, call func() error) (bool, error) { return false, call() }
		r.Now = func() store.Millis { return store.Millis(time.Now().UnixMilli()) }
		r.Log = slog.New(slog.DiscardHandler)
		test(r)
	})
}

// claims makes one of them the owner, which begins at the heads of the queues.
func (r *rig) claims(i int) {
	r.Helper()
	other := r.owners[1-i].fence
	if other != (store.Fence{}) {
		_ = r.db.Release(r.Context(), r.ID, other)
	}
	var err error
	if _, r.owners[i].fence, err = r.db.Claim(r.Context(), r.ID, r.owners[i].session); err != nil {
		r.Fatal(err)
	}
	r.owners[i].cursors = make(map[store.Queue]Start)
}

func (r *rig) queue(class store.Class, to string) store.Queue {
	return store.Queue{Source: r.ID.For(1), Class: class, To: to}
}

// sends puts messages into their queues.
func (r *rig) sends(class store.Class, messages ...store.Message) {
	r.Helper()
	for i := range messages {
		messages[i].Class = class
	}
	if _, results, err := r.db.Store.Commit(r.Context(), r.ID.For(1), nil, []store.Commit{{Send: messages}}); err != nil || results[0].Status != store.OK {
		r.Fatal(results, err)
	}
}

func (r *rig) send(topic string, tasks ...*store.Task) {
	r.Helper()
	r.sends(store.ClassWork, r.parcels(topic, tasks)...)
}

// parcels are tasks as they are sent to a topic.
func (r *rig) parcels(topic string, tasks []*store.Task) []store.Message {
	r.Helper()
	var all []store.Message
	for _, t := range tasks {
		m, err := message.Parcel(topic, t)
		if err != nil {
			r.Fatal(err)
		}
		all = append(all, m)
	}
	return all
}

// turn makes a turn of one owner.
func (r *rig) turn(i int, q store.Queue) *Outcome {
	o := &r.owners[i]
	from := o.cursors[q]
	from.Fence, from.Source, from.Queue = o.fence, r.topics["mail"], q
	out := r.Turn(r.Context(), from)
	o.cursors[q] = Start{After: out.After, Passed: out.Passed, Fresh: out.Closed}
	return out
}

// settles carries until a queue is empty.
func (r *rig) settles(q store.Queue) {
	r.Helper()
	for range 1000 {
		if r.left(q) == 0 {
			return
		}
		if out := r.turn(0, q); out.Err != nil {
			r.Fatal(out.Err)
		}
	}
	r.Fatalf("%d messages are left", r.left(q))
}

func (r *rig) left(q store.Queue) int {
	r.Helper()
	page, err := r.db.Store.Messages(r.Context(), r.ID, q, 0, 100_000, 1<<30)
	if err != nil {
		r.Fatal(err)
	}
	return len(page.Messages)
}

// drain removes what is in a topic, as if it was done and gone, and counts it by its payload.
func (r *rig) drain(topic string) {
	r.Helper()
	for _, shard := range place.Shards(r.topics[topic]) {
		for {
			page, _, err := r.db.List(r.Context(), shard, store.KindPending, "", 1000)
			if err != nil {
				r.Fatal(err)
			}
			var ids []store.Removal
			for _, s := range page {
				r.seen[string(s.Payload)]++
				ids = append(ids, store.Removal{ID: s.ID})
			}
			if len(ids) == 0 {
				break
			}
			if _, _, err := r.db.Remove(r.Context(), shard, ids); err != nil {
				r.Fatal(err)
			}
		}
	}
}

// dead are the payloads of the dead letters, and why.
func (r *rig) dead() map[string][]string {
	r.Helper()
	all := make(map[string][]string)
	cells, err := r.db.Listed(r.Context(), r.ID, message.List, store.Wake{}, 100_000)
	if err != nil {
		r.Fatal(err)
	}
	for _, c := range cells {
		kept, err := message.FromCell(c)
		if err != nil {
			r.Fatal(err)
		}
		all[string(kept.Task.Payload)] = append(all[string(kept.Task.Payload)], kept.Why)
	}
	return all
}

func task(id string) *store.Task {
	return &store.Task{ID: id, Due: 1, MaxRetries: -1, Fingerprint: place.HashID(id), Payload: []byte(id)}
}

// reshards gives audit other shards. Those of before are sealed by whoever comes first.
func (r *rig) reshards() {
	was, now := r.topics["audit"], *r.topics["audit"]
	now.First = was.First + was.Shards
	copy(now.Former[1:], was.Former[:])
	now.Former[0] = store.Span{First: was.First, Shards: was.Shards}
	r.topics["audit"] = &now
}

// Each message is made once or is one dead letter, whatever happens: two owners of which one may be a former one,
// answers that are lost, shards that are full, a topic that is paused, that takes less, that gets other shards.
func TestEachMessageIsSettledOnce(t *testing.T) {
	for seed := range uint64(100) {
		inBubble(t, func(r *rig) {
			random := rand.New(rand.NewPCG(seed, 1))
			r.db.r, r.db.odds = rand.New(rand.NewPCG(seed, 0)), .2
			var want []string
			serial, reshards := 0, 0
			send := func() {
				var all []*store.Task
				for range random.IntN(60) {
					serial++
					next := task(fmt.Sprintf("%d-%d", seed, serial))
					switch random.IntN(12) {
					case 0:
						next.Payload = []byte(fmt.Sprintf("%s %060d", next.ID, 0)) // too large at times
					case 1: // ids and keys that others have
						next.ID = fmt.Sprint("same", random.IntN(3))
					case 2:
						key := fmt.Sprint("k", random.IntN(3))
						next.ID, next.Key = place.KeyedID(key), &store.Key{Text: key, OnConflict: store.KeyReject}
					}
					next.Fingerprint = place.HashID(string(next.Payload))
					all, want = append(all, next), append(want, string(next.Payload))
				}
				if len(all) > 0 {
					r.send("audit", all...)
				}
			}
			q := r.queue(store.ClassWork, "audit")
			r.db.before = func() {
				switch random.IntN(8) {
				case 0:
					next := *r.topics["audit"]
					next.EnqueuePaused = !next.EnqueuePaused
					r.topics["audit"] = &next
				case 1:
					next := *r.topics["audit"]
					next.MaxPayload = 150 - next.MaxPayload
					r.topics["audit"] = &next
				case 2:
					shards := place.Shards(r.topics["audit"])
					s := shards[random.IntN(len(shards))].Name()
					r.db.mu.Lock()
					r.db.full[s] = !r.db.full[s]
					r.db.mu.Unlock()
				case 3:
					if reshards < 2 && random.IntN(5) == 0 {
						reshards++
						r.reshards()
					}
				case 4:
					send()
				case 5:
					if random.IntN(3) == 0 {
						r.claims(random.IntN(2))
					}
				default:
					r.turn(random.IntN(2), q)
				}
				if random.IntN(2) == 0 {
					r.drain("audit")
				}
			}
			for range 60 {
				if random.IntN(3) == 0 {
					send()
				}
				r.turn(random.IntN(2), q)
			}
			r.db.before, r.db.odds = nil, 0
			clear(r.db.full)
			calm := *r.topics["audit"]
			calm.EnqueuePaused = false
			r.topics["audit"] = &calm
			r.claims(0)
			for range 100 {
				r.turn(0, q)
				r.drain("audit")
				if r.left(q) == 0 {
					break
				}
			}
			dead := r.dead()
			for _, payload := range want {
				if n := r.seen[payload] + len(dead[payload]); n != 1 {
					r.Errorf("seed %d: %q was made %d times and is %d dead letters: %v", seed, payload, r.seen[payload], len(dead[payload]), dead[payload])
				}
			}
			if left := r.left(q); left != 0 {
				r.Errorf("seed %d: %d of %d messages are left", seed, left, len(want))
			}
		})
		if t.Failed() {
			return
		}
	}
}

// Completions come into the inbox of their workflow once each, also past work that waits for its topic.
func TestEachCompletionComesOnce(t *testing.T) {
	for seed := range uint64(100) {
		inBubble(t, func(r *rig) {
			random := rand.New(rand.NewPCG(seed, 1))
			r.db.r, r.db.odds = rand.New(rand.NewPCG(seed, 0)), .3
			r.topics["audit"].EnqueuePaused = true
			q, want := r.queue(store.ClassCompletion, "audit"), 0
			r.db.before = func() {
				if random.IntN(3) == 0 {
					r.claims(random.IntN(2))
				}
				r.turn(random.IntN(2), q)
			}
			for range 40 {
				for range random.IntN(20) {
					r.sends(store.ClassCompletion, store.Message{Topic: "audit", To: store.CellID(fmt.Sprintf("%cw%d", store.CellWorkflow, want%7)), Body: []byte(fmt.Sprint(want))})
					want++
				}
				r.turn(random.IntN(2), q)
			}
			r.db.before, r.db.odds = nil, 0
			r.claims(0)
			r.settles(q)
			got := make(map[string]int)
			for _, s := range place.Shards(r.topics["audit"]) {
				in, err := r.db.Parcels(r.Context(), s, store.InBox, 0, 10_000)
				if err != nil {
					r.Fatal(err)
				}
				for _, m := range in {
					got[string(m.Body)]++
				}
			}
			for i := range want {
				if n := got[fmt.Sprint(i)]; n != 1 {
					r.Errorf("seed %d: completion %d came %d times", seed, i, n)
				}
			}
		})
	}
}

// A shard that takes nothing is in the way of no other one, also when more waits for it than a page has.
func TestAFullShardIsInTheWayOfNoOther(t *testing.T) {
	inBubble(t, func(r *rig) {
		full := place.Shards(r.topics["audit"])[0]
		var blocked, others []*store.Task
		for i := 0; len(blocked) < 2*page; i++ {
			next := task(fmt.Sprint(i))
			if place.In(r.topics["audit"], r.topics["audit"].Active(), next.ID) == full {
				blocked = append(blocked, next)
			} else if len(others) < 10 {
				others = append(others, next)
			}
		}
		r.send("audit", slices.Concat(blocked, others)...)
		r.db.full[full.Name()] = true
		q := r.queue(store.ClassWork, "audit")
		for range 4 {
			if out := r.turn(0, q); out.Err != nil {
				t.Fatal(out.Err)
			}
		}
		if r.drain("audit"); len(r.seen) != len(others) || r.left(q) != len(blocked) {
			t.Fatalf("%d of %d tasks were made, %d are left", len(r.seen), len(others), r.left(q))
		}
		r.db.full[full.Name()] = false
		if r.settles(q); r.left(q) != 0 {
			t.Errorf("%d are left", r.left(q))
		}
		if r.drain("audit"); len(r.seen) != len(others)+len(blocked) {
			t.Errorf("%d tasks were made", len(r.seen))
		}
	})
}

// A message that is refused becomes a dead letter, one for each message.
func TestWhatIsRefusedIsADeadLetter(t *testing.T) {
	inBubble(t, func(r *rig) {
		large, taken, same := task("large"), task("taken"), task("same")
		large.Payload = make([]byte, 101)
		other := *taken
		other.Fingerprint, other.Payload = 1, []byte("other")
		for _, there := range []*store.Task{&other, same} {
			if _, _, err := r.db.Add(r.Context(), place.In(r.topics["audit"], r.topics["audit"].Active(), there.ID).For(2), []*store.Task{there}); err != nil {
				t.Fatal(err)
			}
		}
		r.send("audit", task("good"), large, taken, same)
		r.send("nowhere", task("order-17"))
		r.send("neither", task("order-17"))
		r.settles(r.queue(store.ClassWork, "audit"))
		r.settles(r.queue(store.ClassWork, "nowhere"))
		r.settles(r.queue(store.ClassWork, "neither"))
		r.drain("audit")
		if len(r.seen) != 3 || r.seen["good"] != 1 || r.seen["same"] != 1 || r.seen["other"] != 1 {
			t.Errorf("audit has %v", r.seen)
		}
		if dead := r.dead(); len(dead) != 3 || len(dead["taken"]) != 1 || len(dead["order-17"]) != 2 {
			t.Errorf("dead letters are %v", dead)
		}
	})
}

// A server takes over that did not get a message, and gives its number to another one.
func TestAnotherServerForgetsNoneOfItsOwn(t *testing.T) {
	inBubble(t, func(r *rig) {
		was := r.db.Clone()
		r.send("audit", task("a"))
		q := r.queue(store.ClassWork, "audit")
		r.db.r = rand.New(rand.NewPCG(1, 1))
		calls := 0
		r.Resolve = func(_ context.Context, call func() error) (bool, error) {
			if calls++; calls == 2 { // the message was delivered, and is forgotten now
				r.db.Restore(was)
				r.send("audit", task("b"))
			}
			return false, call()
		}
		if out := r.turn(0, q); !errors.Is(out.Err, store.ErrAnotherServer) {
			t.Errorf("the turn came to %+v", out)
		}
		r.settles(q)
		if r.drain("audit"); r.seen["b"] != 1 {
			t.Errorf("audit has %v", r.seen)
		}
	})
}

// A call from before a failover of its destination is not made.
func TestAShardTakesNothingThatWasReadFromAnotherServer(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.send("audit", task("a"))
		q := r.queue(store.ClassWork, "audit")
		now := r.db.Clone()
		calls := 0
		r.Resolve = func(_ context.Context, call func() error) (bool, error) {
			if calls++; calls == 1 {
				r.db.Restore(now)
			}
			return false, call()
		}
		if out := r.turn(0, q); !errors.Is(out.Err, store.ErrAnotherServer) || r.left(q) != 1 {
			t.Errorf("the turn came to %+v, %d are left", out, r.left(q))
		}
		if r.drain("audit"); len(r.seen) != 0 {
			t.Errorf("audit has %v", r.seen)
		}
		r.settles(q)
		if r.drain("audit"); r.seen["a"] != 1 {
			t.Errorf("audit has %v", r.seen)
		}
	})
}

package relay

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ddq-io/ddq/actors/entity/message"
	"github.com/ddq-io/ddq/actors/workflow"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// sendOld puts tasks into the out-box, as a node does while nodes are in the fleet that know no queues.
func (r *rig) sendOld(topic string, tasks ...*store.Task) {
	r.Helper()
	r.sends(0, r.parcels(topic, tasks)...)
}

// oldTurn makes the turn of the out-box that follows on one.
func (r *rig) oldTurn(last *Outcome) *Outcome {
	from := Start{Fence: r.owners[0].fence, Source: r.topics["mail"], Queue: OldBox(), After: last.After, Walk: last.Walk, Fresh: last.Closed}
	return r.Turn(r.Context(), from)
}

// walks makes turns of the out-box until a walk has come to its end.
func (r *rig) walks(each func()) (last *Outcome) {
	r.Helper()
	last = new(Outcome)
	for range 10_000 {
		last = r.oldTurn(last)
		each()
		if last.Err == nil && last.Walked {
			return last
		}
	}
	r.Fatalf("no end: %+v", last)
	return nil
}

func (r *rig) leftOld() int {
	r.Helper()
	messages, err := r.db.Parcels(r.Context(), r.ID, store.OutBox, 0, 100_000)
	if err != nil {
		r.Fatal(err)
	}
	return len(messages)
}

// once checks that each task was made once, of so many.
func (r *rig) once(want int) {
	r.Helper()
	for payload, n := range r.seen {
		if n != 1 {
			r.Errorf("%s was made %d times", payload, n)
		}
	}
	if len(r.seen) != want {
		r.Errorf("%d of %d tasks were made", len(r.seen), want)
	}
}

// withNewShards is a topic that has 5 shards behind its 3 of before.
func withNewShards() *store.Topic {
	return &store.Topic{Name: "audit", Life: 2, MaxPayload: 100, First: 3, Shards: 5, Former: [store.MaxFormer]store.Span{{Shards: 3}}}
}

// fails has calls fail at random.
func (r *rig) fails(seed uint64) { r.db.odds, r.db.r = .3, rand.New(rand.NewPCG(seed, 0)) }

// Each task of the out-box is made once, also when answers are lost and it is done and gone before it is sent
// again, and when its topic gets other shards meanwhile.
func TestEachOldTaskArrivesOnce(t *testing.T) {
	for seed := range uint64(100) {
		reshards := seed%2 == 0
		inBubble(t, func(r *rig) {
			r.fails(seed)
			if seed%4 < 2 {
				r.Knobs.RelayPage = 16
			}
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
				r.sendOld("audit", tasks...)
				want += len(tasks)
			}
			n := 0
			r.walks(func() {
				if n++; reshards && n == 5 {
					r.topics["audit"] = withNewShards()
				}
				r.drain("audit")
			})
			r.drain("audit")
			if r.once(want); r.leftOld() != 0 || r.Failed() {
				r.Fatalf("seed %d: %d are left", seed, r.leftOld())
			}
		})
	}
}

// Two owners, one of which may be a former one, have each task of the out-box made once, over failures, a reshard and
// a topic that is paused at times. Each one goes on where it was.
func TestOwnersOfTheOldBoxMakeEachTaskOnce(t *testing.T) {
	for seed := range uint64(100) {
		inBubble(t, func(r *rig) {
			random := rand.New(rand.NewPCG(seed, 1))
			r.db.odds, r.db.r = .05, rand.New(rand.NewPCG(seed, 0))
			r.Knobs.RelayPage = 8
			last, want, resharded := [2]*Outcome{{}, {}}, 0, false
			turn := func(i int) {
				from := Start{Fence: r.owners[i].fence, Source: r.topics["mail"], Queue: OldBox(), After: last[i].After, Walk: last[i].Walk}
				last[i] = r.Turn(r.Context(), from)
			}
			happens := func() {
				switch random.IntN(6) {
				case 0:
					next := *r.topics["audit"]
					next.EnqueuePaused = !next.EnqueuePaused
					r.topics["audit"] = &next
				case 1:
					if !resharded && random.IntN(8) == 0 {
						resharded = true
						r.reshards()
					}
				case 2:
					i := random.IntN(2)
					r.claims(i)
					last[i] = new(Outcome)
				default:
					turn(random.IntN(2))
				}
				if random.IntN(2) == 0 {
					r.drain("audit")
				}
			}
			r.db.before = happens
			for range 60 {
				for range random.IntN(20) {
					want++
					r.sendOld("audit", task(fmt.Sprint(want)))
				}
				if random.IntN(2) == 0 {
					happens()
				}
				turn(random.IntN(2))
			}
			r.db.before, r.db.odds = nil, 0
			calm := *r.topics["audit"]
			calm.EnqueuePaused = false
			r.topics["audit"] = &calm
			r.claims(0)
			r.walks(func() {})
			r.drain("audit")
			if r.once(want); r.leftOld() != 0 || len(r.dead()) != 0 || r.Failed() {
				r.Fatalf("seed %d: %d are left, dead letters are %v", seed, r.leftOld(), r.dead())
			}
		})
	}
}

// A task with an idempotency key is added beside others of its key, in the shard of before that has one, and is a dead
// letter where the key is another's. Those of an ordering key follow each other.
func TestOldTasksOfKeysGoWhereTheirKeysAre(t *testing.T) {
	inBubble(t, func(r *rig) {
		keyed := func(payload string, c store.KeyConflict) *store.Task {
			next := task(payload)
			next.ID, next.Key = place.KeyedID("k"), &store.Key{Text: "k", OnConflict: c}
			return next
		}
		ordered := func(payload string) *store.Task {
			next := task(payload)
			next.ID, next.Traits = place.KeyedID("o"), &store.Traits{OrderingKey: "o"}
			return next
		}
		r.sendOld("audit", keyed("first", store.KeyReject), ordered("one"))
		r.walks(func() {})
		r.reshards()
		r.sendOld("audit", ordered("two"), keyed("taken", store.KeyReject), task("plain"), ordered("three"))
		r.walks(func() {})
		if dead := r.dead(); r.leftOld() != 0 || len(dead) != 1 || len(dead["taken"]) != 1 {
			t.Errorf("%d are left, dead letters are %v", r.leftOld(), dead)
		}
		for _, s := range place.Shards(r.topics["audit"]) {
			page, _, err := r.db.List(r.Context(), s, store.KindPending, "", 100)
			if err != nil {
				t.Fatal(err)
			}
			for _, there := range page {
				if former := s.N < r.topics["audit"].First; former == (string(there.Payload) == "plain") {
					t.Errorf("%s is in shard %d", there.Payload, s.N)
				}
			}
		}
		r.drain("audit")
		r.once(5)
	})
}

// A server takes over that did not get a task, and gives its number to another one.
func TestAnotherServerForgetsNoneOfItsOldOnes(t *testing.T) {
	inBubble(t, func(r *rig) {
		was := r.db.Clone()
		r.sendOld("audit", task("a"))
		r.db.drops = func() {
			r.db.Restore(was)
			r.sendOld("audit", task("b"))
		}
		r.walks(func() { r.drain("audit") })
		if r.seen["b"] != 1 || r.leftOld() != 0 {
			r.Errorf("what arrived is %v, and %d are left; want b", r.seen, r.leftOld())
		}
	})
}

// Work for a topic that takes none now waits, as it is paused or full, and no other does.
func TestOldTasksWaitForTheirTopicOnly(t *testing.T) {
	for _, bound := range []struct{ shut, open func(*store.Topic) }{
		{func(t *store.Topic) { t.EnqueuePaused = true }, func(t *store.Topic) { t.EnqueuePaused = false }},
		{func(t *store.Topic) { t.MaxBacklog = 1 }, func(t *store.Topic) { t.MaxBacklog = 10_000 }},
	} {
		inBubble(t, func(r *rig) {
			r.sendOld("audit", task("there"))
			r.walks(func() {})
			bound.shut(r.topics["audit"])
			const n = 3 * page
			for i := range n {
				r.sendOld("audit", task(fmt.Sprint("waits", i)))
			}
			r.sendOld("mail", task("goes"))
			if out := r.walks(func() {}); out.Left != n || !out.Waiting["audit"] || len(out.Waiting) != 1 || r.leftOld() != n {
				r.Errorf("%+v, %d messages are left", out, r.leftOld())
			}
			if r.drain("mail"); r.seen["goes"] != 1 {
				r.Errorf("mail got %v", r.seen)
			}
			bound.open(r.topics["audit"])
			out := r.walks(func() {})
			if r.drain("audit"); out.Left != 0 || r.leftOld() != 0 {
				r.Errorf("%+v, %d messages are left", out, r.leftOld())
			}
			r.once(n + 2)
		})
	}
}

// What is refused for good is kept in the shard that it came from, also when that fails at first.
func TestRefusedOldTasksAreKept(t *testing.T) {
	for seed := range uint64(20) {
		inBubble(t, func(r *rig) {
			r.fails(seed)
			taken, same, large := task("taken"), task("same"), task("large")
			large.Payload = make([]byte, 101)
			other := *taken
			other.Fingerprint, other.Payload = 1, []byte("other")
			for _, there := range []*store.Task{&other, same} {
				if _, _, err := r.db.Add(r.Context(), place.In(r.topics["audit"], r.topics["audit"].Active(), there.ID).For(2), []*store.Task{there}); err != nil {
					r.Fatal(err)
				}
			}
			r.sendOld("audit", task("good"), taken, same, large, task("behind"))
			r.sendOld("nowhere", task("order-17"))
			r.sendOld("neither", task("order-17"), task("order-17")) // ids are unique in a topic only
			r.walks(func() {})
			r.drain("audit")
			if r.once(4); r.seen["good"]+r.seen["same"]+r.seen["other"]+r.seen["behind"] != 4 || r.leftOld() != 0 {
				r.Errorf("audit has %v, %d are left", r.seen, r.leftOld())
			}
			dead := r.dead()
			if len(dead) != 3 || len(dead["taken"]) != 1 || len(dead["order-17"]) != 3 || len(dead[string(large.Payload)]) != 1 {
				r.Errorf("seed %d: dead letters are %v", seed, dead)
			}
		})
	}
}

// dies is a store that an owner calls who is gone before it keeps what is refused.
type dies struct {
	*faulty
	dead bool
}

func (d *dies) Commit(ctx context.Context, s store.Shard, fence *store.Fence, commits []store.Commit) (store.Stamp, []store.CommitResult, error) {
	if d.dead = d.dead || len(commits[0].Drop) > 0; d.dead {
		return store.Stamp{}, nil, errBroken
	}
	return d.faulty.Commit(ctx, s, fence, commits)
}

// No tally passes a refused task before that is kept: the next owner would take it for made.
func TestNoTallyPassesARefusedTask(t *testing.T) {
	for _, wrong := range []string{"large", "id", "key", "child"} {
		inBubble(t, func(r *rig) {
			r.topics["audit"].Shards = 1
			at := store.Shard{Topic: "audit"}.For(2)
			refused, there := task("refused"), task("there")
			switch wrong {
			case "large":
				refused.Payload = make([]byte, 101)
			case "id":
				there.ID = refused.ID
			case "key":
				refused.ID, refused.Key = place.KeyedID("k"), &store.Key{Text: "k", OnConflict: store.KeyReject}
				there.ID, there.Key = place.KeyedID("k"), &store.Key{Text: "k"}
			}
			if _, _, err := r.db.AddKeyed(r.Context(), at, []*store.Task{there}); err != nil {
				t.Fatal(err)
			}
			child := r.withChild("audit", "w")
			if r.sendOld("audit", task("before")); wrong == "child" {
				other := store.Commit{Puts: []store.Put{{Cell: store.Cell{ID: workflow.CellID(child.unit), Body: []byte("x")}}}}
				if _, _, err := r.db.Store.Commit(r.Context(), at, nil, []store.Commit{other}); err != nil {
					t.Fatal(err)
				}
				r.sends(0, child.work)
			} else {
				r.sendOld("audit", refused)
			}
			r.sendOld("audit", task("behind"))
			r.Store = &dies{faulty: r.db}
			if out := r.oldTurn(new(Outcome)); !errors.Is(out.Err, errBroken) || r.leftOld() != 3 {
				t.Fatalf("%s: %+v, %d are left", wrong, out, r.leftOld())
			}
			r.Store = r.db
			r.walks(func() {})
			if r.leftOld() != 0 || len(r.dead())+len(r.inbox(r.ID)) != 1 {
				t.Errorf("%s: %d are left, dead letters are %v, here is told %v", wrong, r.leftOld(), r.dead(), r.inbox(r.ID))
			}
			r.drain("audit")
			r.once(3)
		})
	}
}

// late holds a commit that brings something to a topic back until something else has happened.
type late struct {
	*faulty
	to   string
	then func()
}

func (f *late) Commit(ctx context.Context, s store.Shard, fence *store.Fence, commits []store.Commit) (store.Stamp, []store.CommitResult, error) {
	if then := f.then; then != nil && s.Topic == f.to {
		f.then = nil
		then()
	}
	return f.faulty.Commit(ctx, s, fence, commits)
}

// An owner of before has a call in flight while the topic is resharded and the next owner delivers the same to the
// shards of now.
func TestWhatAFormerOwnerSendsArrivesOnceOverAReshard(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.topics["audit"].Shards = 1
		r.sendOld("audit", task("first")) // the tally is there
		r.walks(func() {})
		r.sendOld("audit", task("second"))
		p := r.withChild("audit", "w")
		r.sends(0, p.work)
		var next *Outcome
		r.Store = &late{r.db, "audit", func() {
			was := *r.topics["audit"]
			r.reshards()
			if err := r.db.Seal(r.Context(), store.Shard{Topic: "audit", N: was.First}.For(was.Life)); err != nil {
				t.Fatal(err)
			}
			next = r.walks(func() {})
		}}
		former := r.oldTurn(new(Outcome))
		r.drain("audit")
		if r.once(2); len(p.in("audit")) != 1 || r.leftOld() != 0 {
			t.Errorf("the child is in %v: the next owner came to %+v, the former one to %+v", p.in("audit"), next, former)
		}
	})
}

// fullFor refuses some commits that bring something to a shard, as a server at its maxmemory does.
type fullFor struct {
	*faulty
	to    store.Shard
	times int
}

func (f *fullFor) Commit(ctx context.Context, s store.Shard, fence *store.Fence, commits []store.Commit) (store.Stamp, []store.CommitResult, error) {
	if s.Name() == f.to.Name() && f.times > 0 && len(commits[0].Send)+len(commits[0].Adds) > 0 {
		f.times--
		return store.Stamp{}, nil, store.ErrFull
	}
	return f.faulty.Commit(ctx, s, fence, commits)
}

// More messages than one turn reads wait for a topic that is paused, and it is resumed between two turns. The tally is
// the highest number that arrived: what the second turn delivered behind those that waited had them taken for arrived.
func TestAResumeBetweenTwoTurnsSkipsNothing(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.topics["audit"].EnqueuePaused = true
		const n = page + 1000
		for i := range n {
			r.sendOld("audit", task(fmt.Sprint("t", i)))
		}
		out := r.oldTurn(new(Outcome))
		if out.After == 0 || r.leftOld() != n {
			t.Fatalf("the first turn came to %+v, %d messages are left", out, r.leftOld())
		}
		r.topics["audit"].EnqueuePaused = false
		for r.leftOld() > 0 {
			if out = r.oldTurn(out); out.Err != nil {
				t.Fatal(out.Err)
			}
			r.drain("audit")
		}
		r.once(n)
	})
}

// A shard of a topic is full for a moment: none of what follows it in the walk is taken for arrived, in this shard or
// in those that the topic gets meanwhile.
func TestAFullShardSkipsNoTasks(t *testing.T) {
	for _, reshards := range []bool{false, true} {
		inBubble(t, func(r *rig) {
			r.Knobs.RelayPage = 16
			r.Store = &fullFor{r.db, store.Shard{Topic: "audit"}, 1}
			const n = 200
			for i := range n {
				r.sendOld("audit", task(fmt.Sprint("t", i)))
			}
			out, turns := new(Outcome), 0
			for r.leftOld() > 0 {
				if out = r.oldTurn(out); out.Err != nil {
					t.Fatal(out.Err)
				}
				if turns++; turns == 1 && reshards {
					r.topics["audit"] = withNewShards()
				}
				r.drain("audit")
			}
			r.once(n)
		})
	}
}

// What waits is tried again, though the last turn of the walk has passed over nothing.
func TestAWalkRemembersThatSomeWait(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.topics["audit"].EnqueuePaused = true
		const n = page
		for i := range n {
			r.sendOld("audit", task(fmt.Sprint("t", i)))
		}
		r.sendOld("mail", task("goes"))
		if out := r.walks(func() {}); out.Left == 0 || r.leftOld() != n {
			t.Errorf("the last turn of the walk came to %+v, %d messages are left", out, r.leftOld())
		}
		r.topics["audit"].EnqueuePaused = false
		if out := r.walks(func() {}); out.Left != 0 || r.leftOld() != 0 {
			t.Errorf("the last turn came to %+v, %d messages are left", out, r.leftOld())
		}
	})
}

// busy is an out-box that gets something whenever it is read: a walk never comes to its end.
type busy struct {
	*faulty
	sends func()
}

func (b *busy) Parcels(ctx context.Context, s store.Shard, box store.Box, after int64, limit int) ([]store.Parcel, error) {
	if box == store.OutBox {
		b.sends()
	}
	return b.faulty.Parcels(ctx, s, box, after, limit)
}

// What a walk passed over is reached by the next one, also when the out-box is never read to its end.
func TestAWalkEndsUnderLoad(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.topics["audit"].EnqueuePaused = true
		const n = 10*page + 100
		for i := range n {
			r.sendOld("audit", task(fmt.Sprint("t", i)))
		}
		loads, out := 0, new(Outcome)
		r.Store = &busy{r.db, func() {
			loads++
			r.sendOld("mail", task(fmt.Sprint("m", loads)))
		}}
		for range 30 {
			if out = r.oldTurn(out); out.Err != nil {
				t.Fatal(out.Err)
			}
			r.topics["audit"].EnqueuePaused = false
			r.drain("audit")
			time.Sleep(time.Second)
		}
		if len(r.seen) != n {
			t.Errorf("%d of %d tasks arrived", len(r.seen), n)
		}
		r.Store = r.db
		r.walks(func() {})
		r.drain("mail")
		r.once(n + loads)
	})
}

// Ends of steps come once each, in order, also when answers are lost, while the topic takes no tasks, and past tasks
// that wait for it.
func TestEachOldCompletionComesOnce(t *testing.T) {
	for seed := range uint64(50) {
		inBubble(t, func(r *rig) {
			r.fails(seed)
			if seed%2 == 0 {
				r.Knobs.RelayPage = 16
			}
			r.topics["audit"].EnqueuePaused = true
			want := make(map[store.Shard]int)
			for i := range 60 {
				id := fmt.Sprint("w", i%7)
				want[workflow.Shards(r.topics["audit"], id)[0]]++
				r.sendOld("audit", task(fmt.Sprint(i)))
				r.sends(0, store.Message{Topic: "audit", To: workflow.CellID(id), Body: []byte{byte(i)}})
			}
			r.walks(func() {})
			if left := r.leftOld(); left != 60 {
				r.Errorf("seed %d: %d messages are left", seed, left)
			}
			for s, n := range want {
				last := -1
				got := r.inbox(s)
				for _, m := range got {
					if int(m.Body[0]) <= last {
						r.Errorf("seed %d: end %d comes behind %d", seed, m.Body[0], last)
					}
					last = int(m.Body[0])
				}
				if len(got) != n {
					r.Errorf("seed %d: %d of %d ends are in shard %d", seed, len(got), n, s.N)
				}
			}
		})
	}
}

// The ends of two pages go to one shard of workflows, which is full for the first page only.
func TestAFullShardSkipsNoEnds(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.topics["flows"] = &store.Topic{Name: "flows", Life: 3, Shards: 1, MaxPayload: 100}
		to := store.Shard{Topic: "flows"}
		r.Store = &fullFor{r.db, to, 1}
		const n = 2 * page
		for i := range n {
			r.sends(0, store.Message{Topic: "flows", To: store.CellID(fmt.Sprintf("%cw%d", store.CellWorkflow, i)), Body: []byte("the end of a step")})
		}
		for range 10 {
			if r.walks(func() {}); r.leftOld() == 0 {
				break
			}
		}
		if got := len(r.inbox(to)); got != n || r.leftOld() != 0 {
			t.Errorf("%d of %d ends of steps arrived, %d messages are left", got, n, r.leftOld())
		}
	})
}

// putWorkflow puts something that passes for a workflow.
func (r *rig) putWorkflow(at store.Shard, id string) {
	r.Helper()
	header := store.Commit{Puts: []store.Put{{Cell: store.Cell{ID: workflow.CellID(id), Body: []byte("x")}}}}
	if _, results, err := r.db.Store.Commit(r.Context(), at.For(2), nil, []store.Commit{header}); err != nil || results[0].Status != store.OK {
		r.Fatal(results, err)
	}
}

// A workflow is found in the generation of shards in which it began, and what is for one that is gone is forgotten.
func TestOldEndsFindTheirWorkflow(t *testing.T) {
	inBubble(t, func(r *rig) {
		was := workflow.Shards(r.topics["audit"], "w")[0]
		r.putWorkflow(was, "w")
		r.topics["audit"] = withNewShards()
		r.sends(0,
			store.Message{Topic: "audit", To: workflow.CellID("gone"), Body: []byte("x")},
			store.Message{Topic: "audit", To: workflow.CellID("w"), Body: []byte("x")},
			store.Message{Topic: "nowhere", To: workflow.CellID("w"), Body: []byte("x")},
		)
		forgotten, out := 0, new(Outcome)
		for !out.Walked {
			if out = r.oldTurn(out); out.Err != nil {
				t.Fatal(out.Err)
			}
			forgotten += out.Forgotten
		}
		if got := r.inbox(was); len(got) != 1 || r.leftOld() != 0 || forgotten != 2 {
			r.Errorf("the shard got %+v, %d messages are left, %d forgotten", got, r.leftOld(), forgotten)
		}
	})
}

// A node hears a second later that a topic has other shards. The end of the step of a workflow that began in one of
// these is not lost meanwhile, and a child begins in one of these.
func TestWhatIsForWorkflowsFindsShardsThatTheNodeDoesNotKnow(t *testing.T) {
	inBubble(t, func(r *rig) {
		now := withNewShards()
		r.stored = map[string]*store.Topic{"audit": now}
		home := workflow.Shards(now, "w")[0]
		r.putWorkflow(home, "w")
		child := r.withChild("audit", "x")
		r.sends(0, store.Message{Topic: "audit", To: workflow.CellID("w"), Body: []byte("x")}, child.work)
		r.walks(func() {})
		if got := r.inbox(home); home.N < now.First || len(got) != 1 || r.leftOld() != 0 {
			r.Errorf("shard %d got %+v, %d messages are left", home.N, got, r.leftOld())
		}
		r.topics["audit"] = now
		if at := child.in("audit"); len(at) != 1 || at[0].N < now.First {
			r.Errorf("the child is in %v", at)
		}
	})
}

// Children begin once each, also when answers are lost, among tasks.
func TestEachOldChildBeginsOnce(t *testing.T) {
	for seed := range uint64(15) {
		inBubble(t, func(r *rig) {
			r.fails(seed)
			if seed%2 == 0 { // a commit that was made is found to be, instead of made anew by the next turn
				r.Resolve = func(_ context.Context, call func() error) (bool, error) {
					for {
						if err := call(); !errors.Is(err, errBroken) {
							return true, err
						}
					}
				}
			}
			var all []*parent
			for i := range 30 {
				p := r.withChild("audit", fmt.Sprint("w", i))
				all = append(all, p)
				r.sends(0, p.work, p.on(workflow.Pause{}))
				r.sendOld("audit", task(fmt.Sprint(i)))
			}
			r.walks(func() {})
			r.drain("audit")
			if r.once(30); r.leftOld() != 0 || len(r.inbox(r.ID)) != 0 {
				r.Errorf("seed %d: %d messages are left, %d workflows told", seed, r.leftOld(), len(r.inbox(r.ID)))
			}
			for _, p := range all {
				at := p.in("audit")
				if len(at) != 1 || at[0] != workflow.Shards(r.topics["audit"], p.w.ID)[0] {
					r.Errorf("seed %d: the child of %s is in %v", seed, p.w.ID, at)
					continue
				}
				orders := 0
				for _, told := range r.inbox(at[0]) {
					if e, is := workflow.Told(&told).(workflow.Ordered); is && told.To == workflow.CellID(p.unit) && e.What == workflow.AskedToPause {
						orders++
					}
				}
				if orders == 0 {
					r.Errorf("seed %d: the child of %s is not told to pause", seed, p.w.ID)
				}
			}
		})
	}
}

// A child that is sent again, as what made its step was undone by a failover and made anew, is there: also one that is
// sent twice in a page.
func TestAnOldChildIsSentAgain(t *testing.T) {
	inBubble(t, func(r *rig) {
		p := r.withChild("audit", "w")
		for range 2 {
			r.sends(0, p.work, p.work)
			r.walks(func() {})
		}
		if at := p.in("audit"); len(at) != 1 || len(r.inbox(r.ID)) != 0 || r.leftOld() != 0 {
			r.Errorf("it is in %v, the workflow is told %+v, %d messages are left", at, r.inbox(r.ID), r.leftOld())
		}
	})
}

// A child that arrived in a shard of before is not begun anew in one of now, and is found there.
func TestAnOldChildStaysWhereItBegan(t *testing.T) {
	inBubble(t, func(r *rig) {
		p := r.withChild("audit", "w")
		r.sends(0, p.work)
		r.db.drops = func() { // it has arrived, and that is not known here yet
			r.stored = map[string]*store.Topic{"audit": withNewShards()}
			r.walks(func() {})
		}
		r.walks(func() {})
		at := p.in("audit")
		r.sends(0, p.on(workflow.Cancel{}))
		r.walks(func() {})
		r.topics["audit"] = r.stored["audit"]
		if all := p.in("audit"); len(at) != 1 || len(all) != 1 {
			r.Fatalf("it is in %v, then in %v", at, all)
		}
		if in := r.inbox(at[0]); len(in) != 2 || r.leftOld() != 0 {
			r.Errorf("it is told %+v, %d messages are left", in, r.leftOld())
		}
	})
}

// The step of a task or a child whose topic does not take it fails, and there is no dead letter. Whoever asks something
// of it behind that is told that it is gone.
func TestOldStepsThatAreRefusedFail(t *testing.T) {
	for seed := range uint64(10) {
		inBubble(t, func(r *rig) {
			r.fails(seed)
			p, c, taken := r.withTask("nowhere", "w1"), r.withChild("nowhere", "w2"), r.withChild("audit", "w3")
			r.putWorkflow(workflow.Shards(r.topics["audit"], "w3")[0], taken.unit)
			r.sends(0, p.work, c.work, taken.work)
			r.walks(func() {})
			for _, p := range []*parent{p, c, taken} {
				p.tells(workflow.WhyRefused)
			}
			if dead := r.dead(); len(dead) != 0 || r.leftOld() != 0 {
				t.Errorf("dead letters are %v, %d messages are left", dead, r.leftOld())
			}
			late := r.withChild("nowhere", "w4")
			r.sends(0, late.on(workflow.Pause{}), message.Ask("nowhere", "t1", "w5"))
			r.walks(func() {})
			late.tells(workflow.WhyDeleted)
			if n := len(r.inbox(r.ID)); n != 5 || r.leftOld() != 0 {
				t.Errorf("%d ends are told, %d messages are left", n, r.leftOld())
			}
		})
	}
}

// What is asked to end is deleted where it is pending. What still waits for its topic is taken back, and the workflow
// told. To be paused, a child has to be there.
func TestOldAsksWaitForTheWorkThatTheyAreAbout(t *testing.T) {
	inBubble(t, func(r *rig) {
		there := r.withTask("audit", "w1")
		r.sends(0, there.work)
		r.walks(func() {})
		r.topics["audit"].EnqueuePaused = true
		back, stays, child, paused := r.withTask("audit", "w2"), r.withTask("audit", "w3"), r.withChild("audit", "w4"), r.withChild("audit", "w5")
		r.sends(0, back.work, stays.work, child.work, paused.work)
		r.sends(0, message.Ask("audit", there.unit, "w1"), message.Ask("audit", back.unit, "w2"), paused.on(workflow.Pause{}), child.on(workflow.Cancel{}))
		if out := r.walks(func() {}); out.Left != 3 || r.leftOld() != 3 {
			t.Errorf("%+v, %d messages are left", out, r.leftOld())
		}
		back.tells(workflow.WhyDeleted)
		child.tells(workflow.WhyDeleted)
		at := place.In(r.topics["audit"], r.topics["audit"].Active(), there.unit)
		if ends := r.inbox(at); len(ends) != 1 || ends[0].Ended == nil || ends[0].Ended.Kind != store.ChangeDeleted || !workflow.GoesHome(&ends[0]) {
			t.Errorf("there it is told %+v", ends)
		}
		r.topics["audit"].EnqueuePaused = false
		r.walks(func() {})
		in := paused.in("audit")
		if len(in) != 1 || len(child.in("audit")) != 0 || r.leftOld() != 0 {
			t.Fatalf("the children are in %v and %v, %d messages are left", in, child.in("audit"), r.leftOld())
		}
		told := r.inbox(in[0])
		if e, ok := workflow.Told(&told[len(told)-1]).(workflow.Ordered); !ok || e != (workflow.Ordered{What: workflow.AskedToPause, Number: 2}) {
			t.Errorf("it is told %+v", told)
		}
		if r.drain("audit"); len(r.seen) != 1 {
			t.Errorf("audit has %v", r.seen)
		}
	})
}

// A task that arrived, and is asked to end before that is known here, is asked there: in the same page, or because a
// former owner brought it.
func TestAnOldAskKnowsWhatArrived(t *testing.T) {
	for _, former := range []bool{false, true} {
		inBubble(t, func(r *rig) {
			p := r.withTask("audit", "w1")
			if r.sends(0, p.work); former {
				r.Store = &dies{faulty: r.db}
				if out := r.oldTurn(new(Outcome)); out.Err == nil || r.leftOld() != 1 {
					t.Fatalf("%+v, %d are left", out, r.leftOld())
				}
				r.Store = r.db
				r.topics["audit"].EnqueuePaused = true
			}
			r.sends(0, message.Ask("audit", p.unit, "w1"))
			r.walks(func() {})
			at := place.In(r.topics["audit"], r.topics["audit"].Active(), p.unit)
			left := 0
			if former { // until its topic goes on
				left = 1
			}
			if ends := r.inbox(at); len(ends) != 1 || ends[0].Ended.Kind != store.ChangeDeleted || r.leftOld() != left || len(r.inbox(r.ID)) != 0 {
				r.Errorf("there it is told %+v, %d messages are left", ends, r.leftOld())
			}
		})
	}
}

package actors_test

import (
	"context"
	"time"

	history "github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
	"github.com/ddq-io/ddq/store/place"
)

// simFaults is what is wrong with the store at the moment.
type simFaults struct {
	down      bool    // refuses everything
	silent    bool    // takes nothing and answers nothing
	loseReply float64 // does what it is asked, and the answer is lost
	loseCall  float64
	slow      float64 // chance of a call to take seconds

	full map[store.Shard]int // shards that take nothing new
	shut map[store.Shard]int // shards that refuse everything, as those of a primary that is away
}

// newSimFaults are none.
func newSimFaults() simFaults {
	return simFaults{full: make(map[store.Shard]int), shut: make(map[store.Shard]int)}
}

// simLies are broken promises of the store, for proof that a run notices.
type simLies struct {
	fences  bool // every claim counts as the current one
	acks    bool // an ack of a hold that is over is answered OK
	adds    bool // a task in ten is answered OK and forgotten
	early   bool // holds are granted before the task is due
	doubled bool // a hold is not remembered

	unordered bool // tasks have no ordering key

	messages bool // a message in ten that is sent is forgotten
	rates    bool // tokens that are taken are not counted
	caps     bool // and permits
	thirst   bool // of a rate there are tokens for nobody, once some were taken
}

// ofLimits reports whether a run needs limits to show a lie.
func (l *simLies) ofLimits() bool { return l.rates || l.caps || l.thirst }

// keep is what a store that lies about tasks keeps of them.
func (l *simLies) keep(tasks []*store.Task) []*store.Task {
	if !l.unordered {
		return tasks
	}
	kept := make([]*store.Task, len(tasks))
	for i, t := range tasks {
		other := *t
		if t.Traits != nil {
			traits := *t.Traits
			traits.OrderingKey = ""
			other.Traits = &traits
		}
		kept[i] = &other
	}
	return kept
}

// simStore is the store as one node reaches it.
type simStore struct {
	s    *sim
	node *simNode
}

var _ store.Store = (*simStore)(nil)

// simBrings is a commit that brings messages of another shard.
const simBrings = "bring"

// simCall is a store call under way.
type simCall struct {
	turn  simTurn // of who waits for it
	done  chan struct{}
	err   error
	apply func() error
}

// call has the loop carry out a call, with a way there and a way back.
func (st *simStore) call(ctx context.Context, op string, shard store.Shard, writes bool, apply func() error) error {
	n, s := st.node, st.s
	if n.dead.Load() {
		return store.ErrClosed
	}
	s.myTurn(n)
	c := &simCall{turn: s.whose(), done: make(chan struct{}), apply: apply}
	s.ask(simArrival{call: op, n: shard.N, do: func() { s.send(n, c, op, shard, writes) }})
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
		return ctx.Err()
	case <-n.killed:
		return store.ErrClosed
	}
}

// send decides the fate of a call on its way to the store.
func (s *sim) send(n *simNode, c *simCall, op string, shard store.Shard, writes bool) {
	lost := store.ErrUnavailable
	if writes {
		lost = store.ErrUnknown
	}
	there, back := s.lag(), s.lag()
	if s.chance(s.faults.slow) {
		there += s.between(100*time.Millisecond, 6*time.Second)
	}
	switch {
	case s.faults.shut[shard.For(0)] > 0:
		if op == simBrings {
			s.sometimes("a shard is away when messages are brought to it")
		}
		s.answer(n, c, there+back, store.ErrUnavailable)
	case s.faults.down:
		s.answer(n, c, there+back, store.ErrUnavailable)
	case n.cut, s.faults.silent, s.chance(s.faults.loseCall):
		s.log("%s %s %v lost", n.key, op, shard)
		s.answer(n, c, s.between(200*time.Millisecond, 4*time.Second), lost)
	default:
		s.after(there, func() { s.reach(n, c, op, shard, back, lost) })
	}
}

// reach has the store do it.
func (s *sim) reach(n *simNode, c *simCall, op string, shard store.Shard, back time.Duration, lost error) {
	if n.paused && !n.dead.Load() && s.chance(0.5) { // it had not left yet
		n.later = append(n.later, func() { s.reach(n, c, op, shard, back, lost) })
		return
	}
	err := c.apply()
	s.log("%s %s %v: %v", n.key, op, shard, err)
	if n.cut || s.chance(s.faults.loseReply) {
		s.log("%s %s %v: answer lost", n.key, op, shard)
		s.answer(n, c, s.between(200*time.Millisecond, 4*time.Second), lost)
		return
	}
	s.answer(n, c, back, err)
}

func (s *sim) answer(n *simNode, c *simCall, in time.Duration, err error) {
	s.after(in, func() {
		n.whenAwake(func() {
			c.err = err
			s.give(c.turn)
			close(c.done)
		})
	})
}

// fence watches promise P6: nothing is held or taken back under a claim that is over.
func (s *sim) fenced(n *simNode, op string, shard store.Shard, f store.Fence, err error) error {
	if shard = shard.For(0); err == nil && s.fences[shard] != f {
		s.broken("%s of %v under epoch %d by %s, after the claim of epoch %d", op, shard, f.Epoch, n.key, s.fences[shard].Epoch)
	}
	return err
}

var simContext = context.Background() // the store never waits

// The store is on two primaries, with a clock each. The odd shards are on the second one;
// sessions, topics, rates and permits on the first, whose clock is that of the nodes and of
// everyone else.

// ahead is by how much the clock of a shard's primary is ahead of the first.
func (s *sim) ahead(sh store.Shard) time.Duration { return time.Duration(sh.N%2) * s.plan.ahead }

// on is the store with the clock of a shard's primary.
func (s *sim) on(sh store.Shard) *memstore.Store {
	s.mem.SetClock(s.ahead(sh))
	return s.mem
}

// now is the time of a shard's primary.
func (s *sim) now(sh store.Shard) store.Millis {
	return store.Millis(time.Now().Add(s.ahead(sh)).UnixMilli())
}

// shardOf is where a task lies. Topics always have the same number of shards.
func (s *sim) shardOf(id string) store.Shard {
	if s.chains.topics[id] != "" {
		return store.Shard{Topic: simChained, N: place.ShardOf(id, s.plan.chained)}
	}
	if s.away[id] {
		return store.Shard{Topic: simAway, N: place.ShardOf(id, s.plan.away)}
	}
	return store.Shard{Topic: simTopic, N: place.ShardOf(id, s.plan.shards)}
}

// askStore is call for what returns one thing, which is lost with the answer.
func askStore[T any](ctx context.Context, st *simStore, op string, sh store.Shard, writes bool, do func(*memstore.Store) (T, error)) (T, error) {
	var got, none T
	err := st.call(ctx, op, sh, writes, func() (err error) {
		got, err = do(st.s.on(sh))
		return err
	})
	if err != nil {
		return none, err
	}
	return got, nil
}

// askAll is askStore for a batch about one shard.
func askAll[T any](ctx context.Context, st *simStore, op string, sh store.Shard, writes bool, do func(*memstore.Store) (store.Stamp, []T, error)) (store.Stamp, []T, error) {
	type reply struct {
		stamp store.Stamp
		items []T
	}
	r, err := askStore(ctx, st, op, sh, writes, func(m *memstore.Store) (r reply, err error) {
		r.stamp, r.items, err = do(m)
		return r, err
	})
	return r.stamp, r.items, err
}

// tell is call for what returns nothing.
func (st *simStore) tell(ctx context.Context, op string, sh store.Shard, do func(*memstore.Store) error) error {
	return st.call(ctx, op, sh, true, func() error { return do(st.s.on(sh)) })
}

func (st *simStore) Add(ctx context.Context, sh store.Shard, tasks []*store.Task) (store.Stamp, []store.AddResult, error) {
	return askAll(ctx, st, "add", sh, true, func(m *memstore.Store) (store.Stamp, []store.AddResult, error) {
		if st.s.faults.full[sh.For(0)] > 0 {
			return store.Stamp{}, nil, store.ErrFull
		}
		stamp, r, err := m.Add(simContext, sh, st.s.plan.lies.keep(tasks))
		if st.s.plan.lies.adds && err == nil && st.s.chance(0.1) {
			_, _, err = m.Remove(simContext, sh, store.Removals(tasks[0].ID))
		}
		return stamp, r, err
	})
}

func (st *simStore) Ack(ctx context.Context, sh store.Shard, acks []store.Ack, retention time.Duration) (store.Stamp, []store.Status, error) {
	return askAll(ctx, st, "ack", sh, true, func(m *memstore.Store) (store.Stamp, []store.Status, error) {
		stamp, r, err := m.Ack(simContext, sh, acks, retention)
		for i := range r {
			if st.s.plan.lies.acks {
				r[i] = store.OK
			}
		}
		return stamp, r, err
	})
}

func (st *simStore) Nack(ctx context.Context, sh store.Shard, nacks []store.Nack) (store.Stamp, []store.NackResult, error) {
	return askAll(ctx, st, "nack", sh, true, func(m *memstore.Store) (store.Stamp, []store.NackResult, error) {
		stamp, r, err := m.Nack(simContext, sh, nacks)
		for i := range r {
			if nacks[i].Reason == store.ReasonRateLimited && r[i].Status == store.OK {
				if _, dead, err := m.Get(simContext, sh, []string{nacks[i].ID}); err == nil && dead[0].Reason == store.ReasonRateLimited {
					st.s.doomed(nacks[i].ID)
				}
			}
		}
		return stamp, r, err
	})
}

func (st *simStore) Extend(ctx context.Context, sh store.Shard, extends []store.Extend) (store.Stamp, []store.ExtendResult, error) {
	return askAll(ctx, st, "extend", sh, true, func(m *memstore.Store) (store.Stamp, []store.ExtendResult, error) {
		return m.Extend(simContext, sh, extends)
	})
}

func (st *simStore) Checkpoint(ctx context.Context, sh store.Shard, checkpoints []store.Checkpoint) (store.Stamp, []store.Status, error) {
	return askAll(ctx, st, "checkpoint", sh, true, func(m *memstore.Store) (store.Stamp, []store.Status, error) {
		return m.Checkpoint(simContext, sh, checkpoints)
	})
}

func (st *simStore) Cancel(ctx context.Context, sh store.Shard, ids []string) (store.Stamp, []store.CancelResult, error) {
	return askAll(ctx, st, "cancel", sh, true, func(m *memstore.Store) (store.Stamp, []store.CancelResult, error) {
		return m.Cancel(simContext, sh, ids)
	})
}

func (st *simStore) History(ctx context.Context, sh store.Shard, ids []string) ([]store.History, error) {
	return askStore(ctx, st, "history", sh, false, func(m *memstore.Store) ([]store.History, error) {
		return m.History(simContext, sh, ids)
	})
}

func (st *simStore) Journal(ctx context.Context, sh store.Shard, id string) ([]store.JournalEntry, error) {
	return askStore(ctx, st, "journal", sh, false, func(m *memstore.Store) ([]store.JournalEntry, error) {
		return m.Journal(simContext, sh, id)
	})
}

func (st *simStore) Remove(ctx context.Context, sh store.Shard, removals []store.Removal) (store.Stamp, []store.RemoveResult, error) {
	return askAll(ctx, st, "remove", sh, true, func(m *memstore.Store) (store.Stamp, []store.RemoveResult, error) {
		return m.Remove(simContext, sh, removals)
	})
}

func (st *simStore) Edit(ctx context.Context, sh store.Shard, edits []store.Edit) (store.Stamp, []store.EditResult, error) {
	return askAll(ctx, st, "edit", sh, true, func(m *memstore.Store) (store.Stamp, []store.EditResult, error) {
		return m.Edit(simContext, sh, edits)
	})
}

func (st *simStore) Histogram(ctx context.Context, sh store.Shard, bounds []store.Millis) (store.Stamp, []int64, error) {
	return askAll(ctx, st, "histogram", sh, false, func(m *memstore.Store) (store.Stamp, []int64, error) {
		return m.Histogram(simContext, sh, bounds)
	})
}

func (st *simStore) RemoveDead(ctx context.Context, sh store.Shard, ids []string) (store.Stamp, []store.Status, error) {
	return askAll(ctx, st, "remove dead", sh, true, func(m *memstore.Store) (store.Stamp, []store.Status, error) {
		_, was, _ := m.Get(simContext, sh, ids)
		stamp, removed, err := m.RemoveDead(simContext, sh, ids)
		for i := range removed { // a schedule deletes what is left of runs that it replaced, and nothing else
			if t := &was[i]; removed[i] == store.OK && t.Reason == store.ReasonCancelled && t.RunOf != nil {
				st.s.client("schedules").ask(history.Event{Op: history.Delete, Task: t.ID})(history.Event{}, nil)
			}
		}
		return stamp, removed, err
	})
}

func (st *simStore) Hold(ctx context.Context, sh store.Shard, f store.Fence, holds []store.Hold) (store.Stamp, []store.HoldResult, error) {
	return askAll(ctx, st, "hold", sh, true, func(m *memstore.Store) (store.Stamp, []store.HoldResult, error) {
		if st.s.plan.lies.fences {
			stamp, r, _ := m.Hold(simContext, sh, st.s.fences[sh.For(0)], holds)
			return stamp, r, st.s.fenced(st.node, "hold", sh, f, nil)
		}
		if st.s.plan.lies.early {
			m.SetClock(st.s.ahead(sh) + time.Second)
		}
		if st.s.plan.lies.doubled && st.s.chance(0.1) {
			stamp, r, err := m.Clone().Hold(simContext, sh, f, holds)
			return stamp, r, err
		}
		stamp, r, err := m.Hold(simContext, sh, f, holds)
		for i := range r {
			if r[i].Status == store.OK {
				st.s.dooms(sh.Topic, holds[i].ID, &holds[i])
			}
		}
		for i := range r {
			switch r[i].Status {
			case store.OK:
				st.s.holds(sh.Topic, holds[i].ID, &holds[i])
				continue
			case store.Expired:
				st.s.expired(holds[i].ID)
			}
			st.s.holdsNot(sh.Topic, &holds[i])
		}
		return stamp, r, st.s.fenced(st.node, "hold", sh, f, err)
	})
}

func (st *simStore) HoldNew(ctx context.Context, sh store.Shard, f store.Fence, tasks []*store.Task, holds []store.Hold) (store.Stamp, []store.AddResult, error) {
	return askAll(ctx, st, "hold new", sh, true, func(m *memstore.Store) (store.Stamp, []store.AddResult, error) {
		if st.s.faults.full[sh.For(0)] > 0 {
			return store.Stamp{}, nil, store.ErrFull
		}
		stamp, r, err := m.HoldNew(simContext, sh, f, tasks, holds)
		for i := range r {
			if r[i].Status == store.Held {
				st.s.holds(sh.Topic, tasks[i].ID, &holds[i])
			}
		}
		return stamp, r, st.s.fenced(st.node, "hold new", sh, f, err)
	})
}

func (st *simStore) Recover(ctx context.Context, sh store.Shard, f store.Fence, nacks []store.Nack) (store.Stamp, []store.NackResult, error) {
	return askAll(ctx, st, "recover", sh, true, func(m *memstore.Store) (store.Stamp, []store.NackResult, error) {
		stamp, r, err := m.Recover(simContext, sh, f, nacks)
		return stamp, r, st.s.fenced(st.node, "recover", sh, f, err)
	})
}

func (st *simStore) Get(ctx context.Context, sh store.Shard, ids []string) (store.Stamp, []store.Snapshot, error) {
	return askAll(ctx, st, "get", sh, false, func(m *memstore.Store) (store.Stamp, []store.Snapshot, error) {
		return m.Get(simContext, sh, ids)
	})
}

func (st *simStore) Window(ctx context.Context, sh store.Shard, w store.WindowQuery) (store.Stamp, []store.Entry, error) {
	return askAll(ctx, st, "window", sh, false, func(m *memstore.Store) (store.Stamp, []store.Entry, error) {
		return m.Window(simContext, sh, w)
	})
}

func (st *simStore) AddKeyed(ctx context.Context, sh store.Shard, tasks []*store.Task) (store.Stamp, []store.AddResult, error) {
	return askAll(ctx, st, "add keyed", sh, true, func(m *memstore.Store) (store.Stamp, []store.AddResult, error) {
		if st.s.faults.full[sh.For(0)] > 0 {
			return store.Stamp{}, nil, store.ErrFull
		}
		stamp, r, err := m.AddKeyed(simContext, sh, tasks)
		for i := range r {
			switch r[i].Status {
			case store.Added, store.Passed, store.Replaced:
				id := store.CellID(store.CellTask) + store.CellID(tasks[i].ID)
				st.s.arrives(sh.Topic, id)
				st.s.messages.apart[simArrived{sh.Topic, id}] = true
				if st.s.chains.keyed[tasks[i].ID] {
					st.s.chained(tasks[i])
				}
			}
		}
		return stamp, r, err
	})
}

func (st *simStore) TrimKeys(ctx context.Context, sh store.Shard, limit int) (int, error) {
	return askStore(ctx, st, "trim keys", sh, true, func(m *memstore.Store) (int, error) { return m.TrimKeys(simContext, sh, limit) })
}

func (st *simStore) TrimDead(ctx context.Context, sh store.Shard, upTo store.Entry, limit int) (int, error) {
	return askStore(ctx, st, "trim dead", sh, true, func(m *memstore.Store) (int, error) { return m.TrimDead(simContext, sh, upTo, limit) })
}

func (st *simStore) DeadWindow(ctx context.Context, sh store.Shard, w store.WindowQuery) ([]store.Entry, error) {
	return askStore(ctx, st, "dead window", sh, false, func(m *memstore.Store) ([]store.Entry, error) { return m.DeadWindow(simContext, sh, w) })
}

func (st *simStore) InOrder(ctx context.Context, sh store.Shard, keys []string, limit int) (store.Stamp, [][]store.Ordered, error) {
	return askAll(ctx, st, "in order", sh, false, func(m *memstore.Store) (store.Stamp, [][]store.Ordered, error) {
		return m.InOrder(simContext, sh, keys, limit)
	})
}

func (st *simStore) Lanes(ctx context.Context, sh store.Shard, after *store.Lane, limit int) ([]store.LaneHead, error) {
	return askStore(ctx, st, "lanes", sh, false, func(m *memstore.Store) ([]store.LaneHead, error) {
		return m.Lanes(simContext, sh, after, limit)
	})
}

func (st *simStore) Lookup(ctx context.Context, sh store.Shard, q store.IndexQuery) ([]store.IndexEntry, error) {
	return askStore(ctx, st, "lookup", sh, false, func(m *memstore.Store) ([]store.IndexEntry, error) {
		return m.Lookup(simContext, sh, q)
	})
}

func (st *simStore) Reindex(ctx context.Context, sh store.Shard, set store.IndexSet, cursor string, limit int) (string, error) {
	return askStore(ctx, st, "reindex", sh, true, func(m *memstore.Store) (string, error) {
		return m.Reindex(simContext, sh, set, cursor, limit)
	})
}

func (st *simStore) Trim(ctx context.Context, sh store.Shard, limit int) (int, error) {
	return askStore(ctx, st, "trim", sh, true, func(m *memstore.Store) (int, error) { return m.Trim(simContext, sh, limit) })
}

func (st *simStore) Seal(ctx context.Context, sh store.Shard) error {
	return st.tell(ctx, "seal", sh, func(m *memstore.Store) error { return m.Seal(simContext, sh) })
}

func (st *simStore) DropShard(ctx context.Context, sh store.Shard) error {
	return st.tell(ctx, "drop", sh, func(m *memstore.Store) error { return m.DropShard(simContext, sh) })
}

func (st *simStore) OpenShard(ctx context.Context, sh store.Shard, was store.ShardLife) error {
	return st.tell(ctx, "open", sh, func(m *memstore.Store) error { return m.OpenShard(simContext, sh, was) })
}

func (st *simStore) Claim(ctx context.Context, sh store.Shard, session store.Session) (store.Stamp, store.Fence, error) {
	stamp, fences, err := askAll(ctx, st, "claim", sh, true, func(m *memstore.Store) (store.Stamp, []store.Fence, error) {
		m.SetClock(0) // sessions go by the first primary
		stamp, f, err := m.Claim(simContext, sh, session)
		if err == nil {
			stamp.Now = stamp.Now.Add(st.s.ahead(sh))
			st.s.fences[sh.For(0)] = f
		}
		return stamp, []store.Fence{f}, err
	})
	if err != nil {
		return stamp, store.Fence{}, err
	}
	return stamp, fences[0], nil
}

func (st *simStore) Release(ctx context.Context, sh store.Shard, f store.Fence) error {
	return st.tell(ctx, "release", sh, func(m *memstore.Store) error { return m.Release(simContext, sh, f) })
}

func (st *simStore) RenewSession(ctx context.Context, session store.Session) (store.Renewal, error) {
	return askStore(ctx, st, "renew", store.Shard{}, true, func(m *memstore.Store) (store.Renewal, error) {
		return m.RenewSession(simContext, session)
	})
}

// simPage is a page of a walk.
type simPage[T any] struct {
	items []T
	next  string
}

func (st *simStore) Running(ctx context.Context, sh store.Shard, cursor string, limit int) ([]store.Running, string, error) {
	page, err := askStore(ctx, st, "running", sh, false, func(m *memstore.Store) (p simPage[store.Running], err error) {
		p.items, p.next, err = m.Running(simContext, sh, cursor, limit)
		return p, err
	})
	return page.items, page.next, err
}

func (st *simStore) List(ctx context.Context, sh store.Shard, kind store.Kind, cursor string, limit int) ([]store.Snapshot, string, error) {
	page, err := askStore(ctx, st, "list", sh, false, func(m *memstore.Store) (p simPage[store.Snapshot], err error) {
		p.items, p.next, err = m.List(simContext, sh, kind, cursor, limit)
		return p, err
	})
	return page.items, page.next, err
}

func (st *simStore) Sweep(ctx context.Context, sh store.Shard, f store.Fence, cursor string, limit int) (int, string, error) {
	page, err := askStore(ctx, st, "sweep", sh, false, func(m *memstore.Store) (p simPage[struct{}], err error) {
		var n int
		n, p.next, err = m.Sweep(simContext, sh, f, cursor, limit)
		p.items = make([]struct{}, n)
		return p, err
	})
	return len(page.items), page.next, err
}

func (st *simStore) Stats(ctx context.Context, shards []store.Shard) ([]store.Stats, error) {
	return askStore(ctx, st, "stats", store.Shard{N: len(shards)}, false, func(m *memstore.Store) ([]store.Stats, error) {
		return st.s.numbers(shards, m.Stats)
	})
}

func (st *simStore) Counts(ctx context.Context, shards []store.Shard) ([]store.Stats, error) {
	return askStore(ctx, st, "counts", store.Shard{N: len(shards)}, false, func(m *memstore.Store) ([]store.Stats, error) {
		return st.s.numbers(shards, m.Counts)
	})
}

// numbers asks for those of each shard by its own clock.
func (s *sim) numbers(shards []store.Shard, ask func(context.Context, []store.Shard) ([]store.Stats, error)) (all []store.Stats, err error) {
	for i, sh := range shards {
		s.on(sh)
		one, err := ask(simContext, shards[i:i+1])
		if err != nil {
			return nil, err
		}
		all = append(all, one...)
	}
	return all, nil
}

func (st *simStore) PutTopic(ctx context.Context, t store.Topic) (store.Topic, error) {
	return askStore(ctx, st, "put topic", store.Shard{}, true, func(m *memstore.Store) (store.Topic, error) {
		return m.PutTopic(simContext, t)
	})
}

func (st *simStore) GetTopic(ctx context.Context, name string) (store.Topic, error) {
	return askStore(ctx, st, "get topic", store.Shard{}, false, func(m *memstore.Store) (store.Topic, error) {
		return m.GetTopic(simContext, name)
	})
}

func (st *simStore) ListTopics(ctx context.Context) ([]store.Topic, error) {
	return askStore(ctx, st, "list topics", store.Shard{}, false, func(m *memstore.Store) ([]store.Topic, error) {
		return m.ListTopics(simContext)
	})
}

func (st *simStore) DeleteTopic(ctx context.Context, name string, life uint64) error {
	return st.tell(ctx, "delete topic", store.Shard{}, func(m *memstore.Store) error { return m.DeleteTopic(simContext, name, life) })
}

func (st *simStore) Clock(ctx context.Context) (time.Time, error) {
	return askStore(ctx, st, "clock", store.Shard{}, false, func(m *memstore.Store) (time.Time, error) { return m.Clock(simContext) })
}

func (st *simStore) Info(ctx context.Context) (store.Info, error) {
	info, err := st.s.mem.Info(ctx)
	info.ManyClocks = st.s.plan.ahead != 0
	return info, err
}

func (st *simStore) Close() error { return nil }

// Limits are of no shard.

func (st *simStore) Reserve(ctx context.Context, asked []store.Reservation) ([]store.Tokens, error) {
	return askStore(ctx, st, "reserve", store.Shard{}, true, func(m *memstore.Store) ([]store.Tokens, error) { return m.Reserve(simContext, asked) })
}

func (st *simStore) Acquire(ctx context.Context, asked []store.Acquire) ([]store.Acquired, error) {
	return askStore(ctx, st, "acquire", store.Shard{}, true, func(m *memstore.Store) ([]store.Acquired, error) { return m.Acquire(simContext, asked) })
}

func (st *simStore) Move(ctx context.Context, permits []store.Permit) error {
	return st.call(ctx, "move permits", store.Shard{}, true, func() error { return st.s.mem.Move(simContext, permits) })
}

func (st *simStore) Free(ctx context.Context, permits []store.Permit) ([][]string, error) {
	return askStore(ctx, st, "free permits", store.Shard{}, true, func(m *memstore.Store) ([][]string, error) {
		return m.Free(simContext, permits)
	})
}

func (st *simStore) Take(ctx context.Context, q *store.Take) (*store.TakeReply, error) {
	return askStore(ctx, st, "take", store.Shard{}, true, func(m *memstore.Store) (*store.TakeReply, error) {
		lies, asked := &st.s.plan.lies, *q
		if lies.rates || lies.caps {
			m, asked.Call = m.Clone(), 0
		}
		got, err := m.Take(simContext, &asked)
		st.s.takes(q, got)
		if lies.thirst && time.Since(st.s.start) > time.Minute && err == nil && (q.Limits.Rate.Limited() || q.Limits.KeyRate.Limited()) {
			for i := range got.Wants {
				limit := store.Limit{Key: store.LimitKey{Topic: q.Topic}, Rate: true}
				if !q.Limits.Rate.Limited() {
					limit.Key.Key = q.Wants[i].RateKey
				}
				got.Wants[i] = store.Taking{Status: store.NoToken, Lacks: limit, Again: got.Now.Add(time.Second)}
			}
		}
		return got, err
	})
}

func (st *simStore) Watch(ctx context.Context, sh store.Shard, w store.Watching) error {
	return st.tell(ctx, "watch", sh, func(m *memstore.Store) error { return m.Watch(simContext, sh, w) })
}

func (st *simStore) Changes(ctx context.Context, reads []store.LogRead) ([]store.LogPage, error) {
	return askStore(ctx, st, "changes", store.Shard{}, false, func(m *memstore.Store) ([]store.LogPage, error) { return m.Changes(simContext, reads) })
}

func (st *simStore) TrimLog(ctx context.Context, sh store.Shard, limit int) (int, error) {
	return askStore(ctx, st, "trim log", sh, true, func(m *memstore.Store) (int, error) { return m.TrimLog(simContext, sh, limit) })
}

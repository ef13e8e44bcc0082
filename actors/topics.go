package actors

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/ddq-io/ddq/actors/ordered"
	"github.com/ddq-io/ddq/actors/runtime"
	"github.com/ddq-io/ddq/actors/shard"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// An open topic is what the store says it is, also when that is an earlier state: a
// failover of the store can undo changes, and versions are given again then. So what
// counts is not the version but what was read last, and everything that is taken in
// was read or written under the lock of that topic: of two answers the later one is taken in last.
//
// Shards are the exception. Tasks may be in those of a generation that the store has
// forgotten, and the ones before it may be sealed, so such a generation is put back.

// Topics are the topics that are open on a node. It is safe for concurrent use once the
// node runs.
type Topics struct {
	// Admit says what topics pass that are created here; nil: nothing. It is set before the node is used.
	Admit Admission

	Caps NamespaceCaps // that topics are under

	rt         *runtime.Runtime
	cfg        *Config
	supervisor *actor.PID // nil: the node has not started

	locks  topicLocks // of opening and changing topics, and of reading what they are
	opened sync.Map   // name -> *Topic
	turns  turns      // of opened

	closedIdle atomic.Bool // see HasClosedIdle
	lives      shardLives
	wakes      wakeTimes
	shown      shownDepths
	forgotten  forgotten
}

// Admission lets a topic be created, or says why it may not. Whoever creates it calls done when it is there, or
// is not going to be.
type Admission func(ctx context.Context, topic string) (done func(), err error)

// Lock waits for the lock of a topic, or for the end of ctx. What a topic is changes
// only under it.
func (s *Topics) Lock(ctx context.Context, topic string) (unlock func(), err error) {
	return s.locks.Lock(ctx, topic)
}

// Opened returns a topic that is open here.
func (s *Topics) Opened(name string) (t *Topic, open bool) {
	ref, open := s.opened.Load(name)
	if !open {
		return nil, false
	}
	return ref.(*Topic), true
}

// Each calls do for each open topic, in the order of their names.
func (s *Topics) Each(do func(*Topic)) {
	all := make(map[string]*Topic)
	s.opened.Range(func(name, ref any) bool {
		all[name.(string)] = ref.(*Topic)
		return true
	})
	for _, ref := range ordered.All(all, cmp.Compare) {
		do(ref)
	}
}

// broadcast tells every topic of a change that the runtime knows already.
func (s *Topics) broadcast(m any) {
	if s.rt.Running.Load() {
		s.rt.Send(s.supervisor, &tellTopics{m})
	}
}

// Refresh applies what the store says of a topic.
func (s *Topics) Refresh(ctx context.Context, name string) error {
	_, err := s.Read(ctx, name)
	return err
}

// Read is Refresh, and returns what that is. Calls that wait for each other share what the store says.
func (s *Topics) Read(ctx context.Context, name string) (store.Topic, error) {
	return s.locks.share(ctx, name, func() (store.Topic, error) {
		t, err := s.Stored(ctx, name)
		if err != nil {
			return store.Topic{}, err
		}
		return t, s.Configure(ctx, t)
	})
}

// Stored returns what the store says of a topic, after a generation of shards that it
// has forgotten was put back. The caller has the topic's lock.
func (s *Topics) Stored(ctx context.Context, name string) (store.Topic, error) {
	t, err := s.rt.Store.GetTopic(ctx, name)
	if err != nil {
		return store.Topic{}, err
	}
	ref, open := s.opened.Load(name)
	if !open {
		return t, nil
	}
	was := ref.(*Topic).shared.Current.Load()
	again, undone := restored(was, &t)
	if !undone {
		return t, nil
	}
	switch again, err = s.rt.Store.PutTopic(ctx, again); {
	case errors.Is(err, store.ErrVersion): // another node was quicker
		return s.rt.Store.GetTopic(ctx, name)
	case err != nil:
		return store.Topic{}, err
	}
	s.rt.Log.Warn("the store has forgotten a reshard, which is made again", "topic", name, "shards", again.Shards, "first", again.First)
	return again, nil
}

// Configure makes a configuration effective where its topic is open. The caller has
// the topic's lock since before it read or wrote t.
func (s *Topics) Configure(ctx context.Context, t store.Topic) error {
	open, ok := s.opened.Load(t.Name)
	if !ok {
		return nil
	}
	t = s.Caps.Bounded(t)
	ref := open.(*Topic)
	switch was := ref.shared.Current.Load(); {
	case *was == t || replaced(was, &t): // another topic of that name: see CloseReplaced
		return nil
	case was.Active() == t.Active() && was.Former == t.Former:
		ref.shared.Current.Store(&t)
		s.rt.Send(ref.pid, &shard.Configured{Topic: t})
		openQueues(s, s.rt.Topics.Gate.Changed(&t, s.rt.Clock.Millis()))
		return nil
	}
	if err := s.lives.seal(ctx, &t); err != nil {
		return err
	}
	done := make(chan struct{})
	s.rt.Send(ref.pid, &reshaped{topic: t, done: done})
	select {
	case <-done:
		return s.learnClocks(ctx, &t)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// learnClocks has the store tell of the clocks of a topic's shards before any due time is
// counted by them.
func (s *Topics) learnClocks(ctx context.Context, t *store.Topic) error {
	if !s.rt.ManyClocks {
		return nil
	}
	_, err := s.rt.StatsOf(ctx, place.Shards(t))
	return err
}

// replaced reports whether t is another topic than was, of the same name: it has another
// life; or neither the same shards nor later ones, and was is not what became of it.
func replaced(was, t *store.Topic) bool {
	if t.Life != was.Life {
		return true
	}
	if t.Active() == was.Active() || t.First >= was.End() {
		return false
	}
	_, undone := restored(was, t)
	return !undone
}

// restored reports whether t is a state of before the last reshard that was tells of, and
// returns t with the shards of both. There is room for MaxFormer generations, and none
// for two that have a number in common: after another reshard, or too many, t is what
// counts, and was is replaced.
func restored(was, t *store.Topic) (again store.Topic, undone bool) {
	if t.Life != was.Life || t.End() > was.First {
		return store.Topic{}, false
	}
	former := slices.Concat(t.Spans(), was.Spans()[1:])
	slices.SortFunc(former, func(a, b store.Span) int { return cmp.Or(a.First-b.First, a.Shards-b.Shards) })
	former = slices.Compact(former)
	for i := range former[1:] {
		if former[i].First+former[i].Shards > former[i+1].First {
			return store.Topic{}, false
		}
	}
	if len(former) > store.MaxFormer {
		return store.Topic{}, false
	}
	again = *t
	again.First, again.Shards, again.Former = was.First, was.Shards, [store.MaxFormer]store.Span{}
	copy(again.Former[:], former)
	return again, true
}

// CloseReplaced closes topics that were deleted at another node, and those that were
// created anew with another number of shards: they open again on first use.
func (s *Topics) CloseReplaced(ctx context.Context, topics []store.Topic) {
	byName := make(map[string]*store.Topic, len(topics))
	for i := range topics {
		byName[topics[i].Name] = &topics[i]
	}
	s.Each(func(ref *Topic) {
		was := ref.shared.Current.Load()
		if t := byName[was.Name]; t == nil || replaced(was, t) {
			s.closeIfReplaced(ctx, was)
		}
	})
}

// closeIfReplaced asks again: the topic may be younger than the list.
func (s *Topics) closeIfReplaced(ctx context.Context, was *store.Topic) {
	unlock, err := s.locks.Lock(ctx, was.Name)
	if err != nil {
		return
	}
	defer unlock()
	t, err := s.rt.Store.GetTopic(ctx, was.Name)
	switch {
	case errors.Is(err, store.ErrTopicNotFound) || err == nil && t.Life != was.Life:
		s.rt.Log.Info("topic closed: it was deleted elsewhere", "topic", was.Name)
		s.rt.Meter.Forget(was.Name)
		s.forgotten.close(*was)
	case err == nil && replaced(was, &t):
		s.rt.Log.Error("topic closed: the store has forgotten a reshard, and shards that it does not have may have tasks",
			"topic", was.Name, "first", was.First, "shards", was.Shards)
	default:
		return
	}
	s.CloseLocked(ctx, was.Name)
}

// Subscriptions is how many workers of this node subscribe to a topic.
func (s *Topics) Subscriptions(ctx context.Context, name string) (int, error) {
	ref, ok := s.opened.Load(name)
	if !ok {
		return 0, nil
	}
	reply := make(chan int, 1)
	s.rt.Send(ref.(*Topic).pid, &countSubscriptions{reply: reply})
	select {
	case n := <-reply:
		return n, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// CloseLocked closes a topic here. The caller has its lock.
func (s *Topics) CloseLocked(ctx context.Context, name string) {
	ref, open := s.opened.LoadAndDelete(name)
	if !open {
		return
	}
	s.turns.remove(ref.(*Topic))
	done := make(chan struct{})
	s.rt.Send(s.supervisor, &closeTopic{name: name, done: done})
	awaitAll(ctx, []chan struct{}{done})
}

// Beats is how many turns the ticks of all shards are spread over, so that they do
// not ask the store at the same moment.
const Beats = 16

const (
	// dozersWatched is how many of the shards that doze are watched at a tick: one in
	// so many, and at most so many.
	dozersWatched     = 10
	mostDozersWatched = 2
)

// TickLoads has the shards of a turn look ahead into the store, but for those that doze.
func (s *Topics) TickLoads(turn int) { s.tick(&shard.LoadTick{}, turn) }

// TickWatches has the shards of a turn look for what no timer knows; of those that doze, a few
// in turns.
func (s *Topics) TickWatches(turn int) {
	dozing := s.tick(&shard.WatchTick{}, turn)
	if len(dozing) == 0 {
		return
	}
	first := s.turns.watched[turn]
	n := min((len(dozing)+dozersWatched-1)/dozersWatched, mostDozersWatched)
	for i := range n {
		s.rt.Send(dozing[(first+i)%len(dozing)], &shard.WatchTick{})
	}
	s.turns.watched[turn] = (first + n) % len(dozing)
}

// tick returns the shards that doze, which are not told, but for those of other nodes.
func (s *Topics) tick(m any, turn int) (dozing []*actor.PID) {
	for _, ref := range s.turns.at(turn) {
		for _, p := range *ref.layout.Load() {
			if p.pid == nil {
				continue
			}
			switch until := p.Doze.Until(); {
			case until == 0 || until <= p.Clock.Millis():
				s.rt.Send(p.pid, m)
			case until < math.MaxInt64:
				dozing = append(dozing, p.pid)
			}
		}
	}
	return dozing
}

// turns are the open topics by the turn at which their shards are ticked: to walk
// all of them for each would be most of what a node with many quiet topics does.
type turns struct {
	mu   sync.Mutex
	refs [Beats][]*Topic // guarded by mu; a slice does not change

	watched [Beats]int // of the shards that doze, where TickWatches goes on; its caller's
}

func (t *turns) at(turn int) []*Topic {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.refs[turn]
}

func (t *turns) add(ref *Topic) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.refs[ref.turn] = append(slices.Clip(t.refs[ref.turn]), ref)
}

func (t *turns) remove(ref *Topic) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.refs[ref.turn] = slices.DeleteFunc(slices.Clone(t.refs[ref.turn]), func(r *Topic) bool { return r == ref })
}

// KeepLogs has shards keep logs, or none.
func (s *Topics) KeepLogs(ctx context.Context, shards []store.Shard, w store.Watching) error {
	var mu sync.Mutex
	var wg sync.WaitGroup
	var errs error
	for _, shard := range shards {
		wg.Go(func() {
			_, err := s.rt.Resolve(ctx, func() error { return s.rt.Store.Watch(ctx, shard, w) })
			mu.Lock()
			defer mu.Unlock()
			errs = errors.Join(errs, err)
		})
	}
	wg.Wait()
	return errs
}

package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/redisstore"
)

// load takes tasks through add, hold and ack in several shards at once, as
// servers do: every call is repeated with the same arguments until its outcome
// is known. It owns a goroutine per shard.
type load struct {
	t       *testing.T
	shards  []shardOf
	keepers []*keeper // by shard; each is its goroutine's
	cancel  context.CancelFunc
	failed  context.Context // ended when nobody waits for the outcome of calls any more
	wg      sync.WaitGroup

	mu     sync.Mutex
	moved  *sync.Cond            // a cycle has ended; on mu
	cycles []int                 // by shard; guarded by mu
	want   []map[string]expected // by shard, from the answers; guarded by mu
	broken []error               // guarded by mu
}

// expected is what the store must know about a task at the end.
type expected struct {
	state store.State
	token store.Token // running or done
}

// startLoad claims shards of a topic and begins.
func startLoad(t *testing.T, s *redisstore.Store, shards int) *load {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	failed, fail := context.WithCancel(context.Background())
	l := &load{t: t, cancel: cancel, failed: failed, cycles: make([]int, shards), want: make([]map[string]expected, shards)}
	l.moved = sync.NewCond(&l.mu)
	first := claim(t, s)
	for n := range shards {
		shard := first
		shard.shard.N = n
		if n > 0 {
			_, fence, err := s.Claim(ctx, shard.shard, first.session)
			if err != nil {
				t.Fatal(err)
			}
			shard.fence = fence
		}
		l.shards = append(l.shards, shard)
		l.want[n] = make(map[string]expected)
		l.keepers = append(l.keepers, &keeper{load: l, n: n, told: make(map[string]int)})
	}
	for n := range shards {
		l.wg.Go(func() {
			for ctx.Err() == nil {
				l.cycle(n)
			}
		})
	}
	t.Cleanup(func() { cancel(); fail(); l.wg.Wait() })
	return l
}

// cycle adds eight tasks, has two takers fight for the first six, and acks five. The tasks
// of every other cycle are made by a cell, which hears of their ends.
func (l *load) cycle(n int) {
	s, ctx := l.shards[n], l.failed
	tasks := newTasks(8, 1)
	want := make(map[string]expected)
	for _, task := range tasks {
		want[task.ID] = expected{state: store.StateReady}
	}
	if l.keepers[n].turn() {
		l.keepers[n].add(tasks)
	} else {
		l.repeat(n, "add", func() error {
			_, results, err := s.Add(ctx, s.shard, tasks)
			for _, r := range results {
				if r.Status != store.Added && r.Status != store.Duplicate {
					return fmt.Errorf("add: status %d", r.Status)
				}
			}
			return err
		})
	}
	acks := l.fight(n, tasks[:6])
	for i, ack := range acks {
		want[ack.ID] = expected{store.StateRunning, ack.Token}
		if i < 5 {
			want[ack.ID] = expected{store.StateDone, ack.Token}
		}
	}
	l.repeat(n, "ack", func() error {
		_, statuses, err := s.Ack(ctx, s.shard, acks[:min(5, len(acks))], time.Hour)
		for _, status := range statuses {
			if status != store.OK && status != store.Already {
				return fmt.Errorf("ack: status %d", status)
			}
		}
		return err
	})
	l.keepers[n].take()
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, e := range want {
		l.want[n][id] = e
	}
	l.cycles[n]++
	l.moved.Broadcast()
}

// fight has two takers hold the same tasks at once, and returns the holds.
func (l *load) fight(n int, tasks []*store.Task) []store.Ack {
	s, ctx := l.shards[n], l.failed
	var won [2][]bool
	var tokens [2][]store.Ack
	var wg sync.WaitGroup
	for taker := range 2 {
		holds, acks := holdsFor(tasks)
		tokens[taker], won[taker] = acks, make([]bool, len(tasks))
		wg.Go(func() {
			l.repeat(n, "hold", func() error {
				_, results, err := s.Hold(ctx, s.shard, s.fence, holds)
				for i, r := range results {
					won[taker][i] = r.Status == store.OK
					if r.Status != store.OK && r.Status != store.WrongState {
						return fmt.Errorf("hold: status %d", r.Status)
					}
				}
				return err
			})
		})
	}
	wg.Wait()
	var acks []store.Ack
	for i := range tasks {
		switch {
		case won[0][i] == won[1][i]:
			l.report(fmt.Errorf("task %s: held by both or none: %v", tasks[i].ID, won[0][i]))
		case won[0][i]:
			acks = append(acks, tokens[0][i])
		default:
			acks = append(acks, tokens[1][i])
		}
	}
	return acks
}

// repeat makes a call until its outcome is known.
func (l *load) repeat(n int, what string, call func() error) {
	for {
		err := call()
		switch {
		case err == nil, l.failed.Err() != nil:
			return
		case errors.Is(err, store.ErrUnknown), errors.Is(err, store.ErrUnavailable):
			time.Sleep(5 * time.Millisecond) // as callers do
		default:
			l.report(fmt.Errorf("shard %d: %s: %w", n, what, err))
			return
		}
	}
}

func (l *load) report(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken = append(l.broken, err)
}

// await waits until a shard has gone through some more cycles.
func (l *load) await(shard, more int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for end := l.cycles[shard] + more; l.cycles[shard] < end; {
		l.moved.Wait()
	}
}

// awaitAll waits until every shard has.
func (l *load) awaitAll(more int) {
	for n := range l.shards {
		l.await(n, more)
	}
}

// check stops the load and compares the store with what it answered.
func (l *load) check() {
	l.t.Helper()
	l.cancel()
	l.wg.Wait()
	for i, err := range l.broken {
		if i < 5 {
			l.t.Error(err)
		}
	}
	tasks := 0
	for n, s := range l.shards {
		ids := make([]string, 0, len(l.want[n]))
		for id := range l.want[n] {
			ids = append(ids, id)
		}
		_, got, err := s.Get(context.Background(), s.shard, ids)
		if err != nil {
			l.t.Fatal(err)
		}
		for _, task := range got {
			tasks++
			if want := l.want[n][task.ID]; task.State != want.state || task.Token != want.token {
				l.t.Errorf("shard %d: task %s is %v under %x, the answers said %v under %x", n, task.ID, task.State, task.Token, want.state, want.token)
			}
		}
	}
	l.t.Logf("%d tasks are as the answers said", tasks)
	for n, k := range l.keepers {
		k.check(l.want[n])
	}
}

// keeper keeps the one cell of a shard, as owners do: it makes tasks that tell the cell, and
// takes what they leave.
type keeper struct {
	load    *load
	n       int // the shard
	turns   int
	version int64          // of the cell
	taken   int64          // number of the last parcel
	made    []string       // ids of tasks
	told    map[string]int // how often it was told of an end, by id
}

// turn reports whether the cell makes the tasks of this cycle.
func (k *keeper) turn() bool {
	k.turns++
	return k.turns%2 == 0
}

// commit changes the cell until it is known that it did. One that is of the next version
// already was changed by a commit whose answer was lost.
func (k *keeper) commit(c store.Commit) {
	s := k.load.shards[k.n]
	c.Puts = []store.Put{{Cell: listedCell("sload", "x"), If: k.version}}
	k.load.repeat(k.n, "commit", func() error {
		_, results, err := s.Commit(k.load.failed, s.shard, &s.fence, []store.Commit{c})
		if err == nil && results[0].Status != store.OK && (results[0].Status != store.Stale || results[0].Cell.Version != k.version+1) {
			return fmt.Errorf("commit of version %d: %+v", k.version, results[0])
		}
		return err
	})
	k.version++
}

func (k *keeper) add(tasks []*store.Task) {
	for _, task := range tasks {
		task.Tells = "sload"
		k.made = append(k.made, task.ID)
	}
	k.commit(store.Commit{Adds: tasks})
}

// take takes what came since, and forgets it.
func (k *keeper) take() {
	s := k.load.shards[k.n]
	var page []store.Parcel
	k.load.repeat(k.n, "parcels", func() (err error) {
		page, err = s.Parcels(k.load.failed, s.shard, store.InBox, k.taken, 100)
		return err
	})
	if len(page) == 0 {
		return
	}
	for _, p := range page {
		k.told[p.Ended.ID]++
		k.taken = p.Number
	}
	k.commit(store.Commit{Take: k.taken})
}

// check fails the test unless the cell heard of the end of each of its tasks that is over,
// once, and of nothing else.
func (k *keeper) check(want map[string]expected) {
	k.load.t.Helper()
	ends := 0
	for _, id := range k.made {
		e, known := want[id]
		if !known {
			continue // of a cycle that broke off
		}
		n := 0
		if e.state == store.StateDone {
			n, ends = 1, ends+1
		}
		if k.told[id] != n {
			k.load.t.Errorf("shard %d: told %d times of the end of task %s, which is %v", k.n, k.told[id], id, e.state)
		}
	}
	if len(k.told) != ends {
		k.load.t.Errorf("shard %d: told of the ends of %d tasks, want %d", k.n, len(k.told), ends)
	}
}

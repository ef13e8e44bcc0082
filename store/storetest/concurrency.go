package storetest

import (
	"errors"
	"fmt"
	"sync"

	"github.com/ddq-io/ddq/store"
)

func concurrencyCases() []entry {
	return []entry{
		{"Concurrency/OneAddWins", concurrentAdds},
		{"Concurrency/OneHoldWinsAndEveryTaskIsAckedOnce", concurrentLives},
		{"Concurrency/AckRacesRecover", concurrentRecover},
		{"Concurrency/ClaimsRaceHolds", concurrentClaims},
		{"Concurrency/HoldNewRacesHoldNew", concurrentHoldNew},
		{"Concurrency/EditsRaceHolds", concurrentEdits},
	}
}

const crowd = 8

// together runs do once for each member of the crowd, at the same time, and
// fails the case with their errors.
func (f *fixture) together(do func(member int) error) {
	f.Helper()
	var wg sync.WaitGroup
	errs := make([]error, crowd)
	for member := range crowd {
		wg.Go(func() { errs[member] = do(member) })
	}
	wg.Wait()
	for _, err := range errs {
		f.ok("together", err)
	}
}

// concurrentAdds lets a crowd add different requests under the same ids.
func concurrentAdds(f *fixture) {
	ids := numbered(200)
	due := f.now().Add(long)
	var won [crowd]int
	f.together(func(member int) error {
		for _, id := range ids {
			t := task(id, due)
			t.Fingerprint = uint64(member)
			_, results, err := f.s.Add(f.ctx, f.shard, []*store.Task{t})
			if err != nil {
				return err
			}
			switch results[0].Status {
			case store.Added:
				won[member]++
			case store.Conflict:
			default:
				return fmt.Errorf("status of a racing add is %s", results[0].Status)
			}
		}
		return nil
	})
	equal(f, "number of added tasks", sum(won[:]), len(ids))
	equal(f, "number of pending tasks", f.stats().Pending, int64(len(ids)))
	equal(f, "seq", f.seq(), int64(len(ids)))
}

// lives keeps book over what a crowd does with the same tasks.
type lives struct {
	mu    sync.Mutex
	held  map[string]int // id -> how many believe that they hold it
	acked map[string]int
}

// take notes that a member was given a task; it fails if another has it.
func (l *lives) take(id string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held[id]++; l.held[id] > 1 {
		return fmt.Errorf("task %q has %d holds at once", id, l.held[id])
	}
	if l.acked[id] > 0 {
		return fmt.Errorf("task %q is held after its ack", id)
	}
	return nil
}

// give notes that a member is about to end its hold, with an ack or without.
func (l *lives) give(id string, ack bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held[id]--
	if ack {
		l.acked[id]++
	}
}

// concurrentLives lets a crowd add, then hold, release and ack the same tasks,
// each in its own order. A member notes a hold after it got it and the end before it
// gives it back, so that two holds in the book were two holds in the store.
func concurrentLives(f *fixture) {
	ids := numbered(120)
	book := &lives{held: make(map[string]int), acked: make(map[string]int)}
	f.together(func(int) error {
		_, _, err := f.s.Add(f.ctx, f.shard, tasks(1, ids...))
		return err
	})
	equal(f, "number of pending tasks", f.stats().Pending, int64(len(ids)))
	f.together(func(member int) error {
		for round := range 3 {
			for start := 0; start < len(ids); start += 10 {
				from := (start + member*30 + round*10) % len(ids)
				if err := f.live(book, ids[from:from+10], (member+round)%3 == 0); err != nil {
					return err
				}
			}
		}
		return nil
	})
	for _, id := range ids { // what was given back last
		got := f.get(id)
		waitUntil(f, f.s, got.Due)
		if got.State != store.StateDone {
			f.ok("last round", f.live(book, []string{id}, true))
		}
	}
	for _, id := range ids {
		equal(f, "number of acks of "+id, book.acked[id], 1)
	}
	f.states(store.StateDone, ids...)
	stats := f.stats()
	equal(f, "number of done tasks", stats.Done, int64(len(ids)))
	equal(f, "number of other tasks", stats.Pending+stats.Running+stats.Dead, 0)
}

// live holds those of the tasks that it can get, and ends the holds.
func (f *fixture) live(book *lives, ids []string, ack bool) error {
	holds := holdsOf(long, ids...)
	_, results, err := f.s.Hold(f.ctx, f.shard, f.fence, holds)
	if err != nil {
		return err
	}
	for i, result := range results {
		if result.Status != store.OK {
			continue
		}
		if err := book.take(ids[i]); err != nil {
			return err
		}
		book.give(ids[i], ack)
		if err := f.end(holds[i], ack); err != nil {
			return err
		}
	}
	return nil
}

// end acks or releases one hold, which must be the current one.
func (f *fixture) end(h store.Hold, ack bool) error {
	status := store.Status(0)
	if ack {
		_, results, err := f.s.Ack(f.ctx, f.shard, []store.Ack{{ID: h.ID, Token: h.Token}}, long)
		if err != nil {
			return err
		}
		status = results[0]
	} else {
		_, results, err := f.s.Nack(f.ctx, f.shard, []store.Nack{{ID: h.ID, Token: h.Token, Uncount: true}})
		if err != nil {
			return err
		}
		status = results[0].Status
	}
	if status != store.OK {
		return fmt.Errorf("end of the hold of %q: %s", h.ID, status)
	}
	return nil
}

// concurrentRecover lets workers ack while their holds run out: exactly one
// side gets each task.
func concurrentRecover(f *fixture) {
	ids := numbered(100)
	f.ready(ids...)
	tokens := f.holdFor(short, ids...)
	waitUntil(f, f.s, f.get(ids[len(ids)-1]).Deadline+1)
	var ended [crowd]int
	f.together(func(member int) error {
		for i, id := range ids {
			ok, err := f.raceFor(id, tokens[i], member%2 == 0)
			if err != nil {
				return err
			}
			if ok {
				ended[member]++
			}
		}
		return nil
	})
	equal(f, "number of ended holds", sum(ended[:]), len(ids))
	stats := f.stats()
	equal(f, "number of done and pending tasks", stats.Done+stats.Pending, int64(len(ids)))
	equal(f, "number of running tasks", stats.Running, 0)
}

// raceFor acks or recovers one hold, and reports whether it was the one to end it.
func (f *fixture) raceFor(id string, token store.Token, ack bool) (bool, error) {
	if ack {
		_, results, err := f.s.Ack(f.ctx, f.shard, []store.Ack{{ID: id, Token: token}}, long)
		return err == nil && results[0] == store.OK, err
	}
	_, results, err := f.s.Recover(f.ctx, f.shard, f.fence, []store.Nack{{ID: id, Token: token, Delay: long}})
	return err == nil && results[0].Status == store.OK, err
}

// concurrentClaims lets a crowd claim the shard over and over, each to hold the
// same tasks under its own claim: whatever the order, no task is held twice. A
// claim that loses to another at the same moment may be told ErrOwned.
func concurrentClaims(f *fixture) {
	ids := numbered(50)
	f.ready(ids...)
	var claims, held [crowd]int
	f.together(func(member int) error {
		for round := range 10 {
			_, fence, err := f.s.Claim(f.ctx, f.shard, f.session)
			if errors.Is(err, store.ErrOwned) {
				continue
			}
			if err != nil {
				return err
			}
			claims[member]++
			at := (member*10 + round*5) % len(ids)
			_, results, err := f.s.Hold(f.ctx, f.shard, fence, holdsOf(long, ids[at:at+5]...))
			if err != nil && !errors.Is(err, store.ErrFenced) {
				return err
			}
			held[member] += count(results, store.OK)
		}
		return nil
	})
	equal(f, "number of holds", int64(sum(held[:])), f.stats().Running)
	equal(f, "epoch", f.stats().Epoch, f.fence.Epoch+int64(sum(claims[:])))
}

// concurrentHoldNew lets a crowd bring the same new tasks and hold them.
func concurrentHoldNew(f *fixture) {
	ids := numbered(200)
	var held [crowd]int
	f.together(func(member int) error {
		for at := 0; at < len(ids); at += 10 {
			from := (at + member*20) % len(ids)
			batch := ids[from : from+10]
			_, results, err := f.s.HoldNew(f.ctx, f.shard, f.fence, tasks(1, batch...), holdsOf(long, batch...))
			if err != nil {
				return err
			}
			held[member] += count(results, store.Held)
			if n := count(results, store.Held) + count(results, store.Duplicate); n != len(batch) {
				return fmt.Errorf("%d of %d new tasks are neither held nor duplicates", len(batch)-n, len(batch))
			}
		}
		return nil
	})
	equal(f, "number of holds", sum(held[:]), len(ids))
	equal(f, "number of running tasks", f.stats().Running, int64(len(ids)))
	f.states(store.StateRunning, ids...)
}

// count returns how many results of a batch have a status.
func count(results any, status store.Status) int {
	n := 0
	for _, s := range statusesOf(results) {
		if s == status {
			n++
		}
	}
	return n
}

func sum(numbers []int) int {
	total := 0
	for _, n := range numbers {
		total += n
	}
	return total
}

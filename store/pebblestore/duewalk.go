package pebblestore

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/ddq-io/ddq/store"
)

// dueWalker makes the counts of shards that somebody asks for. It owns one goroutine, started
// by startDueWalker and gone once close returns.
type dueWalker struct {
	*base
	wake   chan struct{} // holds one: there are shards to walk
	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{}

	mu    sync.Mutex
	asked []*shard // guarded by mu: to walk
}

func startDueWalker(b *base) *dueWalker {
	w := &dueWalker{base: b, wake: make(chan struct{}, 1), done: make(chan struct{})}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	go w.run()
	return w
}

// ask has the counts of a shard made. It does not wait.
func (w *dueWalker) ask(sh *shard) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if sh.number == 0 || slices.Contains(w.asked, sh) {
		return
	}
	w.asked = append(w.asked, sh)
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// close may be called twice.
func (w *dueWalker) close() {
	w.cancel()
	<-w.done
}

func (w *dueWalker) run() {
	defer close(w.done)
	for {
		select {
		case <-w.ctx.Done():
			return
		case <-w.wake:
		}
		for sh := w.next(); sh != nil; sh = w.next() {
			if err := w.walk(sh); err != nil && w.ctx.Err() == nil {
				w.dir.Log.Warn("due tasks not counted: each question reads them", "topic", sh.name.Topic, "shard", sh.name.N, "err", err)
			}
		}
	}
}

// next returns a shard to walk, nil when there is none.
func (w *dueWalker) next() *shard {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.asked) == 0 {
		return nil
	}
	sh := w.asked[0]
	w.asked = w.asked[1:]
	return sh
}

// walk makes the counts of a shard. Its pauses are as long as its work.
func (w *dueWalker) walk(sh *shard) error {
	if err := w.dir.Enter(w.ctx); err != nil {
		return err
	}
	defer w.dir.Leave()
	sh.mu.Lock()
	if err := sh.load(w.dir); err != nil || sh.due != nil {
		sh.mu.Unlock()
		return err
	}
	counts, snapshot := newDueCounts(store.Millis(now().UnixMilli())), w.dir.Snapshot()
	sh.due = counts
	sh.mu.Unlock()
	defer snapshot.Close()

	found := newDueCounts(0)
	seen, began := 0, time.Now()
	err := snapshot.Scan(appendPrefix(nil, sh.number, tablePending), appendPrefix(nil, sh.number, tablePending+1), func(key, _ []byte) (bool, error) {
		if len(key) >= prefixLen+8 {
			found.add(dueChange{minuteOf(millisAt(key[prefixLen:])), 1})
		}
		if seen++; seen%checkEvery != 0 {
			return true, nil
		}
		err := w.dir.Failed()
		if err == nil {
			err = w.rest(time.Since(began))
		}
		began = time.Now()
		return true, err
	})
	sh.mu.Lock()
	defer sh.mu.Unlock()
	switch {
	case sh.due != counts: // given up meanwhile
	case err != nil:
		sh.due = nil
	default:
		counts.complement(found)
	}
	return err
}

func (w *dueWalker) rest(d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-w.ctx.Done():
		return w.ctx.Err()
	}
}

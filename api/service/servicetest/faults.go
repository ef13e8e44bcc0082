package servicetest

import (
	"context"
	"fmt"
	"time"

	"github.com/ddq-io/ddq/store"
)

func (f *FaultyStore) Set(edit func(*FaultyStore)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	edit(f)
}

func (f *FaultyStore) before() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.Down {
		return store.ErrUnavailable
	}
	return nil
}

func (f *FaultyStore) after(call string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.Losing[call] > 0 {
		f.Losing[call]--
		return fmt.Errorf("reply lost: %w", store.ErrUnknown)
	}
	return nil
}

func (f *FaultyStore) isBroken(call string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.Broken[call] > 0 {
		f.Broken[call]--
		return true
	}
	return false
}

// delay waits for as long as replies to a call are late.
func (f *FaultyStore) delay(call string) {
	f.mu.Lock()
	late := f.Late[call]
	f.mu.Unlock()
	if late != nil {
		<-late
	}
}

func (f *FaultyStore) Add(ctx context.Context, s store.Shard, tasks []*store.Task) (store.Stamp, []store.AddResult, error) {
	return through(f, "add", func() (store.Stamp, []store.AddResult, error) { return f.Store.Add(ctx, s, tasks) })
}

func (f *FaultyStore) HoldNew(ctx context.Context, s store.Shard, fence store.Fence, tasks []*store.Task, holds []store.Hold) (store.Stamp, []store.AddResult, error) {
	return through(f, "hold_new", func() (store.Stamp, []store.AddResult, error) {
		return f.Store.HoldNew(ctx, s, fence, tasks, holds)
	})
}

func (f *FaultyStore) Hold(ctx context.Context, s store.Shard, fence store.Fence, holds []store.Hold) (store.Stamp, []store.HoldResult, error) {
	return through(f, "hold", func() (store.Stamp, []store.HoldResult, error) { return f.Store.Hold(ctx, s, fence, holds) })
}

func (f *FaultyStore) Ack(ctx context.Context, s store.Shard, acks []store.Ack, keep time.Duration) (store.Stamp, []store.Status, error) {
	return through(f, "ack", func() (store.Stamp, []store.Status, error) { return f.Store.Ack(ctx, s, acks, keep) })
}

func (f *FaultyStore) Nack(ctx context.Context, s store.Shard, nacks []store.Nack) (store.Stamp, []store.NackResult, error) {
	return through(f, "nack", func() (store.Stamp, []store.NackResult, error) { return f.Store.Nack(ctx, s, nacks) })
}

func (f *FaultyStore) Remove(ctx context.Context, s store.Shard, removals []store.Removal) (store.Stamp, []store.RemoveResult, error) {
	return through(f, "remove", func() (store.Stamp, []store.RemoveResult, error) { return f.Store.Remove(ctx, s, removals) })
}

func (f *FaultyStore) Window(ctx context.Context, s store.Shard, w store.WindowQuery) (store.Stamp, []store.Entry, error) {
	return through(f, "window", func() (store.Stamp, []store.Entry, error) { return f.Store.Window(ctx, s, w) })
}

func (f *FaultyStore) Get(ctx context.Context, s store.Shard, ids []string) (store.Stamp, []store.Snapshot, error) {
	return through(f, "get", func() (store.Stamp, []store.Snapshot, error) { return f.Store.Get(ctx, s, ids) })
}

func (f *FaultyStore) Running(ctx context.Context, s store.Shard, cursor string, limit int) ([]store.Running, string, error) {
	next := ""
	_, page, err := through(f, "running", func() (_ store.Stamp, page []store.Running, err error) {
		page, next, err = f.Store.Running(ctx, s, cursor, limit)
		return store.Stamp{}, page, err
	})
	return page, next, err
}

func (f *FaultyStore) Acquire(ctx context.Context, asked []store.Acquire) ([]store.Acquired, error) {
	_, got, err := through(f, "acquire", func() (store.Stamp, []store.Acquired, error) {
		got, err := f.Store.Acquire(ctx, asked)
		return store.Stamp{}, got, err
	})
	return got, err
}

func (f *FaultyStore) Free(ctx context.Context, permits []store.Permit) ([][]string, error) {
	_, got, err := through(f, "free", func() (store.Stamp, [][]string, error) {
		got, err := f.Store.Free(ctx, permits)
		return store.Stamp{}, got, err
	})
	return got, err
}

func (f *FaultyStore) Claim(ctx context.Context, s store.Shard, session store.Session) (store.Stamp, store.Fence, error) {
	if err := f.before(); err != nil {
		return store.Stamp{}, store.Fence{}, err
	}
	return f.Store.Claim(ctx, s, session)
}

func (f *FaultyStore) RenewSession(ctx context.Context, session store.Session) (store.Renewal, error) {
	if err := f.before(); err != nil {
		return store.Renewal{}, err
	}
	return f.Store.RenewSession(ctx, session)
}

func (f *FaultyStore) Commit(ctx context.Context, s store.Shard, fence *store.Fence, commits []store.Commit) (store.Stamp, []store.CommitResult, error) {
	return through(f, "commit", func() (store.Stamp, []store.CommitResult, error) { return f.cellStore.Commit(ctx, s, fence, commits) })
}

func (f *FaultyStore) Wakes(ctx context.Context, s store.Shard, q store.WakeQuery) (store.Stamp, []store.Wake, error) {
	return through(f, "wakes", func() (store.Stamp, []store.Wake, error) { return f.cellStore.Wakes(ctx, s, q) })
}

package changes

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ddq-io/ddq/api/ddqv1"
)

const (
	// shown is how many changes a feed has, and with how many of each shard it begins.
	shown = 100
	// idleFor is after how long without a look a feed ends.
	idleFor = 10 * time.Second
	// settleFor is how long the first look waits for changes of before.
	settleFor = 300 * time.Millisecond
	// maxFeeds bounds the feeds of a node.
	maxFeeds = 200
)

// asked is what somebody looks for, and with which rights. The server knows no beginnings of ids: the
// feed drops what does not have it.
type asked struct {
	topic, id string
	kind      ddqv1.ChangeKind
	attribute string // key=value; empty: any
	cursor    string // bytes; empty: the last changes
	oldest    bool   // without a cursor: all that are kept
	rights    string
}

func (a *asked) request() *ddqv1.WatchTasksRequest {
	r := &ddqv1.WatchTasksRequest{Topic: a.topic, Cursor: []byte(a.cursor)}
	switch {
	case a.oldest:
		r.From = ddqv1.WatchFrom_WATCH_FROM_OLDEST
	case a.cursor == "":
		r.Last = shown
	}
	if a.kind != 0 {
		r.Kinds = []ddqv1.ChangeKind{a.kind}
	}
	if key, value, ok := strings.Cut(a.attribute, "="); ok {
		r.Attributes = []*ddqv1.Attribute{{Key: key, Value: value}}
	}
	return r
}

// feed is what happened of late. It owns one goroutine, started by feeds.of and gone when nobody looks,
// when the server ends the watch, or once feeds.close returns.
type feed struct {
	asked asked
	stop  context.CancelFunc
	idle  *time.Timer   // stops it
	begun chan struct{} // closed when the first changes have come, or an error
	begin func()        // closes begun, once

	mu sync.Mutex
	seen
}

// seen are changes, and the cursor behind them.
type seen struct {
	rows   []*ddqv1.TaskChange // the latest first
	cursor []byte
	count  int64 // of all that came
	err    error // it has ended
}

// feeds are those that somebody looks at. It is safe for concurrent use.
type feeds struct {
	queue   ddqv1.DelayQueueServiceClient
	running sync.WaitGroup

	mu     sync.Mutex
	all    map[asked]*feed // guarded by mu
	closed bool            // guarded by mu
}

func newFeeds(queue ddqv1.DelayQueueServiceClient) *feeds {
	return &feeds{queue: queue, all: make(map[asked]*feed)}
}

// close ends all feeds.
func (fs *feeds) close() {
	fs.mu.Lock()
	fs.closed = true
	for _, f := range fs.all {
		f.stop()
	}
	fs.mu.Unlock()
	fs.running.Wait()
}

// look returns what a feed has, which is begun for it if there is none. The calls of the feed are made
// as those of ctx are.
func (fs *feeds) look(ctx context.Context, a asked) (seen, error) {
	f, err := fs.of(ctx, a)
	if err != nil {
		return seen{}, err
	}
	settled := time.NewTimer(settleFor)
	defer settled.Stop()
	select {
	case <-f.begun:
	case <-settled.C:
	case <-ctx.Done():
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.seen
	now.rows = slices.Clone(f.rows)
	return now, now.err
}

func (fs *feeds) of(ctx context.Context, a asked) (*feed, error) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if f := fs.all[a]; f != nil {
		f.idle.Reset(idleFor)
		return f, nil
	}
	if fs.closed || len(fs.all) >= maxFeeds {
		return nil, status.Error(codes.ResourceExhausted, "changes of too many topics are looked at")
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	begun := make(chan struct{})
	f := &feed{asked: a, stop: stop, idle: time.AfterFunc(idleFor, stop), begun: begun, begin: sync.OnceFunc(func() { close(begun) })}
	fs.all[a] = f
	fs.running.Go(func() {
		defer f.begin()
		f.follow(ctx, fs.queue)
		f.idle.Stop()
		stop()
		fs.mu.Lock()
		defer fs.mu.Unlock()
		delete(fs.all, a)
	})
	return f, nil
}

// follow reads what happens until the watch ends.
func (f *feed) follow(ctx context.Context, queue ddqv1.DelayQueueServiceClient) {
	stream, err := queue.WatchTasks(ctx, f.asked.request())
	for first := true; err == nil; first = false {
		var r *ddqv1.WatchTasksResponse
		if r, err = stream.Recv(); err == nil {
			f.add(r)
			if !first { // it has no changes
				f.begin()
			}
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

func (f *feed) add(r *ddqv1.WatchTasksResponse) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cursor = r.GetCursor()
	for _, c := range r.GetChanges() {
		if strings.HasPrefix(c.GetId(), f.asked.id) {
			f.count++
			f.rows = append(f.rows, c)
		}
	}
	slices.SortStableFunc(f.rows, later)
	f.rows = f.rows[:min(len(f.rows), shown)]
}

// later puts the latest change first, and those of a shard in order.
func later(a, b *ddqv1.TaskChange) int {
	return cmp.Or(cmp.Compare(b.GetTimeUnixUs(), a.GetTimeUnixUs()), cmp.Compare(a.GetShard(), b.GetShard()), cmp.Compare(b.GetPosition(), a.GetPosition()))
}

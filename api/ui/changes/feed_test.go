package changes

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// busy is a server where a task of each shard changes every second.
type busy struct {
	ddqv1.DelayQueueServiceClient
	mu      sync.Mutex
	opened  int   // watches; guarded by mu
	watches int   // that are open; guarded by mu
	ends    error // of each watch after three seconds; nil: none does; guarded by mu
}

func (b *busy) WatchTasks(ctx context.Context, _ *ddqv1.WatchTasksRequest, _ ...grpc.CallOption) (grpc.ServerStreamingClient[ddqv1.WatchTasksResponse], error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.opened++
	b.watches++
	context.AfterFunc(ctx, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.watches--
	})
	return &watch{ctx: ctx, ends: b.ends}, nil
}

// count returns how many watches were opened, and how many are open.
func (b *busy) count() (opened, open int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.opened, b.watches
}

type watch struct {
	grpc.ServerStreamingClient[ddqv1.WatchTasksResponse]
	ctx  context.Context
	ends error
	n    int64
}

func (w *watch) Recv() (*ddqv1.WatchTasksResponse, error) {
	r := &ddqv1.WatchTasksResponse{Cursor: fmt.Append(nil, w.n)}
	if w.n++; w.n == 1 {
		return r, nil
	}
	if w.ends != nil && w.n == 5 {
		return nil, w.ends
	}
	select {
	case <-time.After(time.Second):
	case <-w.ctx.Done():
		return nil, w.ctx.Err()
	}
	for shard := range int32(60) {
		r.Changes = append(r.Changes, &ddqv1.TaskChange{Id: fmt.Sprintf("%d-%d", shard%2, w.n), Shard: shard, Position: w.n, TimeUnixUs: w.n*10 + int64(shard)})
	}
	return r, nil
}

func TestAFeedHasTheLastChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := newFeeds(new(busy))
		defer fs.close()
		a := asked{topic: "mail", id: "1-"}
		for range 10 {
			if _, err := fs.look(t.Context(), a); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		got, err := fs.look(t.Context(), a)
		if err != nil || len(got.rows) != shown || got.count < 270 || got.count > 330 {
			t.Fatalf("%d rows of %d, %v", len(got.rows), got.count, err)
		}
		for i := 1; i < len(got.rows); i++ {
			if got.rows[i].TimeUnixUs > got.rows[i-1].TimeUnixUs {
				t.Fatal("a later change is below an earlier one")
			}
		}
		for _, c := range got.rows {
			if c.Id[:2] != "1-" {
				t.Fatalf("%s was not asked for", c.Id)
			}
		}
	})
}

func TestAFeedIsSharedAndEndsWhenNobodyLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := new(busy)
		fs := newFeeds(server)
		defer fs.close()
		look := func(a asked) {
			t.Helper()
			if _, err := fs.look(t.Context(), a); err != nil {
				t.Error(err)
			}
		}
		mine, theirs := asked{topic: "mail", rights: "all"}, asked{topic: "mail", rights: "some"}
		for range 30 {
			for range 5 {
				look(mine)
			}
			look(theirs)
			time.Sleep(time.Second)
		}
		if opened, _ := server.count(); opened != 2 {
			t.Errorf("%d watches were opened for two who have other rights", opened)
		}
		time.Sleep(idleFor + time.Second)
		fs.mu.Lock()
		feeds := len(fs.all)
		fs.mu.Unlock()
		if _, open := server.count(); open != 0 || feeds != 0 {
			t.Errorf("%d watches, %d feeds", open, feeds)
		}
		for i := range maxFeeds {
			if _, err := fs.of(t.Context(), asked{topic: fmt.Sprint(i)}); err != nil {
				t.Error(err)
			}
		}
		if _, err := fs.look(t.Context(), mine); status.Code(err) != codes.ResourceExhausted {
			t.Errorf("one too many: %v", err)
		}
		fs.close()
		synctest.Wait() // the server hears of it
		if _, open := server.count(); open != 0 {
			t.Errorf("%d watches outlive the feeds", open)
		}
	})
}

func TestAFeedThatEndedIsBegunAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &busy{ends: status.Error(codes.Unavailable, "away")}
		fs := newFeeds(server)
		defer fs.close()
		failed := 0
		for range 12 {
			if got, err := fs.look(t.Context(), asked{topic: "mail"}); err != nil {
				failed++
			} else if len(got.cursor) == 0 {
				t.Error("there is no cursor")
			}
			time.Sleep(500 * time.Millisecond)
		}
		if opened, _ := server.count(); opened < 2 || failed > 1 {
			t.Errorf("%d watches, and %d looks failed", opened, failed)
		}
	})
}

package workflows

import (
	"context"
	"encoding/binary"
	"sync"
	"time"

	sdk "github.com/ddq-io/ddq/api/worker"
	"github.com/ddq-io/ddq/bench/result"
)

// stamp is the payload of a task that says its number, and whether it is one that follows.
func stamp(i int, next bool) []byte {
	b := binary.BigEndian.AppendUint32(make([]byte, 0, followPayload), uint32(i)) // #nosec G115 -- a number of tasks
	if next {
		b = append(b, 1)
	}
	return b[:followPayload]
}

// followBooks are the tasks that came, and those that follow them. It is safe for concurrent use.
type followBooks struct {
	apart bool // Enqueue and the ack are two calls: an attempt that is repeated may enqueue again

	mu     sync.Mutex // guards what follows
	tasks  []followed
	left   int // tasks whose next one has not come
	repeat int
	doubly int // tasks with two that follow
	last   time.Time
	moved  time.Time     // when one came
	done   chan struct{} // closed when none is left
}

// followed is a task, and the one that follows it.
type followed struct {
	attempt     int    // 0: it has not come
	next        string // id; empty: it has not come
	nextAttempt int
}

func newFollowBooks(n int, apart bool) *followBooks {
	return &followBooks{apart: apart, tasks: make([]followed, n), left: n, moved: time.Now(), done: make(chan struct{})}
}

// write writes down that a task came, and reports its number and whether it is one that follows.
func (b *followBooks) write(t *sdk.Task, now time.Time) (i int, next bool) {
	i, next = int(binary.BigEndian.Uint32(t.Payload)), t.Payload[4] == 1
	b.mu.Lock()
	defer b.mu.Unlock()
	f := &b.tasks[i]
	b.moved = now
	switch {
	case !next:
		if f.attempt > 0 {
			b.repeat++
		}
		f.attempt = t.Attempt
	case f.next == "":
		f.next, f.nextAttempt, b.last = t.ID, t.Attempt, now
		if b.left--; b.left == 0 {
			close(b.done)
		}
	case f.next == t.ID && t.Attempt > f.nextAttempt:
		b.repeat++
		f.nextAttempt = t.Attempt
	case f.next != t.ID && b.apart && f.attempt > 1:
		b.repeat++
	default:
		b.doubly++
	}
	return i, next
}

// wait waits until every task has been followed by one, or nothing has come for too long.
func (b *followBooks) wait(ctx context.Context) error {
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for {
		select {
		case <-b.done:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case now := <-look.C:
			b.mu.Lock()
			moved := b.moved
			b.mu.Unlock()
			if now.Sub(moved) > flowEnd {
				return nil
			}
		}
	}
}

// read writes what is in the books to a round.
func (b *followBooks) read(r *followRound, begun time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if took := b.last.Sub(begun).Seconds(); took > 0 {
		r.EndToEndPerS = result.Round(float64(len(b.tasks)-b.left)/took, 1)
	}
	r.Repeat, r.Half = b.repeat, b.left+b.doubly
}

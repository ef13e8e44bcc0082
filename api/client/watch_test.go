package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ddq-io/ddq/api/ddqv1"
)

func (f *fakeServer) WatchTasks(r *ddqv1.WatchTasksRequest, stream grpc.ServerStreamingServer[ddqv1.WatchTasksResponse]) error {
	f.mu.Lock()
	f.streams++
	n := f.streams
	f.mu.Unlock()
	return f.watch(n, r, stream.Send)
}

// framed is a response with changes of two shards, one after the other.
func framed(cursor string, from, n int64) *ddqv1.WatchTasksResponse {
	r := &ddqv1.WatchTasksResponse{Cursor: []byte(cursor)}
	for i := range n {
		r.Changes = append(r.Changes, &ddqv1.TaskChange{
			Id: fmt.Sprint(from + i), Kind: ddqv1.ChangeKind_CHANGE_KIND_DEAD, State: ddqv1.TaskState_TASK_STATE_DEAD, TimeUnixUs: 1_500_000,
			Reason: ddqv1.DeadReason_DEAD_REASON_MAX_RETRIES, Outcome: ddqv1.AttemptOutcome_ATTEMPT_OUTCOME_FAILED, Shard: int32(i % 2), Position: 100*(i%2) + from + i,
		})
	}
	return r
}

func TestWatchGoesOnBehindWhatItHasSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []string
		f := &fakeServer{watch: func(n int, r *ddqv1.WatchTasksRequest, send func(*ddqv1.WatchTasksResponse) error) error {
			asked = append(asked, fmt.Sprintf("%s %v %v", r.Cursor, r.From, r.Kinds))
			switch n {
			case 1:
				return status.Error(codes.Unavailable, "starting")
			case 2:
				return errors.Join(send(&ddqv1.WatchTasksResponse{Cursor: []byte("A")}), send(framed("B", 1, 3)), status.Error(codes.Unavailable, "gone"))
			case 3:
				if err := errors.Join(send(&ddqv1.WatchTasksResponse{Cursor: []byte("B2")}), send(framed("C", 4, 2))); err != nil {
					return err
				}
				return nil // which a server never does
			}
			expired, _ := status.New(codes.OutOfRange, "too late").WithDetails(&errdetails.ErrorInfo{Reason: "CURSOR_EXPIRED"})
			return expired.Err()
		}}
		c := start(t, f, Config{})
		var ids, cursors, progress []string
		var last error
		o := WatchOptions{Topic: "mail", FromOldest: true, Kinds: []ChangeKind{ChangeDead}, Progress: func(cursor []byte) { progress = append(progress, string(cursor)) }}
		for change, err := range c.Watch(t.Context(), o) {
			if last = err; err != nil {
				continue
			}
			ids, cursors = append(ids, change.ID), append(cursors, string(change.Cursor()))
			if change.Kind.String() != "dead" || change.State != StateDead || change.Reason != DeadReasonMaxRetries || change.Outcome != AttemptFailed ||
				!change.Time.Equal(time.UnixMicro(1_500_000)) || !change.Due.IsZero() {
				t.Errorf("got %+v", change)
			}
		}
		if !slices.Equal(ids, []string{"1", "2", "3", "4", "5"}) {
			t.Errorf("got %v", ids)
		}
		// In the midst of a frame: the cursor before it, and the last position of each shard.
		if want := []string{"A\x00\x01", "A\x00\x01\x01\x66", "B", "B2\x00\x04", "C"}; !slices.Equal(cursors, want) {
			t.Errorf("cursors %q, want %q", cursors, want)
		}
		if want := []string{"A", "B2"}; !slices.Equal(progress, want) {
			t.Errorf("progress %q, want %q", progress, want)
		}
		kinds := " [CHANGE_KIND_DEAD]"
		want := []string{" WATCH_FROM_OLDEST" + kinds, " WATCH_FROM_OLDEST" + kinds, "B WATCH_FROM_UNSPECIFIED" + kinds, "C WATCH_FROM_UNSPECIFIED" + kinds}
		if !slices.Equal(asked, want) {
			t.Errorf("asked for %q, want %q", asked, want)
		}
		if !errors.Is(last, ErrCursorExpired) || !errors.Is(last, ErrOutOfRange) {
			t.Errorf("ended with %v", last)
		}
	})
}

func TestWatchEndsWithItsContextOrItsLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		left := make(chan struct{}, 2)
		f := &fakeServer{watch: func(_ int, _ *ddqv1.WatchTasksRequest, send func(*ddqv1.WatchTasksResponse) error) error {
			defer func() { left <- struct{}{} }()
			for i := int64(1); ; i++ {
				if err := send(framed(fmt.Sprint(i), i, 1)); err != nil {
					return err
				}
				time.Sleep(time.Second)
			}
		}}
		c := start(t, f, Config{})
		for _, err := range c.Watch(t.Context(), WatchOptions{Topic: "mail"}) {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
		<-left
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		n := 0
		for _, err := range c.Watch(ctx, WatchOptions{Topic: "mail"}) {
			if n++; err != nil && (!errors.Is(err, context.DeadlineExceeded) || n < 5) {
				t.Errorf("change %d: %v", n, err)
			}
		}
		<-left
	})
}

package worker

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// What a server takes in a message: see PROTOCOL.md.
const serverBytes, serverItems = 6 << 20, 1 << 16

// checkFrame fails for a frame that ends the stream, with all others on it.
func checkFrame(t *testing.T, r *ddqv1.SubscribeRequest) {
	t.Helper()
	if n := proto.Size(r); n > serverBytes {
		t.Errorf("a frame of %d bytes", n)
	}
	items := len(r.GetAcks()) + len(r.GetNacks()) + len(r.GetExtends()) + len(r.GetCheckpoints())
	if items > 10_000 {
		t.Errorf("a frame of %d settlements", items)
	}
	for _, a := range r.GetAcks() {
		for _, next := range a.GetEnqueue() {
			items += 1 + len(next.GetAttributes())
		}
		items += itemsOf(a.GetGrow())
	}
	if items > serverItems {
		t.Errorf("a frame of %d items", items)
	}
}

// Whatever many tasks have to say at once fits into frames, and all of it is said: acks with many
// attributes, large results and errors, checkpoints, and an ack that no server takes, which fails alone.
func TestFramesHaveRoomForWhatTheyCarry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const each = 12
		f := &fakeServer{}
		f.checkpoint = func(*ddqv1.Checkpoint) (*ddqv1.CheckpointResponse, error) { return &ddqv1.CheckpointResponse{}, nil }
		frames := 0
		f.results = func(st *fakeStream, r *ddqv1.SubscribeRequest) *ddqv1.Settled {
			checkFrame(t, r)
			frames++
			return accept(r)
		}
		wide, many := map[string]string{}, map[string]string{}
		for i := range 32 {
			wide[fmt.Sprint("a", i)] = strings.Repeat("x", 1000)
		}
		for i := range 32 {
			many[fmt.Sprint(i)] = ""
		}
		all := make(chan struct{})
		x := start(t, f, Config{Concurrency: 6 * each, MaxInFlight: 6 * each}, HandlerFunc(func(ctx context.Context, task Task) error {
			kind, _, _ := strings.Cut(task.ID, "-")
			<-all // at about the same time
			switch kind {
			case "wide", "many":
				next := client.Task{Topic: "next", Attributes: wide}
				if kind == "many" {
					next.Attributes = many
				}
				for range MaxEnqueue {
					if err := task.Enqueue(next); err != nil {
						return err
					}
				}
			case "result":
				return task.SetResult(make([]byte, MaxResult))
			case "error":
				return fmt.Errorf("%s", strings.Repeat("e", maxError))
			case "page":
				return task.Checkpoint(ctx, "page", make([]byte, MaxValue))
			case "huge":
				for range MaxEnqueue {
					if err := task.Enqueue(client.Task{Topic: "next", Attributes: wide, Payload: make([]byte, MaxEnqueueBytes/MaxEnqueue), RateKey: strings.Repeat("k", 20_000)}); err != nil {
						return err
					}
				}
			}
			return nil
		}))
		st := <-x.streams
		synctest.Wait()
		for _, kind := range []string{"wide", "many", "result", "error", "page", "huge"} {
			for n := range each {
				st.deliver(fmt.Sprint(kind, "-", n))
			}
		}
		synctest.Wait()
		close(all)
		time.Sleep(time.Minute)
		_, held, acked, nacked, _ := st.books()
		if len(acked) != 4*each || len(nacked) != 2*each || held != 0 {
			t.Errorf("%d acked, %d nacked, %d held, in %d frames", len(acked), len(nacked), held, frames)
		}
		for _, n := range nacked {
			if strings.HasPrefix(n.GetTaskId(), "huge") && !strings.Contains(n.GetError(), "what goes with the ack") {
				t.Errorf("%s: %s", n.GetTaskId(), n.GetError())
			}
		}
	})
}

// All checkpoints of a moment are kept, however many, and those who wait for them hear of it.
func TestManyCheckpointsAtOnceAreAllKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{}
		kept := map[string]bool{}
		f.checkpoint = func(c *ddqv1.Checkpoint) (*ddqv1.CheckpointResponse, error) {
			kept[c.GetName()] = true
			return &ddqv1.CheckpointResponse{}, nil
		}
		const names = 3*frameSettles + 200
		x := start(t, f, Config{}, HandlerFunc(func(ctx context.Context, task Task) error {
			var all sync.WaitGroup
			for n := range names {
				all.Go(func() {
					if err := task.Checkpoint(ctx, fmt.Sprint(n), nil); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			return nil
		}))
		st := <-x.streams
		synctest.Wait()
		st.deliver("a")
		time.Sleep(time.Minute)
		if _, _, acked, _, _ := st.books(); len(acked) != 1 || len(kept) != names {
			t.Errorf("%d of %d checkpoints kept, %d acked", len(kept), names, len(acked))
		}
	})
}

// Extends of very many tasks, and what is settled meanwhile, are no frame that a server refuses.
func TestExtendsOfManyTasksAreSeveralFrames(t *testing.T) {
	s := newSubscription(Config{Logger: nil}.settings(), "mail", nil, &events{observe: func(Event) {}})
	l := &link{limit: mostInFlight, wake: make(chan struct{}, 1), heard: make(chan struct{}, 1)}
	s.join(l)
	for n := range 9_500 {
		h := &held{sub: s, via: l}
		h.ack.TaskId, h.ack.HoldToken = fmt.Sprint(n), []byte(holdToken(fmt.Sprint(n)))
		l.extend = append(l.extend, h)
		l.settle = append(l.settle, &held{sub: s, via: l, ack: ddqv1.Ack{TaskId: "a"}})
	}
	extends, acks := 0, 0
	var r ddqv1.SubscribeRequest
	for range 20 {
		if ok, _ := s.take(l, &r); ok {
			checkFrame(t, &r)
			extends, acks = extends+len(r.Extends), acks+len(r.Acks)
		}
	}
	if extends != 9_500 || acks != 9_500 {
		t.Errorf("%d extends and %d acks in frames", extends, acks)
	}
}

// An ack that breaks the stream which it goes on is found, and fails its own attempt; those beside it, of
// which nobody knew whether they counted, are settled. So does one whose failure breaks streams, too, which
// is left to its hold.
func TestAckThatBreaksStreamsFailsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{}
		f.results = func(st *fakeStream, r *ddqv1.SubscribeRequest) *ddqv1.Settled {
			bad := slices.ContainsFunc(r.GetAcks(), func(a *ddqv1.Ack) bool { return a.GetTaskId() == "bad" || a.GetTaskId() == "worse" }) ||
				slices.ContainsFunc(r.GetNacks(), func(n *ddqv1.Nack) bool { return n.GetTaskId() == "worse" })
			if bad {
				st.end <- status.Error(codes.ResourceExhausted, "message too large")
				return nil
			}
			return accept(r)
		}
		all, heard := make(chan struct{}), make(map[string]EventKind)
		var mu sync.Mutex
		x := start(t, f, Config{Concurrency: 50, MaxInFlight: 50}, HandlerFunc(func(_ context.Context, task Task) error {
			task.OnSettled(func(k EventKind) {
				mu.Lock()
				defer mu.Unlock()
				heard[task.ID] = k
			})
			<-all
			return nil
		}))
		st := <-x.streams
		synctest.Wait()
		st.deliver(append(ids(0, 40), "bad", "worse")...)
		synctest.Wait()
		close(all)
		time.Sleep(20 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		for _, id := range ids(0, 40) {
			if heard[id] != Acked {
				t.Errorf("%s: %v", id, heard[id])
			}
		}
		if stats := x.w.Stats(); heard["bad"] != Nacked || stats.Lost != 1 || stats.Disconnected > 4 {
			t.Errorf("the bad one is %v, %+v", heard["bad"], stats)
		}
	})
}

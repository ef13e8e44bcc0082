package worker

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// deliverAll delivers for all the credit that there is, for up to n tasks.
func (st *fakeStream) deliverAll(name string, n int) (delivered int) {
	synctest.Wait()
	credit, _, _, _, _ := st.books()
	for i := range min(n, credit) {
		st.deliver(fmt.Sprint(name, i))
	}
	synctest.Wait()
	return min(n, credit)
}

func TestCreditGrowsForQuickHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := start(t, &fakeServer{}, Config{}, HandlerFunc(ok))
		st := <-x.streams
		synctest.Wait()
		if credit, _, _, _, _ := st.books(); credit != 24 {
			t.Errorf("credit is %d before the first task, want 24", credit)
		}
		st.deliverAll("a", 1)
		if credit, _, _, _, _ := st.books(); credit != 16+mostAtOnce {
			t.Errorf("credit is %d, want %d", credit, 16+mostAtOnce)
		}
	})
}

func TestCreditForSlowHandlersIsHalfOfThemMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := start(t, &fakeServer{}, Config{}, HandlerFunc(func(context.Context, Task) error {
			time.Sleep(time.Second)
			return nil
		}))
		st := <-x.streams
		for i := range 5 {
			st.deliverAll(fmt.Sprint(i, "-"), 100)
			if credit, held, _, nacked, _ := st.books(); credit != 0 || held != 24 || len(nacked) != 0 {
				t.Errorf("%d held with credit for %d and %d given back, want 24 with none", held, credit, len(nacked))
			}
			time.Sleep(time.Second + time.Millisecond)
		}
	})
}

func TestHandlersThatBecomeSlowGiveBackWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var blocked chan struct{}
		x := start(t, &fakeServer{}, Config{Concurrency: 4}, HandlerFunc(func(context.Context, Task) error {
			if blocked != nil {
				<-blocked
			}
			return nil
		}))
		st := <-x.streams
		st.deliverAll("quick", 1)
		blocked = make(chan struct{})
		delivered := st.deliverAll("slow", 1000)
		if delivered != 1000 {
			t.Fatalf("%d delivered, want 1000", delivered)
		}
		time.Sleep(200 * time.Millisecond)
		synctest.Wait()
		credit, held, _, nacked, _ := st.books()
		if held != 6 || len(nacked) != 994 {
			t.Errorf("%d held and %d given back, want 6 and 994", held, len(nacked))
		}
		for _, n := range nacked {
			if !n.GetRelease() || n.GetDelayMs() != 0 || n.DelayMs == nil {
				t.Fatalf("given back as %v", n)
			}
			if id := n.GetTaskId(); id == "slow0" || id == "slow5" {
				t.Errorf("%s was given back, which came first", id)
			}
		}
		close(blocked)
		synctest.Wait()
		time.Sleep(time.Second)
		if now, held, acked, _, _ := st.books(); held != 0 || len(acked) != 7 || now < credit {
			t.Errorf("%d held, %d acked, credit %d after %d: what was given back counts still", held, len(acked), now, credit)
		}
	})
}

func TestMaxInFlightIsObeyed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := start(t, &fakeServer{}, Config{Concurrency: 2, MaxInFlight: 40}, HandlerFunc(func(context.Context, Task) error {
			time.Sleep(20 * time.Second)
			return nil
		}))
		st := <-x.streams
		if st.hello.GetMaxInFlight() != 40 || st.hello.GetMaxBytes() != 0 {
			t.Errorf("hello %v", st.hello)
		}
		if n := st.deliverAll("a", 100); n != 40 {
			t.Errorf("credit was %d, want 40", n)
		}
		time.Sleep(10 * time.Second)
		if _, held, _, nacked, _ := st.books(); held != 40 || len(nacked) != 0 {
			t.Errorf("%d held and %d given back, want 40 and none", held, len(nacked))
		}
	})
}

func TestPayloadsInHandAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := start(t, &fakeServer{}, Config{Concurrency: 2}, HandlerFunc(func(context.Context, Task) error {
			time.Sleep(10 * time.Millisecond)
			return nil
		}))
		st := <-x.streams
		large := func(id string, size int) {
			d := delivery("mail", id)
			d.Task.Payload = make([]byte, size)
			st.mu.Lock()
			st.credit--
			st.held[holdToken(id)] = time.Now().Add(fakeHold)
			st.mu.Unlock()
			st.send(&ddqv1.SubscribeResponse{Deliveries: []*ddqv1.Delivery{d}})
		}
		for i := range 50 {
			for wait := 0; st.creditNow() == 0; wait++ {
				if wait == 1000 {
					t.Fatalf("no credit after %d tasks", i)
				}
				time.Sleep(time.Millisecond)
			}
			large(fmt.Sprint("t", i), 3<<20) // two and no more are in hand, one for each handler
			if _, held, _, _, _ := st.books(); held > 3 {
				t.Fatalf("%d payloads of 3 MiB are in hand", held)
			}
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if credit, held, acked, nacked, _ := st.books(); credit != 2 || held != 0 || len(acked)+len(nacked) != 50 || len(nacked) > 1 {
			t.Errorf("credit %d, %d held, %d acked, %d given back", credit, held, len(acked), len(nacked))
		}
	})
}

func (st *fakeStream) creditNow() int {
	synctest.Wait()
	credit, _, _, _, _ := st.books()
	return credit
}

func TestMaxInFlightThatCannotBe(t *testing.T) {
	if err := New(nil, Config{Topic: "t", MaxInFlight: -1}, HandlerFunc(ok)).Run(t.Context()); err == nil {
		t.Error("Run takes a max in flight of -1")
	}
	var log bytes.Buffer
	w := New(nil, Config{Topic: "t", MaxInFlight: 10_001, Logger: slog.New(slog.NewTextHandler(&log, nil))}, HandlerFunc(ok))
	if w.cfg.MaxInFlight != 10_000 || !strings.Contains(log.String(), "max in flight lowered") {
		t.Errorf("10001 is %d, logged: %s", w.cfg.MaxInFlight, log.String())
	}
}

func TestServerThatAllowsLessIsNoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		x := start(t, &fakeServer{limit: 10}, Config{MaxInFlight: 50, Logger: slog.New(slog.NewTextHandler(&log, nil))}, HandlerFunc(ok))
		st := <-x.streams
		if n := st.creditNow(); n != 10 {
			t.Errorf("credit is %d, want 10", n)
		}
		_ = x.end()
		if !strings.Contains(log.String(), "max in flight lowered") {
			t.Errorf("logged: %s", log.String())
		}
	})
}

// Servers of a worker that takes tasks on demand say how many are ready.
func TestRoomIsSharedByWhatIsReady(t *testing.T) {
	few, many, going := &credit{onDemand: true}, &credit{onDemand: true}, &credit{onDemand: true}
	w := window{limit: 20, credits: []*credit{few, many, going}}
	few.demand(10, 0)
	many.demand(30, 0)
	w.share()
	if few.unsent != 5 || many.unsent != 15 || w.room() != 0 {
		t.Errorf("%d and %d of 20 for 10 and 30, room %d", few.unsent, many.unsent, w.room())
	}
	if n := w.grant(few, 0); n != 5 || w.grant(few, 0) != 0 {
		t.Errorf("granted %d and then more, want 5 once", n)
	}
	few.use(2)
	w.inFlight = 2
	few.demand(3, 3) // what it had left found no task
	many.demand(0, 0)
	going.demand(3, 0)
	going.draining = true
	w.share()
	if few.granted != 3 || going.granted != 0 || w.room() != 0 {
		t.Errorf("%d for the 3 that are ready, %d for a server that drains, room %d", few.granted, going.granted, w.room())
	}
	w.stopping = true
	if n := w.grant(many, 0); n != 0 || many.granted != 0 {
		t.Errorf("granted %d at the end, %d stays", n, many.granted)
	}
}

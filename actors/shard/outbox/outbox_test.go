package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ddq-io/ddq/actors/clock"
	"github.com/ddq-io/ddq/actors/entity/message"
	"github.com/ddq-io/ddq/actors/entity/relay"
	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/metrics"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/runtime"
	"github.com/ddq-io/ddq/actors/shard/timers"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
	"github.com/ddq-io/ddq/store/place"
	"github.com/ddq-io/ddq/timer"
)

var errDown = errors.New("the store is down")

// counted is a store that counts reads of queues, and fails where it is told to.
type counted struct {
	*memstore.Store
	pages atomic.Int64                  // of queues and of the old out-box
	down  atomic.Bool                   // lists no queues
	hold  atomic.Pointer[chan struct{}] // that commits which receive messages wait for; nil: for nothing
}

func (c *counted) Queues(ctx context.Context, s store.Shard, after store.Queue, limit int) ([]store.QueueHead, error) {
	if c.down.Load() {
		return nil, errDown
	}
	return c.Store.Queues(ctx, s, after, limit)
}

func (c *counted) Messages(ctx context.Context, s store.Shard, q store.Queue, after int64, limit, bytes int) (store.MessagePage, error) {
	c.pages.Add(1)
	return c.Store.Messages(ctx, s, q, after, limit, bytes)
}

func (c *counted) Commit(ctx context.Context, s store.Shard, f *store.Fence, commits []store.Commit) (store.Stamp, []store.CommitResult, error) {
	if hold := c.hold.Load(); hold != nil && commits[0].Receive != nil {
		<-*hold
	}
	return c.Store.Commit(ctx, s, f, commits)
}

// inCall is what a call comes to, for whom it may concern: own, unless the shard's actor was restarted meanwhile.
type inCall struct{ result any }

// host is the actor of shard 0 of mail: it hands the outbox one message after the other.
type host struct {
	*testing.T
	*Outbox
	db      *counted
	topics  map[string]*store.Topic
	mailbox chan any
	owned   bool
	restart bool // what calls come to is of an incarnation of before
	fence   store.Fence
	session store.Session
	pending map[string]int // tasks by topic that shards were told of
	errs    int
	rt      *runtime.Runtime
}

func inBubble(t *testing.T, test func(h *host)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := &host{T: t, db: &counted{Store: memstore.New()}, mailbox: make(chan any, 1000), pending: make(map[string]int), topics: map[string]*store.Topic{
			"mail":  {Name: "mail", Life: 1, Shards: 2, MaxPayload: 100},
			"audit": {Name: "audit", Life: 2, Shards: 3, MaxPayload: 100},
			"other": {Name: "other", Life: 3, Shards: 1, MaxPayload: 100},
		}}
		defer h.db.Close()
		h.session = store.Session{Node: "n", Start: store.NewToken(), TTL: 24 * time.Hour, Begin: true}
		if _, err := h.db.RenewSession(t.Context(), h.session); err != nil {
			t.Fatal(err)
		}
		wheel := timer.New(timer.Config{})
		defer wheel.Close()
		clk := clock.New(func(time.Duration) {})
		times := timers.New(clk, clk, wheel)
		find := func(_ context.Context, name string) (*store.Topic, *problem.Error) {
			if topic := h.topics[name]; topic != nil {
				return topic, nil
			}
			return nil, problem.NoTopic(name)
		}
		h.rt = &runtime.Runtime{
			Name: "n", Store: h.db, Cells: h.db, Clock: clk, Wheel: wheel, Fleet: fleet.NewMembership("n"), Log: slog.New(slog.DiscardHandler),
			Metrics: metrics.New(prometheus.NewRegistry()), Random: func() float64 { return 0 },
			Topics: runtime.TopicCalls{
				Gate: relay.NewGate(), Stored: find,
				Of:            func(ctx context.Context, name string, _ bool) (*store.Topic, *problem.Error) { return find(ctx, name) },
				TellPending:   func(at store.Shard, _ int64, tasks ...store.Entry) { h.pending[at.Topic] += len(tasks) },
				TellCommitted: func(*fleet.Committed) {},
				OpenQueues:    func(queues []store.Queue) { h.mailbox <- &Open{queues} },
			},
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		h.Outbox = New(Host{
			Runtime: h.rt, Timers: &times, ID: store.Shard{Topic: "mail"}, Topic: func() *store.Topic { return h.topics["mail"] },
			Owned: func() bool { return h.owned }, Fence: func() store.Fence { return h.fence },
			NoteError: func(err error) {
				if err != nil {
					h.errs++
				}
			},
			Run:  func(call func(ctx context.Context)) { go call(ctx) },
			Done: func(result any) { h.mailbox <- inCall{result} },
			Post: func(m any) { h.mailbox <- m }, Flush: func() { h.mailbox <- flush{} },
		})
		defer h.Stop()
		test(h)
	})
}

type flush struct{}

// settles hands on what is in the mailbox until nothing happens any more.
func (h *host) settles() {
	h.Helper()
	for range 100_000 {
		synctest.Wait()
		select {
		case m := <-h.mailbox:
			switch m := m.(type) {
			case flush:
				h.Flush()
			case inCall:
				h.Receive(m.result, !h.restart)
			default:
				h.Receive(m, true)
			}
		default:
			return
		}
	}
	h.Fatal("it never comes to rest")
}

// pauses pauses enqueues of a topic, or has them go on, and returns the topic.
func (h *host) pauses(topic string, paused bool) *store.Topic {
	changed := *h.topics[topic]
	changed.EnqueuePaused = paused
	h.topics[topic] = &changed
	return &changed
}

// passes lets time pass.
func (h *host) passes(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(min(10*time.Millisecond, time.Until(end))) {
		h.settles()
	}
	h.settles()
}

// claims claims the shard, as the next owner if it was owned before.
func (h *host) claims() {
	h.Helper()
	if h.fence != (store.Fence{}) {
		_ = h.db.Release(h.Context(), h.ID, h.fence)
	}
	var err error
	if _, h.fence, err = h.db.Claim(h.Context(), h.ID, h.session); err != nil {
		h.Fatal(err)
	}
	h.owned = true
	h.Look()
}

// loses gives the shard up.
func (h *host) loses() {
	h.owned = false
	h.Lose()
}

func (h *host) queue(class store.Class, to string) store.Queue {
	return store.Queue{Source: h.ID.For(1), Class: class, To: to}
}

// sends puts messages into their queue or, of class 0, into the old out-box.
func (h *host) sends(class store.Class, messages ...store.Message) {
	h.Helper()
	for i := range messages {
		messages[i].Class = class
	}
	if _, results, err := h.db.Store.Commit(h.Context(), h.ID.For(1), nil, []store.Commit{{Send: messages}}); err != nil || results[0].Status != store.OK {
		h.Fatal(results, err)
	}
}

func (h *host) work(topic, id string) store.Message {
	h.Helper()
	m, err := message.Parcel(topic, &store.Task{ID: id, Due: 1, MaxRetries: -1, Fingerprint: place.HashID(id)})
	if err != nil {
		h.Fatal(err)
	}
	return m
}

// in is how many tasks are pending in a topic.
func (h *host) in(topic string) int {
	h.Helper()
	stats, err := h.db.Counts(h.Context(), place.Shards(h.topics[topic]))
	if err != nil {
		h.Fatal(err)
	}
	n := int64(0)
	for i := range stats {
		n += stats[i].Pending
	}
	return int(n)
}

// made checks how many tasks are in a topic, all of which its shards were told of.
func (h *host) made(topic string, want int) {
	h.Helper()
	if got := h.in(topic); got != want || h.pending[topic] != want {
		h.Errorf("%d tasks are in %s, and its shards were told of %d; want %d", got, topic, h.pending[topic], want)
	}
}

// rests checks that nothing is left to do.
func (h *host) rests() {
	h.Helper()
	if !h.Idle() || h.Fenced() != 0 || h.DozesUntil() != math.MaxInt64 {
		h.Errorf("it is idle: %t, with %d calls, and dozes until %d", h.Idle(), h.Fenced(), h.DozesUntil())
	}
}

func TestAnOwnerCarriesWhatItFinds(t *testing.T) {
	inBubble(t, func(h *host) {
		h.sends(store.ClassWork, h.work("audit", "a"), h.work("other", "b"), h.work("nowhere", "c"))
		h.sends(0, h.work("audit", "d"))
		h.Look()
		if h.settles(); h.in("audit") != 0 {
			t.Error("it carries messages of a shard that it does not own")
		}
		h.claims()
		h.settles()
		h.made("audit", 2)
		h.made("other", 1)
		h.rests()
		if dead, err := h.db.Listed(t.Context(), h.ID, message.List, store.Wake{}, 10); err != nil || len(dead) != 1 {
			t.Errorf("dead letters are %v, %v", dead, err)
		}
	})
}

// What nodes of a later version send in classes of their own lies there until one of them owns the shard.
func TestWhatIsOfALaterVersionStays(t *testing.T) {
	inBubble(t, func(h *host) {
		h.sends(store.ClassMove, store.Message{Topic: "audit", To: "snightly", Body: []byte("x")})
		h.sends(store.ClassWork, h.work("audit", "a"))
		h.claims()
		h.settles()
		h.made("audit", 1)
		h.rests()
		page, err := h.db.Store.Messages(t.Context(), h.ID, h.queue(store.ClassMove, "audit"), 0, 10, 1000)
		if err != nil || len(page.Messages) != 1 {
			t.Errorf("of its queue %+v is left, %v", page, err)
		}
	})
}

func TestQueuesThatAreNamedAreCarried(t *testing.T) {
	inBubble(t, func(h *host) {
		h.claims()
		h.settles()
		h.sends(store.ClassWork, h.work("audit", "a"), h.work("other", "b"))
		h.Receive(&Sent{[]store.Queue{h.queue(store.ClassWork, "audit")}}, true)
		h.settles()
		h.made("audit", 1)
		h.made("other", 0)
		h.Receive(&Sent{}, true)
		h.settles()
		h.made("other", 1)
		h.rests()
	})
}

// More queues than turns at a time, and more than one page has.
func TestAllQueuesAreListed(t *testing.T) {
	inBubble(t, func(h *host) {
		const n = queuesPage + 10
		for i := range n {
			name := fmt.Sprint("t", i)
			h.topics[name] = &store.Topic{Name: name, Life: uint64(10 + i), Shards: 1, MaxPayload: 100}
			h.sends(store.ClassWork, h.work(name, "a"))
		}
		h.claims()
		h.settles()
		for i := range n {
			h.made(fmt.Sprint("t", i), 1)
		}
		h.rests()
	})
}

func TestQueuesAreListedAgainWhenThatFailed(t *testing.T) {
	inBubble(t, func(h *host) {
		h.sends(store.ClassWork, h.work("audit", "a"))
		h.db.down.Store(true)
		h.claims()
		h.passes(storeRetry / 2)
		if h.errs == 0 || h.DozesUntil() != 0 {
			t.Errorf("%d errors, it dozes until %d", h.errs, h.DozesUntil())
		}
		h.db.down.Store(false)
		h.passes(storeRetry)
		h.made("audit", 1)
		h.rests()
	})
}

// What is paused is not read, and is in the way of nothing. It goes on in the moment in which its topic does.
func TestAPausedTopicIsNotRead(t *testing.T) {
	inBubble(t, func(h *host) {
		h.pauses("audit", true)
		h.sends(store.ClassWork, h.work("audit", "a"), h.work("other", "b"))
		h.claims()
		h.passes(time.Second)
		h.made("other", 1)
		before := h.db.pages.Load()
		if h.passes(3 * time.Second); h.db.pages.Load() != before {
			t.Errorf("%d pages were read", h.db.pages.Load()-before)
		}
		h.made("audit", 0)
		open := h.pauses("audit", false)
		h.rt.Topics.OpenQueues(h.rt.Topics.Gate.Changed(open, h.rt.Clock.Millis()))
		h.settles()
		h.made("audit", 1)
		h.rests()
	})
}

// A topic at its max_backlog is counted while somebody waits for it, and takes what it has room for.
func TestAFullTopicTakesWhatItHasRoomFor(t *testing.T) {
	inBubble(t, func(h *host) {
		h.topics["other"].MaxBacklog = 3
		var all []store.Message
		for i := range 5 {
			all = append(all, h.work("other", fmt.Sprint(i)))
		}
		h.sends(store.ClassWork, all...)
		h.claims()
		h.passes(2 * time.Second)
		h.made("other", 3)
		at := store.Shard{Topic: "other"}
		page, _, err := h.db.List(t.Context(), at, store.KindPending, "", 2)
		if err != nil || len(page) != 2 {
			t.Fatal(page, err)
		}
		if _, _, err := h.db.Remove(t.Context(), at, store.Removals(page[0].ID, page[1].ID)); err != nil {
			t.Fatal(err)
		}
		h.passes(2 * time.Second)
		if n := h.in("other"); n != 3 || h.pending["other"] != 5 {
			t.Errorf("%d tasks are there, and its shard was told of %d", n, h.pending["other"])
		}
		h.rests()
	})
}

// Asks wait while the work that they are about may lie in the old out-box.
func TestAsksWaitForTheOldOutBox(t *testing.T) {
	inBubble(t, func(h *host) {
		h.pauses("audit", true)
		h.sends(0, h.work("audit", "a"))
		h.sends(store.ClassAsk, message.Ask("audit", "a", "w"), message.Ask("other", "b", "w"))
		asks := func(to string) int {
			page, err := h.db.Store.Messages(t.Context(), h.ID, h.queue(store.ClassAsk, to), 0, 10, 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			return len(page.Messages)
		}
		h.claims()
		h.passes(10 * time.Second)
		if asks("audit") != 1 || asks("other") != 0 {
			t.Errorf("%d asks wait for audit, and %d for other", asks("audit"), asks("other"))
		}
		h.pauses("audit", false)
		h.passes(10 * time.Second)
		if asks("audit") != 0 || h.in("audit") != 0 || h.pending["audit"] != 1 {
			t.Errorf("%d asks wait, %d tasks are there, %d were told of", asks("audit"), h.in("audit"), h.pending["audit"])
		}
		h.rests()
	})
}

// What comes into the old out-box while something waits there goes at once.
func TestTheOldOutBoxGoesOnBesideWhatWaits(t *testing.T) {
	inBubble(t, func(h *host) {
		h.topics["audit"].EnqueuePaused = true
		h.sends(0, h.work("audit", "a"))
		h.claims()
		h.passes(30 * time.Second)
		h.sends(0, h.work("other", "b"))
		h.Receive(&Sent{}, true)
		h.settles()
		h.made("other", 1)
		h.made("audit", 0)
		if h.DozesUntil() != 0 {
			t.Errorf("it dozes until %d", h.DozesUntil())
		}
	})
}

// A turn that is in flight while the shard gets another owner, and comes back to the first one, is nobody's: its queue
// has its turn under the claim of now. What it made is told of all the same.
func TestATurnCountsUnderItsClaim(t *testing.T) {
	inBubble(t, func(h *host) {
		gate := make(chan struct{})
		h.db.hold.Store(&gate)
		h.sends(store.ClassWork, h.work("audit", "a"))
		h.claims()
		h.settles()
		if h.Idle() || h.Fenced() != 1 {
			t.Fatalf("%d turns are in flight", h.Fenced())
		}
		h.loses()
		h.claims()
		h.settles()
		if h.Fenced() != 2 {
			t.Errorf("%d turns are in flight", h.Fenced())
		}
		gate <- struct{}{} // that of before comes to its end
		h.settles()
		h.Receive(&Sent{[]store.Queue{h.queue(store.ClassWork, "audit")}}, true)
		if h.passes(100 * time.Millisecond); h.Fenced() != 1 {
			t.Errorf("%d turns of one queue are in flight", h.Fenced())
		}
		h.db.hold.Store(nil)
		close(gate)
		h.passes(time.Second)
		h.made("audit", 1)
		h.rests()
	})
}

// What an incarnation of the shard's actor began that has panicked is told of, and is no turn of the one of now.
func TestTurnsOfAnotherIncarnationAreToldOf(t *testing.T) {
	inBubble(t, func(h *host) {
		gate := make(chan struct{})
		h.db.hold.Store(&gate)
		h.sends(store.ClassWork, h.work("audit", "a"))
		h.claims()
		h.settles()
		h.restart = true
		h.db.hold.Store(nil)
		close(gate)
		h.settles()
		if h.made("audit", 1); h.Fenced() != 1 {
			t.Errorf("%d turns are in flight", h.Fenced())
		}
	})
}

// A shard that is lost has none of its queues wait at the gate of the node.
func TestALostShardWaitsForNothing(t *testing.T) {
	inBubble(t, func(h *host) {
		h.topics["audit"].EnqueuePaused = true
		h.sends(store.ClassWork, h.work("audit", "a"))
		h.claims()
		h.passes(time.Second)
		h.loses()
		h.rests()
		open := *h.topics["audit"]
		open.EnqueuePaused = false
		if woken := h.rt.Topics.Gate.Changed(&open, h.rt.Clock.Millis()); len(woken) != 0 {
			t.Errorf("%v wait", woken)
		}
	})
}

// peers are the other nodes, and what they are told.
type peers struct {
	fleet.Peers
	told []fleet.Notice
}

func (p *peers) Notify(_ fleet.Member, n fleet.Notice) { p.told = append(p.told, n) }

func (p *peers) Keep([]fleet.Member) {}

// fleetOfTwo is the view of a fleet whose other node owns all shards.
type fleetOfTwo struct{ other fleet.Member }

func (f *fleetOfTwo) View() fleet.View             { return f }
func (f *fleetOfTwo) Changed() <-chan struct{}     { return nil }
func (f *fleetOfTwo) SetDraining(bool) error       { return nil }
func (f *fleetOfTwo) Without(...string) fleet.View { return f }
func (f *fleetOfTwo) Owner(store.Shard) string     { return f.other.Name }
func (f *fleetOfTwo) Members() []fleet.Member      { return []fleet.Member{{Name: "n"}, f.other} }

// The owner is told of what a call of another node sent. While nodes are in the fleet that read no queues, it looks at
// all there is, whatever is named.
func TestAnotherNodeTellsTheOwner(t *testing.T) {
	inBubble(t, func(h *host) {
		others, source := new(peers), &fleetOfTwo{fleet.Member{Name: "m", NoQueues: true}}
		h.rt.Fleet.Join(source, others)
		h.rt.Fleet.Update()
		sent := &Sent{[]store.Queue{h.queue(store.ClassWork, "audit")}}
		h.Receive(sent, true)
		if len(others.told) != 1 || len(others.told[0].Ended) != 1 || others.told[0].Ended[0].Shard != h.ID {
			t.Errorf("the owner is told %+v", others.told)
		}
		h.claims()
		h.settles()
		h.sends(0, h.work("audit", "a"))
		h.Receive(sent, true)
		h.settles()
		h.made("audit", 1)
		h.rests()
	})
}

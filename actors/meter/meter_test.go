package meter

import (
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/ddq-io/ddq/actors/pulse"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
)

// hand is a clock that is moved by hand.
type hand struct{ ms store.Millis }

func (h *hand) now() store.Millis { return h.ms }

func newHand() *hand {
	return &hand{store.Millis(time.Date(2030, 6, 1, 0, 0, 0, 0, time.UTC).UnixMilli())}
}

func (h *hand) pass(d time.Duration) { h.ms = h.ms.Add(d) }

// sums are the events of the last minute of a topic.
func sums(t *testing.T, m *Meter, topic string) (sum pulse.Tally) {
	t.Helper()
	r := m.Reports([]string{topic})[topic]
	if r == nil {
		return sum
	}
	for e, counts := range r.Minute.Counts {
		for _, n := range counts {
			sum[e] += int(n)
		}
	}
	return sum
}

// TestStoreCallsAreCounted makes the calls of a node, and compares what the store answered with
// what was counted.
func TestStoreCallsAreCounted(t *testing.T) {
	h := newHand()
	m := New(h.now)
	st, at := m.Store(memstore.New()), store.Shard{Topic: "mail"}
	session := store.Session{Node: "a", Start: store.NewToken(), TTL: time.Minute, Begin: true}
	if _, err := st.RenewSession(t.Context(), session); err != nil {
		t.Fatal(err)
	}
	_, fence, err := st.Claim(t.Context(), at, session)
	if err != nil {
		t.Fatal(err)
	}
	add := func(ids ...string) {
		tasks := make([]*store.Task, len(ids))
		for i, id := range ids {
			tasks[i] = &store.Task{ID: id, Due: 1}
		}
		if _, _, err := st.Add(t.Context(), at, tasks); err != nil {
			t.Fatal(err)
		}
	}
	hold := func(ids ...string) []store.Hold {
		holds := make([]store.Hold, len(ids))
		for i, id := range ids {
			holds[i] = store.Hold{ID: id, Token: store.NewToken(), Visibility: time.Minute}
		}
		_, results, err := st.Hold(t.Context(), at, fence, holds)
		if err != nil || results[0].Status != store.OK {
			t.Fatal(err, results)
		}
		return holds
	}
	add("a", "b", "c", "d")
	add("a") // it is there
	holds := hold("a", "b", "c", "d")
	acks := []store.Ack{{ID: "a", Token: holds[0].Token}}
	for range 2 { // the second one ends nothing
		if _, _, err := st.Ack(t.Context(), at, acks, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	nacks := []store.Nack{
		{ID: "b", Token: holds[1].Token, Outcome: store.OutcomeFailed},
		{ID: "c", Token: holds[2].Token, Outcome: store.OutcomeFailed, Reason: store.ReasonMaxRetries},
		{ID: "d", Token: holds[3].Token, Outcome: store.OutcomeReleased, Uncount: true},
	}
	if _, _, err := st.Nack(t.Context(), at, nacks); err != nil {
		t.Fatal(err)
	}
	h.pass(5 * time.Second)
	want := pulse.Tally{pulse.Enqueued: 4, pulse.Acked: 1, pulse.Failed: 2, pulse.Dead: 1}
	if got := sums(t, m, "mail"); got != want {
		t.Errorf("counted %v, want %v", got, want)
	}
	if got := sums(t, m, "sms"); !got.Empty() {
		t.Errorf("of another topic %v", got)
	}
}

func delivered(n int, late time.Duration, now store.Millis) []subscription.HeldTask {
	tasks := make([]subscription.HeldTask, n)
	for i := range tasks {
		tasks[i].Task = &store.Task{Due: now.Add(-late)}
	}
	return tasks
}

func TestDeliveriesAreCountedFromManySides(t *testing.T) {
	h := newHand()
	m := New(h.now)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 1000 {
				m.Deliver(strconv.Itoa(i%3), h.now(), delivered(3, 7*time.Millisecond, h.now()))
				m.ForgetIdle()
			}
		})
	}
	wg.Wait()
	h.pass(5 * time.Second)
	sum := 0
	for i := range 3 {
		sum += sums(t, m, strconv.Itoa(i))[pulse.Delivered]
	}
	if sum != 24_000 {
		t.Errorf("%d are counted", sum)
	}
	if w := m.Reports([]string{"0"})["0"].Minute; w.Max != 7 || w.LateAt(99) != 7 {
		t.Errorf("late by %d at most, p99 %d", w.Max, w.LateAt(99))
	}
}

func TestIdleTopicsAreForgotten(t *testing.T) {
	h := newHand()
	m := New(h.now)
	m.Count("mail", pulse.Tally{pulse.Enqueued: 1})
	m.Count("sms", pulse.Tally{pulse.Enqueued: 1})
	m.Forget("sms")
	m.Forget("sms")
	if used := m.used.Load(); used != 1 {
		t.Errorf("%d topics after one was deleted", used)
	}
	h.pass(time.Hour)
	m.ForgetIdle()
	if used := m.used.Load(); used != 1 {
		t.Error("it is forgotten too early")
	}
	h.pass(2 * time.Minute)
	m.ForgetIdle()
	if used := m.used.Load(); used != 0 {
		t.Errorf("%d topics", used)
	}
	m.Count("mail", pulse.Tally{pulse.Acked: 1})
	h.pass(5 * time.Second)
	if got := sums(t, m, "mail"); got != (pulse.Tally{pulse.Acked: 1}) {
		t.Errorf("it begins with %v", got)
	}
}

// TestVeryManyTopicsTakeNoMoreThanABound counts in more topics than have a pulse, all of them late by
// anything.
func TestVeryManyTopicsTakeNoMoreThanABound(t *testing.T) {
	h := newHand()
	m := New(h.now)
	size := func() uint64 {
		runtime.GC()
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return s.HeapAlloc
	}
	before := size()
	for i := range MostTopics + 10 {
		m.Count(fmt.Sprint("topic-", i), pulse.Tally{pulse.Enqueued: 1})
	}
	if !m.Incomplete() || m.used.Load() != MostTopics {
		t.Errorf("%d topics, incomplete %v", m.used.Load(), m.Incomplete())
	}
	counting := size() - before
	for i := range MostTopics {
		for late := time.Millisecond; late < 10*time.Second; late *= 3 {
			m.Deliver(fmt.Sprint("topic-", i), h.now(), delivered(1, late, h.now()))
		}
	}
	t.Logf("%d topics: %d bytes each, %d with lateness", MostTopics, counting/MostTopics, (size()-before)/MostTopics)
	if each := (size() - before) / MostTopics; each > 6_000 {
		t.Errorf("%d bytes a topic", each)
	}
	h.pass(time.Hour + 2*time.Minute)
	m.ForgetIdle()
	if left := size(); left > before+before/2+1_000_000 || m.Incomplete() {
		t.Errorf("%d bytes are left of idle topics, %d before; incomplete %v", left, before, m.Incomplete())
	}
	runtime.KeepAlive(m)
}

func BenchmarkDeliver(b *testing.B) {
	for _, n := range []int{1, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			h := newHand()
			m, tasks := New(h.now), delivered(n, 3*time.Millisecond, h.now())
			b.ReportAllocs()
			for b.Loop() {
				m.Deliver("mail", h.ms, tasks)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/task")
		})
	}
}

func BenchmarkCount(b *testing.B) {
	h := newHand()
	m := New(h.now)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			m.Count("mail", pulse.Tally{pulse.Enqueued: 100})
		}
	})
}

package actors_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

var (
	linkSeeds = flag.Int("links.seeds", 8, "how many seeds TestReadyTasksGoOnceAllIsWell runs")
	linkSeed  = flag.Uint64("links.seed", 1, "the first of them")
)

// TestReadyTasksGoOnceAllIsWell breaks a fleet whose workers are at some of the nodes only: nodes are killed and come back
// under their names, links break and are slow, each by itself, notices and answers of the store are lost, and calls take long. Once all is well every task that is due goes soon,
// by what nodes tell each other once: the watchdog is put off, and nobody is told again.
func TestReadyTasksGoOnceAllIsWell(t *testing.T) {
	for i := range uint64(dose(*linkSeeds)) {
		seed := *linkSeed + i
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			servicetest.FleetBubble(t, nil, func(t *testing.T, f *servicetest.Fleet) {
				f.Watchdog, f.Knobs.TellEvery = time.Hour, time.Hour
				for _, name := range linkNodes {
					f.Join(name)
				}
				w := &linkWorld{T: t, fleet: f, rand: rand.New(rand.NewPCG(seed, 0))}
				w.play()
			})
		})
	}
}

const (
	linkTrouble = 8 * time.Second  // while things break
	linkHold    = 2 * time.Second  // of a task
	linkSoon    = 20 * time.Second // within which all tasks are done once all is well
	linkTick    = 10 * time.Millisecond
)

var linkNodes = []string{"a", "b", "c"}

// linkWorld is a fleet, its workers and what breaks.
type linkWorld struct {
	*testing.T
	fleet   *servicetest.Fleet
	rand    *rand.Rand
	homes   []string                 // of workers
	faults  func() servicetest.Fault // of calls to the store; nil: none
	workers []*linkWorker
	sent    int
	later   []linkEvent
}

type linkEvent struct {
	at time.Time
	do func()
}

// linkWorker is a worker that works at a few tasks at a time.
type linkWorker struct {
	*servicetest.Stream
	name    string
	at      *servicetest.Node // nil: nowhere
	places  int
	lasts   time.Duration
	running []linkRun
}

type linkRun struct {
	subscription.Delivery
	ends time.Time
}

func (w *linkWorld) between(low, high time.Duration) time.Duration {
	return low + time.Duration(w.rand.Int64N(int64(high-low)+1))
}

func (w *linkWorld) after(d time.Duration, do func()) {
	w.later = append(w.later, linkEvent{time.Now().Add(d), do})
}

func (w *linkWorld) play() {
	hold, none := linkHold, 0
	w.fleet.Limited("mail", service.TopicChange{Visibility: &hold, MaxRetries: &none, Backoff: &store.Backoff{Kind: store.BackoffFixed, Base: 100 * time.Millisecond}})
	names := slices.Clone(linkNodes)
	w.rand.Shuffle(3, func(i, j int) { names[i], names[j] = names[j], names[i] })
	w.homes = names[:1+w.rand.IntN(2)]
	for i := range 2 + w.rand.IntN(3) {
		k := &linkWorker{name: fmt.Sprint("w", i), places: 1 + w.rand.IntN(12), lasts: w.between(0, 150*time.Millisecond)}
		w.workers = append(w.workers, k)
		w.hire(k)
	}
	w.run(500 * time.Millisecond)
	slow := w.rand.IntN(2) == 0
	w.fleet.Edit(func() { w.fleet.Way = func(string) time.Duration { return linkWay(slow) } })
	end := time.Now().Add(linkTrouble)
	if w.rand.IntN(2) == 0 {
		w.faults = linkFault
	}
	for _, n := range w.live() {
		n.Store.Trouble(w.faults)
	}
	for time.Now().Before(end) {
		w.send()
		if w.rand.IntN(60) == 0 {
			w.trouble()
		}
		w.run(linkTick)
	}
	for len(w.later) > 0 { // until all is well
		w.run(linkTick)
	}
	w.fleet.Edit(func() { w.fleet.Way = func(string) time.Duration { return rand.N(3 * time.Millisecond) } })
	for _, k := range w.workers {
		k.lasts = 0 // what is left waits for nothing but to be given
	}
	w.faults = nil
	for _, n := range w.live() {
		n.Store.Trouble(nil)
	}
	w.run(5 * time.Second) // until calls of before have ended
	for end := time.Now().Add(linkSoon); w.left() > 0 && time.Now().Before(end); {
		w.run(linkTick)
	}
	if w.left() > 0 {
		w.complain()
	}
}

// linkWay is how long a frame waits while things break. Any goroutine calls it.
func linkWay(slow bool) time.Duration {
	switch n := rand.IntN(100); {
	case slow && n < 3:
		return rand.N(3 * time.Second)
	case n < 30:
		return rand.N(200 * time.Millisecond)
	}
	return rand.N(5 * time.Millisecond)
}

// linkFault is what goes wrong with a call to a store while things break. Any goroutine calls it.
func linkFault() servicetest.Fault {
	switch rand.IntN(40) {
	case 0:
		return servicetest.Fault{Before: rand.N(time.Second), After: rand.N(time.Second)}
	case 1, 2:
		return servicetest.Fault{Before: rand.N(50 * time.Millisecond), Lost: true}
	}
	return servicetest.Fault{Before: rand.N(5 * time.Millisecond), After: rand.N(5 * time.Millisecond)}
}

// live are the nodes that are there.
func (w *linkWorld) live() (all []*servicetest.Node) {
	for _, name := range linkNodes {
		if n := w.fleet.Nodes[name]; !n.Gone {
			all = append(all, n)
		}
	}
	return all
}

// send enqueues a few tasks at a node that is there.
func (w *linkWorld) send() {
	live := w.live()
	if len(live) == 0 || w.rand.IntN(3) > 0 {
		return
	}
	tasks := make([]service.NewTask, 1+w.rand.IntN(4))
	for i := range tasks {
		w.sent++
		tasks[i] = servicetest.After("mail", fmt.Sprint("t", w.sent), w.between(0, 4*time.Second))
		tasks[i].Task.MaxRetries = 1000
		if w.rand.IntN(3) == 0 {
			tasks[i].Task.Traits = &store.Traits{Priority: w.rand.IntN(10), FairnessKey: fmt.Sprint("tenant ", w.rand.IntN(5))}
		}
	}
	at := live[w.rand.IntN(len(live))]
	go func() { _, _ = at.Sys.Tasks.Enqueue(w.Context(), tasks) }() // an answer may be lost: the store says what there is
}

// left is how many tasks are not done.
func (w *linkWorld) left() (n int64) {
	for _, st := range w.stats() {
		n += st.Pending + st.Running
	}
	return n
}

func (w *linkWorld) stats() []store.Stats {
	t, err := w.fleet.Store.GetTopic(w.Context(), "mail")
	if err != nil {
		w.Fatal(err)
	}
	stats, err := w.fleet.Store.Stats(w.Context(), place.Shards(&t))
	if err != nil {
		w.Fatal(err)
	}
	return stats
}

// trouble breaks something, which is mended later.
func (w *linkWorld) trouble() {
	live := w.live()
	n := live[w.rand.IntN(len(live))]
	switch w.rand.IntN(5) {
	case 0:
		if len(live) < 3 {
			return
		}
		w.fleet.Kill(n)
		w.after(w.between(200*time.Millisecond, 2500*time.Millisecond), func() { w.fleet.Revive(n).Store.Trouble(w.faults) })
		for _, k := range w.workers {
			if k.at == n {
				k.at, k.running = nil, nil
				w.after(w.between(0, 500*time.Millisecond), func() { w.hire(k) })
			}
		}
	case 1:
		to := live[w.rand.IntN(len(live))]
		w.fleet.Edit(func() { n.BreakLinks(to.Name) })
	case 2:
		if k := w.workers[w.rand.IntN(len(w.workers))]; k.at != nil {
			w.leave(k)
			w.after(w.between(0, 500*time.Millisecond), func() { w.hire(k) })
		}
	case 3:
		w.fleet.Edit(func() { w.fleet.Deaf = true })
		w.after(w.between(50*time.Millisecond, time.Second), func() { w.fleet.Edit(func() { w.fleet.Deaf = false }) })
	default:
		n.Store.Freeze(true)
		w.after(w.between(50*time.Millisecond, 3*time.Second), func() {
			if !n.Gone {
				n.Store.Freeze(false)
			}
		})
	}
}

// hire has a worker subscribe at one of its homes, or at any node while these are gone.
func (w *linkWorld) hire(k *linkWorker) {
	live := w.live()
	home := slices.IndexFunc(live, func(n *servicetest.Node) bool { return n.Name == w.homes[w.rand.IntN(len(w.homes))] })
	if len(live) == 0 || k.at != nil {
		return
	}
	k.at = live[max(0, home)]
	k.Stream = servicetest.SubscribeWith(w.T, k.at.Sys, subscription.Options{Topic: "mail", Worker: k.name, MaxInFlight: k.places}, k.places)
}

// leave has a worker go in order.
func (w *linkWorld) leave(k *linkWorker) {
	k.Sub.Unsubscribe(nil)
	k.at, k.running = nil, nil
}

// run has the workers work for a while.
func (w *linkWorld) run(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		now := time.Now()
		due := slices.Clone(w.later)
		w.later = nil
		for _, e := range due {
			if e.at.After(now) {
				w.later = append(w.later, e)
			} else {
				e.do()
			}
		}
		for _, k := range w.workers {
			if k.at != nil {
				w.work(k)
			}
		}
		time.Sleep(linkTick)
	}
}

func (w *linkWorld) work(k *linkWorker) {
	now := time.Now()
	for _, d := range k.Take() {
		k.running = append(k.running, linkRun{d, now.Add(k.lasts)})
	}
	if k.Drained > 0 { // as when its topic starts anew
		w.leave(k)
		w.after(0, func() { w.hire(k) })
		return
	}
	k.running = slices.DeleteFunc(k.running, func(r linkRun) bool {
		if r.ends.After(now) {
			return false
		}
		k.Settle(subscription.SettleAck, r.Delivery)
		return true
	})
	if n := len(k.TakeSettled()); n > 0 {
		_ = k.Sub.Grant(n)
	}
}

// complain says where tasks are left.
func (w *linkWorld) complain() {
	w.Errorf("%d of %d tasks are not done %v after all is well; workers at %v", w.left(), w.sent, linkSoon, w.homes)
	for n, st := range w.stats() {
		w.Logf("shard %d of %s: %d pending, %d of them due, %d held", n, st.Owner, st.Pending, st.Ready, st.Running)
	}
}

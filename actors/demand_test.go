package actors_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store/place"
)

// A node tells another one over one of the links between them what is ready, and gives credit back over all of them.
// What comes late over one of them must not hide what was said over another: nobody would ask for the tasks, as one node
// knows of none and the other one takes it to know.

// afar enqueues n tasks that are due at once in shards of node a.
func afar(t *testing.T, f *servicetest.Fleet, prefix string, n int) {
	t.Helper()
	owners := f.Owners("mail")
	for i := 0; n > 0; i++ {
		id := fmt.Sprint(prefix, i)
		if owners[place.ShardOf(id, len(owners))] != "a" {
			continue
		}
		servicetest.EnqueueOne(t, f.Nodes["a"].Sys, servicetest.After("mail", id, 0))
		n--
	}
}

// subscribeAs opens a stream at node b without credit.
func subscribeAs(t *testing.T, f *servicetest.Fleet, worker string) *servicetest.Stream {
	t.Helper()
	return servicetest.SubscribeWith(t, f.Nodes["b"].Sys, subscription.Options{Topic: "mail", Worker: worker, MaxInFlight: 100}, 0)
}

// workAll acks what streams get and grants again, for a minute.
func workAll(t *testing.T, want int, streams ...*servicetest.Stream) {
	t.Helper()
	got := 0
	for range 600 {
		servicetest.Idle(100 * time.Millisecond)
		for _, w := range streams {
			for _, d := range w.Take() {
				w.Settle(subscription.SettleAck, d)
				_ = w.Sub.Grant(1)
				got++
			}
		}
	}
	if got != want {
		t.Errorf("%d tasks were delivered, want %d", got, want)
	}
}

// slowly has frames of the links of one worker wait.
func slowly(f *servicetest.Fleet, wait time.Duration) {
	f.Edit(func() {
		f.Way = func(worker string) time.Duration {
			if worker == "slow" {
				return wait
			}
			return 0
		}
	})
}

// demandBubble runs a test with two workers at node b, of which one has a slow link to node a: the one that is told,
// or the other one. Nodes that
// ask for nothing are told again after a while.
func demandBubble(t *testing.T, again time.Duration, test func(t *testing.T, f *servicetest.Fleet, fast, slow *servicetest.Stream)) {
	for _, order := range [][]string{{"fast", "slow"}, {"slow", "fast"}} {
		t.Run(order[0]+" first", func(t *testing.T) {
			servicetest.FleetBubble(t, nil, func(t *testing.T, f *servicetest.Fleet) {
				f.Knobs.TellEvery = again
				f.Join("a")
				f.Join("b")
				servicetest.Idle(time.Second)
				streams := make(map[string]*servicetest.Stream)
				for _, worker := range order {
					streams[worker] = subscribeAs(t, f, worker)
					servicetest.Idle(time.Second)
				}
				if !slices.Contains(f.Owners("mail"), "a") {
					t.Fatal("a owns nothing")
				}
				test(t, f, streams["fast"], streams["slow"])
			})
		})
	}
}

// A task that waited too long for one worker's stream comes back.
func TestWhatComesBackLateHidesNothing(t *testing.T) {
	demandBubble(t, time.Hour, func(t *testing.T, f *servicetest.Fleet, fast, slow *servicetest.Stream) {
		slowly(f, 20*time.Second)
		_ = slow.Sub.Grant(1)
		afar(t, f, "late", 1)
		servicetest.Idle(45 * time.Second) // until it waits to be sent
		afar(t, f, "t", 20)
		servicetest.Idle(2 * time.Minute)
		_ = fast.Sub.Grant(1)
		workAll(t, 21, fast, slow)
	})
}

// Credit comes back over one link after more tasks were told of over another one.
func TestCreditThatComesBackLateHidesNothing(t *testing.T) {
	demandBubble(t, time.Hour, func(t *testing.T, f *servicetest.Fleet, fast, slow *servicetest.Stream) {
		_ = slow.Sub.Grant(1)
		slowly(f, time.Second)
		afar(t, f, "gone", 1)
		servicetest.Idle(500 * time.Millisecond) // until credit for it is on its way, if it was told of
		elsewhere := servicetest.Subscribe(t, f.Nodes["a"].Sys, "mail", 1)
		elsewhere.Settle(subscription.SettleAck, elsewhere.TakeOne())
		servicetest.Idle(700 * time.Millisecond) // until that comes back
		afar(t, f, "t", 20)
		servicetest.Idle(10 * time.Second)
		workAll(t, 20, fast, slow)
	})
}

// Credit that was given to a link which then ends does not come back over it.
func TestCreditOfALinkThatEndsHidesNothing(t *testing.T) {
	demandBubble(t, time.Hour, func(t *testing.T, f *servicetest.Fleet, fast, slow *servicetest.Stream) {
		_ = slow.Sub.Grant(20)
		slowly(f, time.Second)
		afar(t, f, "t", 20)
		slow.Sub.Unsubscribe(nil)
		servicetest.Idle(10 * time.Second)
		_ = fast.Sub.Grant(100)
		workAll(t, 20, fast)
	})
}

// What is said to a node may be lost to it, as to one of another version: it is said again.
func TestWhatIsReadyIsToldAgain(t *testing.T) {
	demandBubble(t, time.Second, func(t *testing.T, f *servicetest.Fleet, fast, slow *servicetest.Stream) {
		f.Edit(func() { f.Unheard = true })
		afar(t, f, "t", 20)
		servicetest.Idle(100 * time.Millisecond)
		f.Edit(func() { f.Unheard = false })
		_ = fast.Sub.Grant(100)
		workAll(t, 20, fast, slow)
	})
}

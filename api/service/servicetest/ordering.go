package servicetest

import (
	"slices"
	"strconv"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors/subscription"
)

// Gets fails unless these tasks and no others have come, in any order.
func (o *Stream) Gets(want ...string) map[string]subscription.Delivery {
	o.T.Helper()
	synctest.Wait()
	got := o.Take()
	names := namesOf(got)
	slices.Sort(names)
	if !slices.Equal(names, slices.Sorted(slices.Values(want))) {
		o.T.Fatalf("got %v, want %v", names, want)
	}
	byName := make(map[string]subscription.Delivery)
	for _, d := range got {
		byName[string(d.Task.Payload)] = d
	}
	return byName
}

func (c *crew) Witness() *witness {
	return &witness{crew: c, holding: map[string]subscription.Delivery{}, Began: map[string]bool{}, last: map[string]int{}}
}

// Run has the workers take tasks, and end one of three each time that they are looked at:
// most are acked, some fail, and some are given back.
func (w *witness) Run(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		for _, man := range w.workers {
			if !w.Dead[man.at] {
				w.work(man)
			}
		}
	}
}

func (w *witness) work(man *crewman) {
	for _, d := range man.Take() {
		w.see(d)
		man.running = append(man.running, run{Delivery: d})
	}
	man.running = slices.DeleteFunc(man.running, func(r run) bool {
		if w.turn++; w.turn%3 != 0 {
			return false
		}
		kind := subscription.SettleAck
		switch {
		case w.turn%15 == 0:
			kind = subscription.SettleNack
		case w.turn%21 == 0:
			kind = subscription.SettleRelease
		}
		if held := w.holding[r.Task.Traits.OrderingKey]; held.Task != nil && held.Task.ID == r.Task.ID {
			delete(w.holding, r.Task.Traits.OrderingKey)
		}
		man.Settle(kind, r.Delivery)
		return true
	})
	for _, s := range man.TakeSettled() {
		if s.Err == nil && s.Kind == subscription.SettleAck {
			w.Acked[s.ID] = true
		}
		_ = man.Sub.Grant(1)
	}
}

// see takes a delivery down, and fails when another task of its key is held, or one that
// is due later had begun. Tasks are numbered in order of their due times.
func (w *witness) see(d subscription.Delivery) {
	key, id := d.Task.Traits.OrderingKey, d.Task.ID
	if held := w.holding[key]; held.Task != nil && held.Task.ID != id && held.Deadline.Time().After(time.Now()) {
		w.Errorf("key %s: %s is held as %s is delivered", key, held.Task.Payload, d.Task.Payload)
	}
	w.holding[key] = d
	if w.Began[id] {
		return
	}
	w.Began[id] = true
	n, _ := strconv.Atoi(string(d.Task.Payload)) // not by due time: an attempt may have come to nothing before a worker saw it
	if n < w.last[key] {
		w.Errorf("key %s: %d comes after %d", key, n, w.last[key])
	}
	w.last[key] = n
}
